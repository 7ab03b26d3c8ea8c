"""Models of random weights: a folder with a config.json is one, with --load-format dummy."""
import json
from pathlib import Path

COMMON = {"hidden_act": "silu", "tie_word_embeddings": True, "torch_dtype": "bfloat16", "eos_token_id": 1}
LLAMA_SCALING = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                 "original_max_position_embeddings": 8192}
# The sizes are those of the published files; tiny is ours.
CONFIGS = {
    "llama-3.2-1b": {"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192,
                     "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
                     "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
                     "rope_scaling": LLAMA_SCALING},
    "qwen3-0.6b": {"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072,
                   "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
                   "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0},
    "gemma-3-1b": {"model_type": "gemma3_text", "vocab_size": 262144, "hidden_size": 1152, "intermediate_size": 6912,
                   "num_hidden_layers": 26, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
                   "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
                   "rope_local_base_freq": 10000.0, "query_pre_attn_scalar": 256, "sliding_window": 512,
                   "sliding_window_pattern": 6, "hidden_activation": "gelu_pytorch_tanh"},
    "qwen3.5-0.8b": {"model_type": "qwen3_5_text", "vocab_size": 248320, "hidden_size": 1024, "intermediate_size": 3584,
                     "num_hidden_layers": 24, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256,
                     "max_position_embeddings": 262144, "rms_norm_eps": 1e-6,
                     "rope_parameters": {"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25},
                     "linear_num_key_heads": 16, "linear_num_value_heads": 16, "linear_key_head_dim": 128,
                     "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4},
    "tiny-hybrid": {"model_type": "qwen3_5_text", "vocab_size": 300, "hidden_size": 32, "intermediate_size": 64,
                    "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
                    "max_position_embeddings": 512, "rms_norm_eps": 1e-6,
                    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
                    "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 16,
                    "linear_value_head_dim": 16, "linear_conv_kernel_dim": 4},
    "tiny": {"model_type": "qwen3", "vocab_size": 300, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
             "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512,
             "rms_norm_eps": 1e-6, "rope_theta": 10000.0}}


def write_model(directory, name, **changes):
    folder = Path(directory) / name
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**COMMON, **CONFIGS[name], **changes}))
    return folder


ATTENTION_EVERY = 4  # of a hybrid's layers
CHUNK = 16  # rows after which states are written


def is_hybrid(name):
    return "linear_key_head_dim" in CONFIGS[name]


def weight_bytes(name):
    """What a step reads of a hybrid's matrices, in bfloat16: the embedding once, as the head."""
    config = CONFIGS[name]
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    values = config["linear_num_value_heads"] * config["linear_value_head_dim"]
    queries = config["num_attention_heads"] * config["head_dim"]
    kv = config["num_key_value_heads"] * config["head_dim"]
    num_attention = layers // ATTENTION_EVERY
    columns = (layers * 3 * config["intermediate_size"]
               + (layers - num_attention) * (2 * keys + 3 * values + 2 * config["linear_num_value_heads"])
               + num_attention * (3 * queries + 2 * kv))  # attention's gates are as wide as its queries
    return 2 * hidden * (columns + config["vocab_size"])


def state_bytes(name):
    """A hybrid's matrices of states of one sequence, in float32."""
    config = CONFIGS[name]
    layers = config["num_hidden_layers"] - config["num_hidden_layers"] // ATTENTION_EVERY
    return 4 * layers * (config["linear_num_value_heads"] * config["linear_key_head_dim"] * config["linear_value_head_dim"])


def decode_bytes(name, sequences):
    """What a step moves at least beside keys and values: weights, and states, which it reads and at the end of a chunk writes."""
    return weight_bytes(name) + sequences * state_bytes(name) * (1 + 1 / CHUNK)


def prompt_bytes(name):
    """What a prompt in one step moves at least: weights, and states, which it writes once."""
    return weight_bytes(name) + state_bytes(name)
