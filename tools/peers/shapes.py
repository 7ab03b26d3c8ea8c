"""Models to compare: published sizes, their tensors, and the type of each tensor in a format.

The recipe of the formats is llama.cpp's quantizer's (llama-quant.cpp, without an importance matrix): norms stay F32, a
tied embedding is also the output and so Q6_K in the 4-bit formats, and Q4_K_M gives more bits to some layers' values
and down projections.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    architecture: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    context: int
    rms_norm_eps: float
    rope_theta: float
    rope_scaling: dict | None = None
    has_qk_norms: bool = False


LLAMA_3 = {"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}

SHAPES = {
    "tiny": Shape("llama", 1024, 256, 512, 4, 4, 2, 64, 8192, 1e-5, 500000.0),
    "llama-3.2-1b": Shape("llama", 128256, 2048, 8192, 16, 32, 8, 64, 131072, 1e-5, 500000.0, LLAMA_3),
    "qwen3-0.6b": Shape("qwen3", 151936, 1024, 3072, 28, 16, 8, 128, 40960, 1e-6, 1000000.0, has_qk_norms=True),
}
FORMATS = ("F32", "BF16", "F16", "Q8_0", "Q4_0", "Q4_K_M")


def tensors_of(shape):
    """(name, shape as in PyTorch) of every tensor, in the order of the file."""
    q, kv = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    out = [("token_embd.weight", (shape.vocab_size, shape.hidden_size)), ("output_norm.weight", (shape.hidden_size,))]
    if shape.rope_scaling:
        out.append(("rope_freqs.weight", (shape.head_dim // 2,)))
    for layer in range(shape.num_layers):
        parts = {"attn_norm": (shape.hidden_size,), "attn_q": (q, shape.hidden_size), "attn_k": (kv, shape.hidden_size),
                 "attn_v": (kv, shape.hidden_size), "attn_output": (shape.hidden_size, q),
                 "ffn_norm": (shape.hidden_size,), "ffn_gate": (shape.intermediate_size, shape.hidden_size),
                 "ffn_up": (shape.intermediate_size, shape.hidden_size),
                 "ffn_down": (shape.hidden_size, shape.intermediate_size)}
        if shape.has_qk_norms:
            parts.update(attn_q_norm=(shape.head_dim,), attn_k_norm=(shape.head_dim,))
        out += [(f"blk.{layer}.{part}.weight", size) for part, size in parts.items()]
    return out


def has_more_bits(layer, num_layers):
    eighth = num_layers // 8
    return layer < eighth or layer >= 7 * num_layers // 8 or (layer - eighth) % 3 == 2


def type_of(name, size, wanted, num_layers):
    """The type of a tensor in a file of the format `wanted`."""
    if len(size) == 1:
        return "F32"
    if name == "token_embd.weight" and wanted.startswith("Q4"):
        return "Q6_K"
    if wanted != "Q4_K_M":
        return wanted
    _, layer, part, _ = name.split(".")
    return "Q6_K" if part in ("attn_v", "ffn_down") and has_more_bits(int(layer), num_layers) else "Q4_K"
