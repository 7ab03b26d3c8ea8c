"""Writes a GGUF file of random weights. Usage: make_gguf.py SHAPE FORMAT FILE (needs the packages gguf and numpy)."""
import math
import sys
from pathlib import Path

import gguf
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "system"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from gguf_files import llama3_divisors  # noqa: E402
from random_blocks import random_rows  # noqa: E402
from shapes import SHAPES, tensors_of, type_of  # noqa: E402

SEED = 1


def byte_letters():
    """The character of each byte in byte-level BPE (as in GPT-2's encoder.py)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte) for byte in shown] + [chr(256 + i) for i in range(len(hidden))]


def add_tokenizer(writer, vocab_size):
    """One token per byte, one merge, and unused tokens up to the size of the vocabulary."""
    tokens = [*byte_letters(), "ab"]
    types = [gguf.TokenType.NORMAL] * len(tokens)
    unused = vocab_size - len(tokens) - 2
    tokens += [f"[PAD{i}]" for i in range(unused)] + ["<|begin|>", "<|end|>"]
    types += [gguf.TokenType.UNUSED] * unused + [gguf.TokenType.CONTROL] * 2
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(vocab_size - 2)
    writer.add_eos_token_id(vocab_size - 1)
    writer.add_add_bos_token(False)


def add_config(writer, shape):
    writer.add_block_count(shape.num_layers)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden_size)
    writer.add_feed_forward_length(shape.intermediate_size)
    writer.add_head_count(shape.num_heads)
    writer.add_head_count_kv(shape.num_kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.rotated or shape.head_dim)
    writer.add_layer_norm_rms_eps(shape.rms_norm_eps)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_vocab_size(shape.vocab_size)
    if shape.num_experts:
        writer.add_expert_count(shape.num_experts)
        writer.add_expert_used_count(shape.num_experts_used)
    if delta := shape.delta_net:
        writer.add_ssm_conv_kernel(delta.taps)
        writer.add_ssm_state_size(delta.head_dim)
        writer.add_ssm_group_count(delta.key_heads)
        writer.add_ssm_time_step_rank(delta.value_heads)
        writer.add_ssm_inner_size(delta.value_heads * delta.head_dim)
        writer.add_full_attention_interval(4)
        writer.add_rope_dimension_sections([11, 11, 10, 0])


def vector(shape, name, length, rng):
    if name == "rope_freqs.weight":
        return np.array(llama3_divisors(shape.rope_scaling, shape.rope_theta, shape.head_dim), dtype="<f4")
    values = rng.uniform(0.75, 1.25, length).astype("<f4")
    return -values if name.endswith(".ssm_a") else values


def write_file(shape, wanted, path):
    writer = gguf.GGUFWriter(path, shape.architecture)
    add_config(writer, shape)
    add_tokenizer(writer, shape.vocab_size)
    tensors = [(name, size, type_of(name, size, wanted, shape)) for name, size in tensors_of(shape)]
    for name, size, kind in tensors:
        block, block_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
        as_bytes = (*size[:-1], size[-1] // block * block_bytes)
        writer.add_tensor_info(name, as_bytes, np.dtype(np.uint8), int(np.prod(as_bytes)),
                               gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    rng = np.random.default_rng(SEED)
    for name, size, kind in tensors:
        if len(size) == 1:
            writer.write_tensor_data(vector(shape, name, size[0], rng))
        else:
            writer.write_tensor_data(random_rows(rng, kind, math.prod(size[:-1]), size[-1]))
    writer.close()


def main():
    shape, wanted, path = sys.argv[1:]
    partial = Path(path + ".partial")
    write_file(SHAPES[shape], wanted, partial)
    partial.replace(path)


if __name__ == "__main__":
    main()
