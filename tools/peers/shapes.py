"""Models to compare: published sizes, their tensors, and the type of each tensor in a format.

The recipe of the formats is llama.cpp's quantizer's (llama-quant.cpp, without an importance matrix): norms stay F32, a
tied embedding is also the output and so Q6_K in the 4-bit formats, as an output of its own is, and Q4_K_M gives more
bits to some layers' values and down projections. Routers of experts stay F32.
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
    has_qk_norms: bool = False  # of each head
    has_wide_qk_norms: bool = False  # over all heads together
    is_tied: bool = True
    num_experts: int = 0  # intermediate_size is then that of each
    num_experts_used: int = 0


LLAMA_3 = {"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}

SHAPES = {
    "tiny": Shape("llama", 1024, 256, 512, 4, 4, 2, 64, 8192, 1e-5, 500000.0),
    "llama-3.2-1b": Shape("llama", 128256, 2048, 8192, 16, 32, 8, 64, 131072, 1e-5, 500000.0, LLAMA_3),
    "qwen3-0.6b": Shape("qwen3", 151936, 1024, 3072, 28, 16, 8, 128, 40960, 1e-6, 1000000.0, has_qk_norms=True),
    "olmoe-1b-7b": Shape("olmoe", 50304, 2048, 1024, 16, 16, 16, 128, 4096, 1e-5, 10000.0, has_wide_qk_norms=True,
                         is_tied=False, num_experts=64, num_experts_used=8),
}
FORMATS = ("F32", "BF16", "F16", "Q8_0", "Q4_0", "Q4_K_M")


def tensors_of(shape):
    """(name, shape as in PyTorch) of every tensor, in the order of the file."""
    q, kv = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    out = [("token_embd.weight", (shape.vocab_size, shape.hidden_size)), ("output_norm.weight", (shape.hidden_size,))]
    if not shape.is_tied:
        out.append(("output.weight", (shape.vocab_size, shape.hidden_size)))
    if shape.rope_scaling:
        out.append(("rope_freqs.weight", (shape.head_dim // 2,)))
    experts = (shape.num_experts,) if shape.num_experts else ()
    suffix = "_exps" if experts else ""
    for layer in range(shape.num_layers):
        parts = {"attn_norm": (shape.hidden_size,), "attn_q": (q, shape.hidden_size), "attn_k": (kv, shape.hidden_size),
                 "attn_v": (kv, shape.hidden_size), "attn_output": (shape.hidden_size, q),
                 "ffn_norm": (shape.hidden_size,),
                 "ffn_gate" + suffix: (*experts, shape.intermediate_size, shape.hidden_size),
                 "ffn_up" + suffix: (*experts, shape.intermediate_size, shape.hidden_size),
                 "ffn_down" + suffix: (*experts, shape.hidden_size, shape.intermediate_size)}
        if experts:
            parts["ffn_gate_inp"] = (shape.num_experts, shape.hidden_size)
        if shape.has_qk_norms:
            parts.update(attn_q_norm=(shape.head_dim,), attn_k_norm=(shape.head_dim,))
        if shape.has_wide_qk_norms:
            parts.update(attn_q_norm=(q,), attn_k_norm=(kv,))
        out += [(f"blk.{layer}.{part}.weight", size) for part, size in parts.items()]
    return out


def has_more_bits(layer, num_layers):
    eighth = num_layers // 8
    return layer < eighth or layer >= 7 * num_layers // 8 or (layer - eighth) % 3 == 2


def type_of(name, size, wanted, shape):
    """The type of a tensor in a file of the format `wanted`."""
    if len(size) == 1 or ".ffn_gate_inp." in name:
        return "F32"
    if name == ("token_embd.weight" if shape.is_tied else "output.weight") and wanted.startswith("Q4"):
        return "Q6_K"
    if wanted != "Q4_K_M":
        return wanted
    if name == "token_embd.weight":
        return "Q4_K"
    _, layer, part, _ = name.split(".")
    has_more = part in ("attn_v", "ffn_down", "ffn_down_exps") and has_more_bits(int(layer), shape.num_layers)
    return "Q6_K" if has_more else "Q4_K"
