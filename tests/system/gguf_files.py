"""Writes GGUF files from Hugging Face directories, like llama.cpp's converter, in plain Python."""
import json
import math
import re
import struct
from array import array
from pathlib import Path

ALIGNMENT = 32
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
TENSOR_TYPES = {"F32": 0, "F16": 1, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14, "BF16": 30, "MXFP4": 39}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

IN_LAYERS = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
             "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
             "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
             "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
             "mlp.shared_expert.down_proj": "ffn_down_shexp", "mlp.experts.gate_proj": "ffn_gate_exps",
             "mlp.experts.up_proj": "ffn_up_exps", "mlp.experts.down_proj": "ffn_down_exps"}
TWO_NORMS = {"post_attention_layernorm": "ffn_norm"}
FOUR_NORMS = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
              "post_feedforward_layernorm": "post_ffw_norm"}
OWN_NAMES = {
    "phi3": {"self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"},
    "olmo2": {"post_attention_layernorm": "post_attention_norm", "post_feedforward_layernorm": "post_ffw_norm"},
    "exaone4": {"post_attention_layernorm": "post_attention_norm", "post_feedforward_layernorm": "post_ffw_norm"},
    "glm4": {"mlp.gate_up_proj": "ffn_up", "post_self_attn_layernorm": "post_attention_norm",
             "post_mlp_layernorm": "post_ffw_norm"},
    "seed_oss": {"post_attention_layernorm": "post_attention_norm"},
    "starcoder2": {"mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"},
    "stablelm": {"self_attn.q_layernorm.norms": "attn_q_norm", "self_attn.k_layernorm.norms": "attn_k_norm"},
    "glm4moe": {"post_attention_layernorm": "post_attention_norm", "mlp.shared_experts.gate_proj": "ffn_gate_shexp",
                "mlp.shared_experts.up_proj": "ffn_up_shexp", "mlp.shared_experts.down_proj": "ffn_down_shexp"},
    "gpt-oss": {"post_attention_layernorm": "post_attention_norm", "mlp.router": "ffn_gate_inp"},
    "granitemoe": {"mlp.router": "ffn_gate_inp", "mlp.router.layer": "ffn_gate_inp",
                   "shared_mlp.gate_proj": "ffn_gate_shexp", "shared_mlp.up_proj": "ffn_up_shexp",
                   "shared_mlp.output_linear": "ffn_down_shexp"}}
DELTA_NETS = {"post_attention_layernorm": "post_attention_norm", "linear_attn.in_proj_qkv": "attn_qkv",
              "linear_attn.in_proj_z": "attn_gate", "linear_attn.in_proj_b": "ssm_beta",
              "linear_attn.in_proj_a": "ssm_alpha", "linear_attn.conv1d": "ssm_conv1d", "linear_attn.norm": "ssm_norm",
              "linear_attn.out_proj": "ssm_out"}
CONVOLUTIONS = {"operator_norm": "attn_norm", "ffn_norm": "ffn_norm", "self_attn.out_proj": "attn_output",
                "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm",
                "conv.in_proj": "shortconv.in_proj", "conv.conv": "shortconv.conv", "conv.out_proj": "shortconv.out_proj"}
MAMBA = {"mamba.in_proj": "ssm_in", "mamba.conv1d": "ssm_conv1d", "mamba.norm": "ssm_norm", "mamba.out_proj": "ssm_out"}
OWN_NAMES |= {"qwen35": DELTA_NETS, "qwen35moe": DELTA_NETS, "lfm2": CONVOLUTIONS, "lfm2moe": CONVOLUTIONS,
              "qwen3next": {**DELTA_NETS, "linear_attn.in_proj_ba": "ssm_ba"},
              "granitehybrid": {**OWN_NAMES["granitemoe"], **MAMBA},
              "falcon-h1": {**MAMBA, "pre_ff_layernorm": "ffn_norm", "feed_forward.gate_proj": "ffn_gate",
                            "feed_forward.up_proj": "ffn_up", "feed_forward.down_proj": "ffn_down"},
              "nemotron_h": {"norm": "attn_norm", "mixer.q_proj": "attn_q", "mixer.k_proj": "attn_k",
                             "mixer.v_proj": "attn_v", "mixer.o_proj": "attn_output", "mixer.up_proj": "ffn_up",
                             "mixer.down_proj": "ffn_down",
                             **{name.replace("mamba", "mixer"): part for name, part in MAMBA.items()}}}
OWN_NAMES["mamba2"] = OWN_NAMES["nemotron_h"]
FIRST_MAMBA = {"x_proj": "ssm_x", "dt_proj": "ssm_dt", "dt_layernorm": "ssm_dt_norm", "b_layernorm": "ssm_b_norm",
               "c_layernorm": "ssm_c_norm"}
OWN_NAMES["mamba"] = {**OWN_NAMES["mamba2"], **{f"mixer.{name}": part for name, part in FIRST_MAMBA.items()}}
OWN_NAMES["jamba"] = {**MAMBA, **{f"mamba.{name}": part for name, part in FIRST_MAMBA.items()},
                      "pre_ff_layernorm": "ffn_norm", "mlp.router": "ffn_gate_inp"}
OWN_NAMES["nemotron_h_moe"] = {
    **OWN_NAMES["nemotron_h"], "mixer.gate": "ffn_gate_inp", "mixer.shared_experts.up_proj": "ffn_up_shexp",
    "mixer.shared_experts.down_proj": "ffn_down_shexp", "mixer.fc1_latent_proj": "ffn_latent_down",
    "mixer.fc2_latent_proj": "ffn_latent_up"}
LATENTS = {"self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
           "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
           "self_attn.kv_b_proj": "attn_kv_b", "self_attn.k_b_proj": "attn_k_b", "self_attn.v_b_proj": "attn_v_b",
           "mlp.shared_experts.gate_proj": "ffn_gate_shexp", "mlp.shared_experts.up_proj": "ffn_up_shexp",
           "mlp.shared_experts.down_proj": "ffn_down_shexp"}
OWN_NAMES |= {"deepseek2": LATENTS, "minicpm3": LATENTS}
OWN_NAMES["kimi-linear"] = {
    **LATENTS, **{f"self_attn.{part}_conv1d": f"ssm_conv1d_{part}" for part in "qkv"},
    **{f"self_attn.{part}_proj": f"ssm_{part}" for part in ("f_a", "f_b", "g_a", "g_b")},
    "self_attn.b_proj": "ssm_beta", "self_attn.o_norm": "ssm_norm"}
# Of older decoders; modules that are called as whole parts elsewhere have their layer's part in front.
GPT2 = {"ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up",
        "mlp.c_proj": "ffn_down"}
HUNYUAN = {"self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm", "mlp.gate.wg": "ffn_gate_inp",
           "mlp.shared_mlp.gate_proj": "ffn_gate_shexp", "mlp.shared_mlp.up_proj": "ffn_up_shexp",
           "mlp.shared_mlp.down_proj": "ffn_down_shexp"}
OWN_NAMES |= {"gpt2": GPT2, "starcoder": GPT2, "hunyuan-dense": HUNYUAN, "hunyuan-moe": HUNYUAN,
              "gptneox": {"attention.query_key_value": "attn_qkv", "attention.dense": "attn_output",
                          "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down"},
              "phi2": {"self_attn.dense": "attn_output", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down"},
              "ernie4_5-moe": {"mlp.shared_experts.gate_proj": "ffn_gate_shexp", "mlp.shared_experts.up_proj": "ffn_up_shexp",
                               "mlp.shared_experts.down_proj": "ffn_down_shexp"}}
EXAONE = {"ln_1": "attn_norm", "ln_2": "ffn_norm", **{f"attn.attention.{part}_proj": f"attn_{part}" for part in "qkv"},
          "attn.attention.out_proj": "attn_output", "mlp.c_fc_0": "ffn_gate", "mlp.c_fc_1": "ffn_up",
          "mlp.c_proj": "ffn_down"}
FALCON = {"self_attention.query_key_value": "attn_qkv", "self_attention.dense": "attn_output",
          "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down", "ln_attn": "attn_norm_2",
          "ln_mlp": "attn_norm"}
OWN_NAMES |= {"exaone": EXAONE, "falcon": FALCON, "dots1": OWN_NAMES["ernie4_5-moe"],
              "apertus": {"attention_layernorm": "attn_norm", "feedforward_layernorm": "ffn_norm"}}
USUAL_SIZES = {"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
               "n_positions": "max_position_embeddings", "n_inner": "intermediate_size", "moe_k": "num_experts_per_tok",
               "moe_topk": "num_experts_per_tok", "moe_num_experts": "num_experts",
               "moe_num_shared_experts": "n_shared_experts", "ffn_hidden_size": "intermediate_size",
               "num_kv_heads": "num_key_value_heads"}
OWN_NAMES["gemma4"] = {
    "router.proj": "ffn_gate_inp", "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
    "post_feedforward_layernorm_1": "post_ffw_norm_1", "post_feedforward_layernorm_2": "post_ffw_norm_2",
    "per_layer_input_gate": "inp_gate", "per_layer_projection": "proj", "post_per_layer_input_norm": "post_norm"}
WITHOUT_KIND = {"layer_scalar": "layer_output_scale.weight", "router.scale": "ffn_gate_inp.scale",
                "router.per_expert_scale": "ffn_down_exps.scale", "pre_ff_layernorm.weight": "ffn_norm", "mixer.gate.e_score_correction_bias": "exp_probs_b.bias",
                "self_attn.sinks": "attn_sinks.weight", "mlp.moe_statics.e_score_correction_bias": "exp_probs_b.bias", "mlp.gate.moe_statics.e_score_correction_bias": "exp_probs_b.bias",
                "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
                "mlp.e_score_correction_bias": "exp_probs_b.bias",
                "mixer.A_log": "ssm_a", "mixer.D": "ssm_d", "mixer.dt_bias": "ssm_dt.bias", "mamba.A_log": "ssm_a", "mamba.D": "ssm_d", "mamba.dt_bias": "ssm_dt.bias", "linear_attn.A_log": "ssm_a", "linear_attn.dt_bias": "ssm_dt.bias", "self_attn.A_log": "ssm_a", "self_attn.dt_bias": "ssm_dt.bias", "mlp.expert_bias": "exp_probs_b.bias"}
MULTIPLIERS = {"embedding_multiplier": "embedding_scale", "attention_multiplier": "attention.scale",
               "residual_multiplier": "residual_scale", "logits_scaling": "logit_scale", "logit_scale": "logit_scale"}
ALL_WINDOWS = ("mistral", "mixtral", "phi3", "starcoder2", "ministral3")
INTERLEAVED = ("llama", "arcee", "smollm3", "granite", "granitemoe", "granitehybrid", "nemotron_h", "nemotron_h_moe",
               "mistral3", "olmo")
OUTSIDE = {"embed_tokens_per_layer": "per_layer_token_embd", "per_layer_model_projection": "per_layer_model_proj",
           "per_layer_projection_norm": "per_layer_proj_norm", "embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output", "embedding_norm": "token_embd_norm",
           "embeddings": "token_embd", "norm_f": "output_norm", "final_layernorm": "output_norm",
           "wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "embed_in": "token_embd", "embed_out": "output",
           "word_embeddings": "token_embd",
           "final_layer_norm": "output_norm"}
ARCHITECTURES = {"iquestcoder": "llama", "internlm3": "llama", "gemma": "gemma", "qwen2_5_vl": "qwen2vl", "qwen2_5_vl_text": "qwen2vl", "qwen3_vl": "qwen3vl",
                 "qwen3_vl_text": "qwen3vl", "seed_oss": "seed_oss", "arcee": "arcee", "ernie4_5": "ernie4_5",
                 "llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma2": "gemma2",
                 "gemma3_text": "gemma3", "gemma4_text": "gemma4", "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe", "olmoe": "olmoe",
                 "mixtral": "llama", "glm4_moe": "glm4moe", "gpt_oss": "gpt-oss", "granitemoe": "granitemoe",
                 "granitemoeshared": "granitemoe",
                 "phi3": "phi3", "smollm3": "smollm3", "olmo2": "olmo2", "olmo3": "olmo2",
                 "granite": "granite", "glm4": "glm4", "exaone4": "exaone4", "cohere2": "cohere2",
                 "stablelm": "stablelm", "starcoder2": "starcoder2", "ministral3": "mistral3",
                 "qwen3_5_text": "qwen35", "qwen3_5_moe_text": "qwen35moe", "lfm2": "lfm2", "lfm2_moe": "lfm2moe",
                 "qwen3_next": "qwen3next", "granitemoehybrid": "granitehybrid",
                 "nemotron_h": "nemotron_h", "falcon_h1": "falcon-h1", "mamba2": "mamba2",
                 "mamba": "mamba", "falcon_mamba": "mamba", "jamba": "jamba",
                 "deepseek_v2": "deepseek2", "deepseek_v3": "deepseek2", "minicpm3": "minicpm3",
                 "gpt2": "gpt2", "gpt_bigcode": "starcoder", "gpt_neox": "gptneox", "phi": "phi2", "nemotron": "nemotron",
                 "olmo": "olmo", "cohere": "command-r", "hunyuan_v1_dense": "hunyuan-dense", "hunyuan_v1_moe": "hunyuan-moe",
                 "ernie4_5_moe": "ernie4_5-moe", "kimi_linear": "kimi-linear", "exaone": "exaone", "jais2": "jais2",
                 "dots1": "dots1", "minimax_m2": "minimax-m2", "mellum": "mellum", "falcon": "falcon",
                 "apertus": "apertus"}
MIXTURE_NAMES = {"block_sparse_moe": "mlp", ".mixer.experts.": ".mlp.experts.", ".w1.": ".gate_proj.", ".w2.": ".down_proj.", ".w3.": ".up_proj.",
                 ".mlp.input_linear.weight": ".mlp.experts.gate_up_proj",
                 ".mlp.output_linear.weight": ".mlp.experts.down_proj", ".feed_forward.": ".mlp."}


def arch_of(config):
    arch = ARCHITECTURES[config["model_type"]]
    return "nemotron_h_moe" if "moe" in config.get("layers_block_type", []) else arch


def pack_string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def pack_value(kind, value):
    if kind == STRING:
        return pack_string(value)
    if kind == ARRAY:
        element, items = value
        return struct.pack("<IQ", element, len(items)) + b"".join(pack_value(element, item) for item in items)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], value)


def write_gguf(path, metadata, tensors=()):
    """metadata: (key, kind, value); tensors: (name, type, shape as in PyTorch, bytes)."""
    head = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(metadata))
    for key, kind, value in metadata:
        head += pack_string(key) + struct.pack("<I", kind) + pack_value(kind, value)
    data = b""
    for name, kind, shape, content in tensors:
        data += b"\0" * (-len(data) % ALIGNMENT)
        head += pack_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape),
                                                TENSOR_TYPES[kind], len(data))
        data += content
    path = Path(path)
    path.write_bytes(head + b"\0" * (-len(head) % ALIGNMENT) + data + b"\0" * (-len(data) % ALIGNMENT))
    return path


def read_safetensors(directory):
    """{name: (dtype, shape, bytes)} of all files of a directory but the goldens."""
    found = {}
    for file in sorted(Path(directory).glob("model*.safetensors")):
        whole = file.read_bytes()
        size = struct.unpack("<Q", whole[:8])[0]
        for name, entry in json.loads(whole[8:8 + size]).items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            found[name] = (entry["dtype"], entry["shape"], whole[8 + size + begin:8 + size + end])
    return found


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, content) in sorted(tensors.items()):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def floats(content, dtype):
    if dtype == "BF16":
        return struct.unpack(f"<{len(content) // 2}f", b"".join(b"\0\0" + content[i:i + 2]
                                                                for i in range(0, len(content), 2)))
    letter, size = ("e", 2) if dtype == "F16" else ("f", 4)
    return struct.unpack(f"<{len(content) // size}{letter}", content)


def q8_0(content, dtype):
    """Blocks of 32 numbers: a float16 scale and 32 signed bytes."""
    numbers, out = floats(content, dtype), b""
    for begin in range(0, len(numbers), 32):
        block = numbers[begin:begin + 32]
        scale = struct.pack("<e", max(map(abs, block)) / 127)
        step = struct.unpack("<e", scale)[0] or 1.0
        out += scale + struct.pack("<32b", *(max(-127, min(127, round(x / step))) for x in block))
    return out


def interleave(content, rows, heads):
    """Reorders the rows of each head so that rows that rotate together are neighbours."""
    width, size = len(content) // rows, rows // heads
    order = [head * size + half * (size // 2) + i for head in range(heads) for i in range(size // 2) for half in (0, 1)]
    return b"".join(content[row * width:(row + 1) * width] for row in order)


def in_turns(content, count, config, size, first=0):
    """Reorders the value heads of a delta net, `size` of `count` parts each behind `first` others: the first of each key
    head, then the second of each."""
    groups, heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
    order = [group * (heads // groups) + turn for turn in range(heads // groups) for group in range(groups)]
    width = len(content) // count
    begin = first * width
    return content[:begin] + b"".join(content[begin + head * size * width:begin + (head + 1) * size * width]
                                      for head in order)


def delta_net_content(part, shape, content, config):
    """A tensor of a delta net, by its name in the file."""
    size, keys = config["linear_value_head_dim"], config["linear_num_key_heads"] * config["linear_key_head_dim"]
    if part in ("ssm_beta", "ssm_alpha", "ssm_a", "ssm_dt"):
        return in_turns(content, shape[0], config, 1)
    if part in ("attn_qkv", "ssm_conv1d"):
        return in_turns(content, shape[0], config, size, 2 * keys)
    if part == "attn_gate":
        return in_turns(content, shape[0], config, size)
    if part == "ssm_out":
        width = len(content) // shape[0]
        return b"".join(in_turns(content[at:at + width], shape[1], config, size) for at in range(0, len(content), width))
    return content


def with_multipliers(name, shape, content, config):
    """A tensor of Falcon-H1, which the converter multiplies."""
    gate, down = config["mlp_multipliers"]
    part = name.split(".")[-2]
    factor = {"ffn_gate": gate, "ffn_down": down, "attn_output": config["attention_out_multiplier"],
              "attn_k": config["key_multiplier"], "ssm_out": config["ssm_out_multiplier"],
              "ssm_in": config["ssm_in_multiplier"], "output": config["lm_head_multiplier"],
              "token_embd": config["embedding_multiplier"]}.get(part, 1.0)
    if part in ("attn_q", "attn_k", "attn_v"):
        factor *= config["attention_in_multiplier"]
    numbers = array("f", content)
    width = math.prod(shape[1:])
    inner = config["mamba_d_ssm"] or config["mamba_expand"] * config["hidden_size"]
    state = config["mamba_n_groups"] * config["mamba_d_state"]
    parts = [index for index, size in enumerate((inner, inner, state, state, config["mamba_n_heads"]))
             for _ in range(size * width)]
    for i, value in enumerate(numbers):
        numbers[i] = value * factor * (config["ssm_multipliers"][parts[i]] if part == "ssm_in" else 1.0)
    return numbers.tobytes()


def divide_by_key_head(tensors, config):
    """Qwen3-Next's in_proj_qkvz, whose rows stand key head by key head, as queries, keys and values, and gates."""
    if config["model_type"] != "qwen3_next":
        return tensors
    keys, heads = config["linear_key_head_dim"], config["linear_num_key_heads"]
    values = config["linear_num_value_heads"] // heads * config["linear_value_head_dim"]
    out = {}
    for name, (dtype, shape, content) in tensors.items():
        stem, _, rest = name.partition("in_proj_qkvz")
        if not rest:
            out[name] = (dtype, shape, content)
            continue
        width, whole = len(content) // shape[0], 2 * keys + 2 * values
        parts, begin = [], 0
        for size in (keys, keys, values, values):
            parts.append(b"".join(content[(head * whole + begin) * width:(head * whole + begin + size) * width]
                                  for head in range(heads)))
            begin += size
        out[f"{stem}in_proj_qkv{rest}"] = (dtype, [heads * (whole - values), shape[1]], b"".join(parts[:3]))
        out[f"{stem}in_proj_z{rest}"] = (dtype, [heads * values, shape[1]], parts[3])
    return out


def gguf_name(name, arch):
    for prefix in ("model.language_model.", "model.text_model.", "language_model.model.", "language_model.", "model.",
                   "backbone.", "transformer.", "gpt_neox."):
        if name.startswith(prefix):
            name = name[len(prefix):]
            break
    for part, other in WITHOUT_KIND.items():
        if name.endswith(f".{part}") and (other != "ffn_norm" or arch == "falcon-h1"):
            return f"blk.{name.split('.')[1]}.{other}"
    stem, kind = name.rsplit(".", 1)
    stem = "layers." + stem[2:] if stem.startswith("h.") else stem
    if not stem.startswith("layers."):
        return f"{OUTSIDE[stem]}.{kind}"
    _, index, part = stem.split(".", 2)
    norms = FOUR_NORMS if arch in ("gemma2", "gemma3", "gemma4") else TWO_NORMS
    return f"blk.{index}.{({**IN_LAYERS, **norms, **OWN_NAMES.get(arch, {})})[part]}.{kind}"


def take_rows(content, rows, first, step, count):
    """The rows first, first + step, ... of each of several matrices with `rows` rows."""
    width = len(content) // rows
    return b"".join(content[at * width:(at + 1) * width] for begin in range(0, rows, count)
                    for at in range(begin + first, begin + count, step))


def transposed(content, experts, length, rows):
    """Matrices [experts, length, rows] of float32 as [experts, rows, length]."""
    numbers, size = array("f", content), length * rows
    return b"".join(numbers[expert * size + row:(expert + 1) * size:rows].tobytes()
                    for expert in range(experts) for row in range(rows))


def mxfp4_blocks(blocks, scales):
    """The scale of 32 numbers, then 16 bytes: number i in the low half of byte i, 16 + i in the high half."""
    out = b""
    for index, scale in enumerate(scales):
        pairs = blocks[16 * index:16 * index + 16]
        numbers = [half for byte in pairs for half in (byte & 15, byte >> 4)]
        out += bytes([scale, *(low | high << 4 for low, high in zip(numbers[:16], numbers[16:]))])
    return out


def gpt_oss_experts(tensors):
    """Stacks of gpt-oss as converted: gate and up, which take turns in their rows, apart, and numbers not transposed."""
    out = {}
    for name, (dtype, shape, content) in tensors.items():
        block, _, rest = name.partition(".mlp.experts.")
        if not rest or rest.endswith("_scales"):
            out |= {} if rest else {name: (dtype, shape, content)}
            continue
        kind = "bias" if rest.endswith("_bias") else "weight"
        if rest.endswith("_blocks"):
            content = mxfp4_blocks(content, tensors[name.removesuffix("_blocks") + "_scales"][2])
            dtype, shape = "MXFP4", [shape[0], shape[1], 32 * shape[2]]
        elif kind == "weight":
            content, shape = transposed(content, *shape), [shape[0], shape[2], shape[1]]
        if rest.startswith("down_proj"):
            out[f"{block}.mlp.experts.down_proj.{kind}"] = (dtype, shape, content)
            continue
        for first, projection in enumerate(("gate_proj", "up_proj")):
            rows = take_rows(content, shape[0] * shape[1], first, 2, shape[1])
            out[f"{block}.mlp.experts.{projection}.{kind}"] = (dtype, [shape[0], shape[1] // 2, *shape[2:]], rows)
    return out


def halves(content, rows, count):
    """The first half of the rows of each of several matrices, and the second."""
    width = len(content) // rows * count
    pieces = [content[at:at + width] for at in range(0, len(content), width)]
    return (b"".join(piece[:width // 2] for piece in pieces), b"".join(piece[width // 2:] for piece in pieces))


def stack_experts(tensors):
    """Experts one by one, or stacked as transformers 5 has them, become one tensor for each projection."""
    if any(name.endswith("experts.down_proj_bias") for name in tensors):
        return gpt_oss_experts(tensors)
    out, parts = {}, {}
    for name, (dtype, shape, content) in tensors.items():
        name = re.sub(r"(layers\.\d+)\.experts\.", r"\1.mlp.experts.", name)  # Gemma 4's
        for old, new in MIXTURE_NAMES.items():
            name = name.replace(old, new)
        block, _, rest = name.partition(".mlp.experts.")
        if name.endswith(("experts.gate_up_proj", "shared_mlp.input_linear.weight")):
            rows = math.prod(shape[:-1])
            stem = f"{block}.mlp.experts" if rest else name.removesuffix(".input_linear.weight")
            for projection, half in zip(("gate_proj", "up_proj"), halves(content, rows, shape[-2])):
                out[f"{stem}.{projection}.weight"] = (dtype, [*shape[:-2], shape[-2] // 2, shape[-1]], half)
        elif "_layernorm.norms." in name:  # of each head
            stem, head, kind = name.rsplit(".", 2)
            parts.setdefault(f"{stem}.{kind}", {})[int(head)] = (dtype, shape, content)
        elif not rest:
            out[name] = (dtype, shape, content)
        elif rest == "down_proj":
            out[f"{name}.weight"] = (dtype, shape, content)
        else:
            expert, projection = rest.split(".", 1)
            parts.setdefault(f"{block}.mlp.experts.{projection}", {})[int(expert)] = (dtype, shape, content)
    for name, experts in parts.items():
        dtype, shape, _ = experts[0]
        out[name] = (dtype, [len(experts), *shape], b"".join(experts[i][2] for i in range(len(experts))))
    return out


def rope_of(config):
    """Theta, the scaling of layers without a window, and the theta of those with one."""
    ropes = config.get("rope_parameters") or {"rope_type": "default", "rope_theta": 10000.0}
    full = ropes.get("full_attention", ropes)
    return full["rope_theta"], full, ropes.get("sliding_attention", full)["rope_theta"]


def llama3_divisors(scaling, theta, head_dim):
    """The divisors of frequencies in transformers' _compute_llama3_parameters."""
    factor, low, high = scaling["factor"], scaling["low_freq_factor"], scaling["high_freq_factor"]
    original, divisors = scaling["original_max_position_embeddings"], []
    for i in range(head_dim // 2):
        wavelength = 2 * math.pi * theta ** (2 * i / head_dim)
        kept = min(max((original / wavelength - low) / (high - low), 0.0), 1.0)
        divisors.append(1 / ((1 - kept) / factor + kept))
    return divisors


SPLIT_LATENTS = ("deepseek_v3", "kimi_linear")
# The usual names of its fields.
KIMI_FIELDS = {"model_max_length": "max_position_embeddings", "num_experts_per_token": "num_experts_per_tok",
               "num_shared_experts": "n_shared_experts"}


def add_latents(add, config):
    """The sizes of latent attention; the newer files' also say what the cache holds."""
    nope, rope, value = (config[key] for key in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    if config["q_lora_rank"] is not None:
        add("attention.q_lora_rank", U32, config["q_lora_rank"])
    add("attention.kv_lora_rank", U32, config["kv_lora_rank"])
    add("rope.dimension_count", U32, rope)
    is_split = config["model_type"] in SPLIT_LATENTS
    add("attention.key_length", U32, config["kv_lora_rank"] + rope if is_split else nope + rope)
    add("attention.value_length", U32, config["kv_lora_rank"] if is_split else value)
    if is_split:
        add("attention.key_length_mla", U32, nope + rope)
        add("attention.value_length_mla", U32, value)


def split_latents(tensors, config):
    """kv_b_proj of float32 as two tensors, as newer files have it: the keys' matrices transposed."""
    if config["model_type"] not in SPLIT_LATENTS:
        return tensors
    heads, nope, value, rank = (config[key] for key in ("num_attention_heads", "qk_nope_head_dim", "v_head_dim", "kv_lora_rank"))
    out = {}
    for name, (dtype, shape, content) in tensors.items():
        stem, _, rest = name.partition("kv_b_proj")
        if not rest:
            out[name] = (dtype, shape, content)
            continue
        keys, values = b"", b""
        for head in range(heads):
            begin = head * (nope + value) * rank * 4
            middle = begin + nope * rank * 4
            keys += content[begin:middle]
            values += content[middle:middle + value * rank * 4]
        out[f"{stem}k_b_proj{rest}"] = (dtype, [heads, rank, nope], transposed(keys, heads, nope, rank))
        out[f"{stem}v_b_proj{rest}"] = (dtype, [heads, value, rank], values)
    return out


def with_usual_sizes(config):
    """The sizes of a config by the names that most families have."""
    usual = {USUAL_SIZES.get(key, key): value for key, value in config.items()}
    if config["model_type"] in ("gpt2", "gpt_bigcode"):
        usual["intermediate_size"] = usual.get("intermediate_size") or 4 * usual["hidden_size"]
        usual["num_key_value_heads"] = 1 if config.get("multi_query") else usual["num_attention_heads"]
    if config["model_type"] == "falcon" and not config["new_decoder_architecture"]:
        usual["num_key_value_heads"] = 1 if config["multi_query"] else usual["num_attention_heads"]
    return usual


def joined_heads(content, rows, heads):
    """Rows of queries, keys and values that stand head by head, as all queries, all keys and all values."""
    width, size = len(content) // rows, rows // (3 * heads)
    order = [(3 * head + kind) * size for kind in range(3) for head in range(heads)]
    return b"".join(content[row * width:(row + size) * width] for row in order)


def joined_groups(content, rows, heads, groups):
    """Rows that stand group by group, its queries, a key and a value, as all queries, all keys and all values."""
    queries = heads // groups
    width, size = len(content) // rows, rows // (heads + 2 * groups)
    order = [group * (queries + 2) + i for group in range(groups) for i in range(queries)]
    order += [group * (queries + 2) + queries + kind for kind in range(2) for group in range(groups)]
    return b"".join(content[head * size * width:(head + 1) * size * width] for head in order)


def add_mixed_layers(add, config, types):
    """The sizes of Gemma 4's layers, which differ."""
    sizes = config["per_layer_config"]
    full_dim = next(iter(sizes.values()))["head_dim"]
    for length in ("key_length", "value_length"):
        add(f"attention.{length}", U32, full_dim)
        add(f"attention.{length}_swa", U32, config["head_dim"])
    add("rope.dimension_count", U32, full_dim)
    add("rope.dimension_count_swa", U32, config["head_dim"])
    heads = [sizes.get(str(i), {}).get("num_key_value_heads", config["num_key_value_heads"]) for i in range(len(types))]
    add("attention.head_count_kv", *((U32, heads[0]) if len(set(heads)) == 1 else (ARRAY, (I32, heads))))
    shared, width = config["num_kv_shared_layers"], config["intermediate_size"]
    add("attention.shared_kv_layers", U32, shared)
    if config["use_double_wide_mlp"]:
        add("feed_forward_length", ARRAY, (I32, [width if i < len(types) - shared else 2 * width for i in range(len(types))]))
    else:
        add("feed_forward_length", U32, width)
    add("embedding_length_per_layer_input", U32, config["hidden_size_per_layer_input"])
    add("attention.sliding_window_pattern", ARRAY, (BOOL, [kind == "sliding_attention" for kind in types]))
    add("final_logit_softcapping", F32, config["final_logit_softcapping"] or 0.0)
    if config["enable_moe_block"]:
        for key, field in {"expert_count": "num_experts", "expert_used_count": "top_k_experts",
                           "expert_feed_forward_length": "moe_intermediate_size"}.items():
            add(key, U32, config[field])


def config_metadata(config):
    arch = arch_of(config)
    config = with_usual_sizes(config)
    theta, scaling, local_theta = rope_of(config)
    types = config.get("layer_types") or config.get("layers_block_type") or []
    config = {"num_hidden_layers": len(types), **{KIMI_FIELDS.get(key, key): value for key, value in config.items()}}
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    out = [("general.architecture", STRING, arch)]

    def add(key, kind, value):
        out.append((f"{arch}.{key}", kind, value))

    for key, field in {"block_count": "num_hidden_layers", "context_length": "max_position_embeddings",
                       "embedding_length": "hidden_size", "feed_forward_length": "intermediate_size",
                       "attention.head_count": "num_attention_heads", "attention.head_count_kv": "num_key_value_heads",
                       "vocab_size": "vocab_size"}.items():
        if field in config:
            add(key, U32, config[field])
    if "kv_lora_rank" in config:
        add_latents(add, config)
    else:
        add("attention.key_length", U32, head_dim)
        add("attention.value_length", U32, head_dim)
    if config.get("clip_qkv"):
        add("attention.clamp_kqv", F32, config["clip_qkv"])
    if arch == "olmo":
        add("attention.layer_norm_epsilon", F32, 1e-5)
    elif arch == "nemotron":
        add("attention.layer_norm_epsilon", F32, config["norm_eps"])
    elif "rms_norm_eps" in config or "norm_eps" in config:
        add("attention.layer_norm_rms_epsilon", F32, config.get("rms_norm_eps") or config["norm_eps"])
    else:
        add("attention.layer_norm_epsilon", F32,
            next(config[key] for key in ("layer_norm_eps", "norm_epsilon", "layer_norm_epsilon") if key in config))
    if "use_parallel_residual" in config and arch == "gptneox":
        add("use_parallel_residual", BOOL, config["use_parallel_residual"])
    if "partial_rotary_factor" in scaling and arch != "gemma4":
        add("rope.dimension_count", U32, int(head_dim * scaling["partial_rotary_factor"]))
    for field, key in MULTIPLIERS.items():
        if field in config:
            add(key, F32, config[field])
    if "llama_4_scaling_beta" in scaling:
        add("attention.temperature_scale", F32, scaling["llama_4_scaling_beta"])
    if scaling["rope_type"] == "longrope":
        original, length = config["original_max_position_embeddings"], config["max_position_embeddings"]
        add("rope.scaling.original_context_length", U32, original)
        add("rope.scaling.attn_factor", F32, math.sqrt(1 + math.log(length / original) / math.log(original)))
    add("rope.freq_base", F32, theta)
    if scaling["rope_type"] in ("linear", "yarn"):
        add("rope.scaling.type", STRING, scaling["rope_type"])
        add("rope.scaling.factor", F32, scaling["factor"])
    if scaling["rope_type"] == "yarn":
        add("rope.scaling.original_context_length", U32, scaling["original_max_position_embeddings"])
        if "mscale_all_dim" in scaling:
            tenth = 0.1 if "kv_lora_rank" in config else 1.0
            add("rope.scaling.yarn_log_multiplier", F32, tenth * scaling["mscale_all_dim"])
    if "num_experts_per_tok" in config:
        add("expert_count", U32, next(config[key] for key in ("num_experts", "num_local_experts", "n_routed_experts")
                                      if key in config))
        add("expert_used_count", U32, config["num_experts_per_tok"])
        for key, field in {"expert_feed_forward_length": "moe_intermediate_size",
                           "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
                           "expert_shared_count": "n_shared_experts", "expert_group_count": "n_group",
                           "expert_group_used_count": "topk_group",
                           "leading_dense_block_count": "first_k_dense_replace",
                           "interleave_moe_layer_step": "moe_layer_interval"}.items():
            if config.get(field) is not None:
                add(key, U32, config[field])
        if arch == "ernie4_5-moe":
            add("leading_dense_block_count", U32, config["moe_layer_start_index"])
        if "num_dense_layers" in config:
            add("leading_dense_block_count", U32, config["num_dense_layers"])
        if config.get("shared_intermediate_size"):
            add("expert_shared_feed_forward_length", U32, config["shared_intermediate_size"])
        if "routed_scaling_factor" in config:
            add("expert_weights_scale", F32, config["routed_scaling_factor"])
            add("expert_gating_func", U32, 1 if config["model_type"] == "deepseek_v2" else 2)
        if "norm_topk_prob" in config:
            add("expert_weights_norm", BOOL, config["norm_topk_prob"])
    if arch in ("qwen35", "qwen35moe", "qwen3next"):
        for key, field in {"conv_kernel": "linear_conv_kernel_dim", "state_size": "linear_key_head_dim",
                           "group_count": "linear_num_key_heads", "time_step_rank": "linear_num_value_heads"}.items():
            add(f"ssm.{key}", U32, config[field])
        add("ssm.inner_size", U32, config["linear_value_head_dim"] * config["linear_num_value_heads"])
        add("full_attention_interval", U32, 4)
        if any((kind == "full_attention") != ((i + 1) % 4 == 0) for i, kind in enumerate(types)):
            add("attention.recurrent_layers", ARRAY, (BOOL, [kind == "linear_attention" for kind in types]))
    if arch == "granitehybrid":
        for key, field in {"conv_kernel": "mamba_d_conv", "state_size": "mamba_d_state", "group_count": "mamba_n_groups",
                           "time_step_rank": "mamba_n_heads"}.items():
            add(f"ssm.{key}", U32, config[field])
        add("ssm.inner_size", U32, config["mamba_expand"] * config["hidden_size"])
        add("rope.scaling.finetuned", BOOL, config["position_embedding_type"] == "rope")
        heads = config["num_key_value_heads"]
        out = [entry for entry in out if not entry[0].endswith((".head_count_kv", ".feed_forward_length"))]
        add("attention.head_count_kv", ARRAY, (I32, [heads if kind == "full_attention" else 0 for kind in types]))
        add("feed_forward_length", U32, config["intermediate_size" if config["num_local_experts"] else "shared_intermediate_size"])
    if arch.startswith("nemotron_h"):
        for key, field in {"conv_kernel": "conv_kernel", "state_size": "ssm_state_size", "group_count": "n_groups",
                           "time_step_rank": "mamba_num_heads"}.items():
            add(f"ssm.{key}", U32, config[field])
        add("ssm.inner_size", U32, config["mamba_num_heads"] * config["mamba_head_dim"])
        is_mixture = arch == "nemotron_h_moe"
        out = [entry for entry in out if not entry[0].endswith((".head_count_kv", ".feed_forward_length")) and
               (is_mixture or ".expert_" not in entry[0])]
        columns = ("moe", "moe_intermediate_size") if is_mixture else ("mlp", "intermediate_size")
        for key, kind, field in (("attention.head_count_kv", "full_attention", "num_key_value_heads"),
                                 ("feed_forward_length", *columns)):
            add(key, ARRAY, (I32, [config[field] if one == kind else 0 for one in types]))
        if is_mixture:
            add("expert_shared_feed_forward_length", U32, config["moe_shared_expert_intermediate_size"])
        if config.get("moe_latent_size"):
            add("moe_latent_size", U32, config["moe_latent_size"])
    if arch in ("falcon-h1", "mamba2"):
        prefix = "mamba_" if arch == "falcon-h1" else ""
        keys = {"conv_kernel": ("d_conv", "conv_kernel"), "state_size": ("d_state", "state_size"),
                "group_count": ("n_groups", "n_groups"), "time_step_rank": ("n_heads", "num_heads")}
        for key, (falcon, alone) in keys.items():
            add(f"ssm.{key}", U32, config[f"mamba_{falcon}" if arch == "falcon-h1" else alone])
        inner = config.get("mamba_d_ssm") or config[f"{prefix}expand"] * config["hidden_size"]
        add("ssm.inner_size", U32, inner)
    if arch in ("mamba", "jamba"):
        prefix = "mamba_" if arch == "jamba" else ""
        keys = {"conv_kernel": ("conv_kernel", "d_conv"), "state_size": ("state_size", "d_state"),
                "time_step_rank": ("time_step_rank", "dt_rank")}
        for key, (alone, beside) in keys.items():
            add(f"ssm.{key}", U32, config[f"mamba_{beside}" if prefix else alone])
        add("ssm.inner_size", U32, config[f"{prefix}expand"] * config["hidden_size"])
    if arch == "mamba":
        add("ssm.dt_b_c_rms", BOOL, config["model_type"] == "falcon_mamba")
    if arch == "jamba":
        heads, period, offset = (config[key] for key in ("num_key_value_heads", "attn_layer_period", "attn_layer_offset"))
        out = [entry for entry in out if not entry[0].endswith(".head_count_kv")]
        add("attention.head_count_kv", ARRAY, (I32, [heads if i % period == offset else 0
                                                     for i in range(config["num_hidden_layers"])]))
    if arch == "falcon-h1":  # its multipliers are in the weights
        out = [entry for entry in out if not entry[0].endswith("_scale")]
    if arch in ("mamba", "mamba2"):
        out = [entry for entry in out if ".attention." not in entry[0] and not entry[0].endswith(".feed_forward_length")]
        for key, kind, value in (("attention.head_count", U32, 0), ("feed_forward_length", U32, 0),
                                 ("attention.layer_norm_rms_epsilon", F32, config["layer_norm_epsilon"])):
            add(key, kind, value)
    if arch == "kimi-linear":
        out = [entry for entry in out if not entry[0].endswith(".head_count_kv")]
        add("attention.head_count_kv", ARRAY, (I32, [kind == "full_attention" for kind in types]))
        add("kda.head_dim", U32, config["linear_head_dim"])
        add("ssm.conv_kernel", U32, config["linear_conv_kernel_dim"])
        add("leading_dense_block_count", U32, config["mlp_layer_types"].count("dense"))
    if arch.startswith("lfm2"):
        heads = config["num_key_value_heads"]
        out = [entry for entry in out if not entry[0].endswith((".head_count_kv", ".feed_forward_length"))]
        add("attention.head_count_kv", ARRAY, (I32, [0 if kind == "conv" else heads for kind in types]))
        add("shortconv.l_cache", U32, config["conv_L_cache"])
        width = config["intermediate_size"]
        if config.get("block_auto_adjust_ff_dim"):
            unit = config["block_multiple_of"]
            width = unit * -(-int(config["block_ffn_dim_multiplier"] * (2 * width // 3)) // unit)
        add("feed_forward_length", U32, width)
    if config.get("sliding_window") and ("sliding_attention" in types or config["model_type"] in ALL_WINDOWS):
        add("attention.sliding_window", U32, config["sliding_window"])
    if arch in ("olmo2", "exaone4", "cohere2", "mellum") and types:
        add("attention.sliding_window_pattern", ARRAY, (BOOL, [kind == "sliding_attention" for kind in types]))
    if arch in ("gemma2", "gemma3"):
        add("attention.sliding_window_pattern", ARRAY, (BOOL, [kind == "sliding_attention" for kind in types]))
        add("attention.scale", F32, config["query_pre_attn_scalar"] ** -0.5)
        for key in ("attn_logit_softcapping", "final_logit_softcapping"):
            add(key, F32, config.get(key) or 0.0)
    if arch in ("gemma3", "gemma4", "mellum"):
        add("rope.freq_base_swa", F32, local_theta)
    if arch == "gemma4":
        out = [entry for entry in out if not entry[0].endswith(
            (".key_length", ".value_length", ".head_count_kv", ".feed_forward_length"))]
        add_mixed_layers(add, config, types)
    for name in ("bos", "eos"):
        value = config.get(f"{name}_token_id")
        if value is not None:
            out.append((f"tokenizer.ggml.{name}_token_id", U32, value))
    return out


def tensors_of(directory, config, quantized=False):
    """The weights as the converter writes them; those of norms that compute 1 + w as float32 with 1 added.
    `quantized`: matrices as Q8_0."""
    arch = arch_of(config)
    config = with_usual_sizes(config)
    plus_one = arch.startswith(("gemma", "qwen35", "qwen3next", "nemotron")) and not arch.startswith(("nemotron_h", "gemma4"))
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config.get("num_key_value_heads")}
    out = []
    for name, (dtype, shape, content) in sorted(stack_experts(split_latents(divide_by_key_head(read_safetensors(directory), config), config)).items()):
        if ".act_fn." in name:  # in the metadata
            continue
        if any(tower in name for tower in ("vision_tower", "vision_model", "visual", "multi_modal_projector",
                                          "connector", "embed_vision")):
            continue
        name = gguf_name(name, arch)
        if arch == "granitehybrid" and not config["num_local_experts"]:
            name = name.replace("_shexp", "")
        part = name.split(".")[-2]
        if arch in INTERLEAVED and part in heads:
            content = interleave(content, shape[0], heads[part])
        if arch == "gptneox" and part == "attn_qkv":
            content = joined_heads(content, shape[0], config["num_attention_heads"])
        if arch == "falcon" and part == "attn_qkv":
            content = joined_groups(content, shape[0], config["num_attention_heads"], config["num_key_value_heads"])
        if arch == "gpt2" and len(shape) == 2 and name.startswith("blk."):  # Conv1D
            content, shape = transposed(content, 1, *shape), shape[::-1]
        if name.endswith("exp_probs_b.bias"):
            shape = shape[-1:]
        if part == "ffn_gate_inp_shexp":
            shape = shape[1:]
        if len(shape) == 1 and dtype != "F32":
            dtype, content = "F32", struct.pack(f"<{shape[0]}f", *floats(content, dtype))
        if name.endswith("ssm_conv1d.weight") or name.endswith("shortconv.conv.weight"):
            shape = [shape[0], shape[2]]
        if name.endswith(".ssm_a"):
            part = "ssm_a"
            content = array("f", (-math.exp(value) for value in floats(content, "F32"))).tobytes()
        if "_conv1d_" in part:
            shape = [1, shape[0], 1, shape[2]]
        if arch.startswith("qwen35"):
            content = delta_net_content(part, shape, content, config)
        if arch == "falcon-h1":
            content = with_multipliers(name, shape, content, config)
        groups = {"granitehybrid": "mamba_n_groups", "nemotron_h": "n_groups", "nemotron_h_moe": "n_groups",
                  "falcon-h1": "mamba_n_groups", "mamba2": "n_groups"}.get(arch)
        if groups and name.endswith((".ssm_a", ".ssm_d")):
            shape = [shape[0], 1]
        if groups and part == "ssm_norm":
            shape = [config[groups], shape[0] // config[groups]]
        if plus_one and part.endswith("norm") and part != "ssm_norm" and name.endswith(".weight"):
            content = struct.pack(f"<{shape[0]}f", *(value + 1.0 for value in floats(content, "F32")))
        if quantized and len(shape) >= 2 and shape[-1] % 32 == 0 and part != "ffn_gate_inp":
            dtype, content = "Q8_0", q8_0(content, dtype)
        out.append((name, dtype, shape, content))
    theta, scaling, _ = rope_of(config)
    if arch == "gemma4" and scaling["rope_type"] == "proportional":
        pairs = next(iter(config["per_layer_config"].values()))["head_dim"] // 2
        kept = int(2 * pairs * scaling["partial_rotary_factor"] / 2)
        out.append(("rope_freqs.weight", "F32", [pairs], struct.pack(f"<{pairs}f", *[1.0] * kept, *[1e30] * (pairs - kept))))
    if scaling["rope_type"] == "llama3":
        head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        divisors = llama3_divisors(scaling, theta, head_dim)
        out.append(("rope_freqs.weight", "F32", [len(divisors)], struct.pack(f"<{len(divisors)}f", *divisors)))
    for kind in ("long", "short"):
        factors = scaling.get(f"{kind}_factor")
        if factors:
            out.append((f"rope_factors_{kind}.weight", "F32", [len(factors)],
                        struct.pack(f"<{len(factors)}f", *factors)))
    return out


def adapter_matrices(module, pair, config):
    """The matrices A and B of an adapter as the converter writes them: what it does to a weight's rows it does to B's,
    and what it does to columns to A's."""
    arch = arch_of(config)
    name = gguf_name(module, arch)
    part = name.split(".")[-2]
    (a_shape, a), (b_shape, b) = pair
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config.get("num_key_value_heads")}
    if arch in INTERLEAVED and part in heads:
        b = interleave(b, b_shape[0], heads[part])
    if arch.startswith("qwen35") and part == "ssm_out":
        a = delta_net_content(part, a_shape, a, config)
    elif arch.startswith("qwen35"):
        b = delta_net_content(part, b_shape, b, config)
    if arch == "falcon-h1":
        b = with_multipliers(name, b_shape, b, config)
    return [(f"{name}.lora_a", "F32", a_shape, a), (f"{name}.lora_b", "F32", b_shape, b)]


def tokenizer_metadata(directory, pre="default", template=True):
    """The tokenizer of a directory as the converter writes it. tokenizer.json lacks sentencepiece's scores: the rank of
    the first merge that makes a piece replaces them."""
    directory = Path(directory)
    file = json.loads((directory / "tokenizer.json").read_text())
    config = json.loads((directory / "tokenizer_config.json").read_text())
    model, added = file["model"], {token["id"]: token for token in file["added_tokens"]}
    vocabulary = {**{token["content"]: token["id"] for token in file["added_tokens"]}, **model["vocab"]}
    by_id = {index: text for text, index in vocabulary.items()}
    pieces = bool(model.get("byte_fallback"))
    texts, types = [], []
    for index in range(max(by_id) + 1):
        text, kind = by_id.get(index, f"[PAD{index}]"), NORMAL if index in by_id else UNUSED
        if index in added:
            kind = CONTROL if added[index]["special"] else USER_DEFINED
            text = text.replace("\u2581", " ") if pieces and kind == USER_DEFINED else text
        elif pieces and len(text) == 6 and text.startswith("<0x"):
            kind = BYTE
        if pieces and text == model.get("unk_token"):
            kind = UNKNOWN
        texts.append(text)
        types.append(kind)
    merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    has_merges = not pieces or pre == "gemma4"
    out = [("tokenizer.ggml.model", STRING, "gpt2" if not pieces else "gemma4" if has_merges else "llama"),
           ("tokenizer.ggml.tokens", ARRAY, (STRING, texts)), ("tokenizer.ggml.token_type", ARRAY, (I32, types))]
    if pieces:
        ranks = {}
        for rank, (left, right) in enumerate(merges):
            ranks.setdefault(left + right, rank)
        scores = [-1000.0 if kind == USER_DEFINED else -float(ranks.get(text, 1 << 23))
                  for text, kind in zip(texts, types)]
        out.append(("tokenizer.ggml.scores", ARRAY, (F32, scores)))
        first = (file["normalizer"].get("normalizers") or [file["normalizer"]])[0]
        out.append(("tokenizer.ggml.add_space_prefix", BOOL, first["type"] == "Prepend"))
    else:
        out.append(("tokenizer.ggml.pre", STRING, pre))
    if has_merges:
        out.append(("tokenizer.ggml.merges", ARRAY, (STRING, [" ".join(merge) for merge in merges])))
    framed = json.dumps(file["post_processor"] or {})
    out.append(("tokenizer.ggml.add_bos_token", BOOL, '"SpecialToken"' in framed))
    for name in ("bos", "eos", "unk", "pad"):
        token = config.get(f"{name}_token")
        text = token["content"] if isinstance(token, dict) else token
        if text in vocabulary:
            key = {"unk": "unknown", "pad": "padding"}.get(name, name)
            out.append((f"tokenizer.ggml.{key}_token_id", U32, vocabulary[text]))
    jinja = directory / "chat_template.jinja"
    source = jinja.read_text() if jinja.exists() else config.get("chat_template")
    if template and source:
        out.append(("tokenizer.chat_template", STRING, source))
    return out


def text_config(directory):
    config = json.loads((Path(directory) / "config.json").read_text())
    nested = config.get("text_config")
    family = {"gemma3": "gemma3_text", "smolvlm": "llama"}.get(config["model_type"], config["model_type"])
    if nested is not None:
        config = {**config, **nested, "model_type": nested.get("model_type") or family}
        config["model_type"] = {"gemma3": "gemma3_text"}.get(config["model_type"], config["model_type"])
    return config


def layer_numbers(directory, config):
    """The numbers of xIELU, which files have in their metadata."""
    if arch_of(config) != "apertus":
        return []
    tensors = read_safetensors(directory)
    return [(f"apertus.xielu.{part}", ARRAY, (F32, [
        floats(tensors[f"model.layers.{i}.mlp.act_fn.{part}"][2], "F32")[0]
        for i in range(config["num_hidden_layers"])]))
        for part in ("alpha_n", "alpha_p", "beta", "eps")]


def convert(directory, path, config=None, pre=None, more=(), quantized=False):
    """A whole model; the tokenizer too where `pre` names its split."""
    directory = Path(directory)
    config = config or text_config(directory)
    metadata = config_metadata(config)
    if pre is not None:
        tokens = tokenizer_metadata(directory, pre)
        known = {key for key, _, _ in tokens}
        metadata = [entry for entry in metadata if entry[0] not in known] + tokens
    metadata += layer_numbers(directory, config)
    return write_gguf(path, [*metadata, *more], tensors_of(directory, config, quantized))
