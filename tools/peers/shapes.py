"""Models to compare: published sizes, their tensors, and the type of each tensor in a format.

The recipe of the formats is llama.cpp's quantizer's (llama-quant.cpp, without an importance matrix): norms stay F32, a
tied embedding is also the output and so Q6_K in the 4-bit formats, as an output of its own is, and Q4_K_M gives more
bits to some layers' values and down projections. Routers of experts stay F32.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class DeltaNet:
    key_heads: int
    value_heads: int
    head_dim: int  # of keys and of values
    taps: int


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
    delta_net: DeltaNet | None = None  # of all layers but every fourth, whose attention then has a gate
    rotated: int = 0  # elements of a head; 0: all


LLAMA_3 = {"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}

SHAPES = {
    "tiny": Shape("llama", 1024, 256, 512, 4, 4, 2, 64, 8192, 1e-5, 500000.0),
    "llama-3.2-1b": Shape("llama", 128256, 2048, 8192, 16, 32, 8, 64, 131072, 1e-5, 500000.0, LLAMA_3),
    "qwen3-0.6b": Shape("qwen3", 151936, 1024, 3072, 28, 16, 8, 128, 40960, 1e-6, 1000000.0, has_qk_norms=True),
    "qwen3.5-0.8b": Shape("qwen35", 248320, 1024, 3584, 24, 8, 2, 256, 262144, 1e-6, 10000000.0, has_qk_norms=True,
                          delta_net=DeltaNet(16, 16, 128, 4), rotated=64),
    "olmoe-1b-7b": Shape("olmoe", 50304, 2048, 1024, 16, 16, 16, 128, 4096, 1e-5, 10000.0, has_wide_qk_norms=True,
                         is_tied=False, num_experts=64, num_experts_used=8),
}
FORMATS = ("F32", "BF16", "F16", "Q8_0", "Q4_0", "Q4_K_M")


WHOLE = ("ssm_a", "ssm_dt.bias")  # names without a kind of their own


def is_delta_net(layer, shape):
    return shape.delta_net is not None and (layer + 1) % 4 != 0


def delta_net_parts(shape):
    delta, hidden = shape.delta_net, shape.hidden_size
    keys, values = delta.key_heads * delta.head_dim, delta.value_heads * delta.head_dim
    return {"attn_norm": (hidden,), "attn_qkv": (2 * keys + values, hidden), "attn_gate": (values, hidden),
            "ssm_conv1d": (2 * keys + values, delta.taps), "ssm_dt.bias": (delta.value_heads,),
            "ssm_a": (delta.value_heads,), "ssm_beta": (delta.value_heads, hidden),
            "ssm_alpha": (delta.value_heads, hidden), "ssm_norm": (delta.head_dim,), "ssm_out": (hidden, values)}


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
        if shape.delta_net:
            parts["post_attention_norm"] = parts.pop("ffn_norm")
            parts["attn_q"] = (2 * q, shape.hidden_size)
        if is_delta_net(layer, shape):
            parts = {**delta_net_parts(shape), **{name: size for name, size in parts.items() if "attn_" not in name}}
        if experts:
            parts["ffn_gate_inp"] = (shape.num_experts, shape.hidden_size)
        if shape.has_qk_norms and not is_delta_net(layer, shape):
            parts.update(attn_q_norm=(shape.head_dim,), attn_k_norm=(shape.head_dim,))
        if shape.has_wide_qk_norms:
            parts.update(attn_q_norm=(q,), attn_k_norm=(kv,))
        out += [(f"blk.{layer}.{part}{'' if part in WHOLE else '.weight'}", size) for part, size in parts.items()]
    return out


def has_more_bits(layer, num_layers):
    eighth = num_layers // 8
    return layer < eighth or layer >= 7 * num_layers // 8 or (layer - eighth) % 3 == 2


def type_of(name, size, wanted, shape):
    """The type of a tensor in a file of the format `wanted`."""
    if len(size) == 1 or ".ffn_gate_inp." in name or ".ssm_conv1d." in name:
        return "F32"
    if name == ("token_embd.weight" if shape.is_tied else "output.weight") and wanted.startswith("Q4"):
        return "Q6_K"
    if wanted != "Q4_K_M":
        return wanted
    if name == "token_embd.weight":
        return "Q4_K"
    _, layer, part, _ = name.split(".")
    has_more = part in ("attn_v", "attn_qkv", "ffn_down", "ffn_down_exps") and has_more_bits(int(layer), shape.num_layers)
    return "Q6_K" if has_more else "Q4_K"
