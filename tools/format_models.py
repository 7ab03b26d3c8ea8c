"""Writes a model of the qwen3 family in every format that Paceline reads, and reads it back as plain numbers.

K-quants and IQ4_XS have blocks of 256 elements, which must divide a row (llama.cpp otherwise uses another type: Q5_0
for Q4_K, Q5_1 for Q5_K, Q8_0 for Q6_K, IQ4_NL for the rest). For them the model is padded with zeros to multiples of
256, which changes its logits only by rounding.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import gguf
import mlx.core as mx
import numpy as np
import torch
from safetensors.torch import load_file
from transformers import Qwen3Config, Qwen3ForCausalLM

import gguf_quantisers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/system"))
import gguf_files  # noqa: E402

Weights = dict[str, np.ndarray]  # float32, by the names of transformers
FAMILY = "qwen3"
HIDDEN_NORMS = ("input_layernorm.weight", "post_attention_layernorm.weight", "model.norm.weight")


def read_plain(directory: Path) -> tuple[dict, Weights]:
    config = json.loads((directory / "config.json").read_text())
    if config["model_type"] != FAMILY:
        raise SystemExit(f"{directory}: {config['model_type']}, expected a model of the {FAMILY} family")
    tensors = {}
    for file in sorted(directory.glob("*.safetensors")):
        tensors |= {name: tensor.float().numpy() for name, tensor in load_file(file).items()}
    return config, tensors


def round_up(count: int) -> int:
    return -(-count // 256) * 256


def spread_heads(rows: np.ndarray, groups: int, old: int, new: int) -> np.ndarray:
    """[heads * dim, ...] with heads of zeros after the heads of each key head."""
    per_group = rows.reshape(groups, old // groups, -1, *rows.shape[1:])
    room = np.zeros((groups, new // groups, *per_group.shape[2:]), np.float32)
    room[:, :old // groups] = per_group
    return room.reshape(-1, *rows.shape[1:])


def pad_weight(name: str, weight: np.ndarray, config: dict, padded: dict) -> np.ndarray:
    if name.endswith(HIDDEN_NORMS):  # the mean of the squares is over more elements
        weight = weight * np.float32(math.sqrt(config["hidden_size"] / padded["hidden_size"]))
        return np.pad(weight, (0, padded["hidden_size"] - len(weight)))
    heads = (config["num_key_value_heads"], config["num_attention_heads"], padded["num_attention_heads"])
    if name.endswith("q_proj.weight"):
        weight = spread_heads(weight, *heads)
    if name.endswith("o_proj.weight"):
        weight = spread_heads(weight.T, *heads).T
    if weight.ndim == 1:
        return weight
    rows = {"gate_proj": "intermediate_size", "up_proj": "intermediate_size", "o_proj": "hidden_size",
            "down_proj": "hidden_size"}.get(name.split(".")[-2])
    more_rows = padded[rows] - len(weight) if rows else 0
    return np.pad(weight, ((0, more_rows), (0, round_up(weight.shape[1]) - weight.shape[1])))


def pad(config: dict, weights: Weights) -> tuple[dict, Weights]:
    """The same model with rows of multiples of 256."""
    hidden, heads, groups = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
    padded = dict(config, hidden_size=round_up(hidden), intermediate_size=round_up(config["intermediate_size"]),
                  num_attention_heads=round_up(heads * config["head_dim"]) // config["head_dim"],
                  rms_norm_eps=config["rms_norm_eps"] * hidden / round_up(hidden))
    if padded["num_attention_heads"] % groups:
        raise SystemExit(f"{padded['num_attention_heads']} heads for {groups} of keys: can't be padded")
    return padded, {name: pad_weight(name, weight, config, padded) for name, weight in weights.items()}


def write_gguf(directory: Path, config: dict, weights: Weights, kind: str, path: Path) -> Path:
    """Every matrix in one type, with the tokenizer of `directory`."""
    gguf_files.TENSOR_TYPES |= {name: gguf.GGMLQuantizationType[name].value for name in gguf_quantisers.TYPES}
    tensors = []
    for name, weight in sorted(weights.items()):
        to = kind if weight.ndim == 2 else "F32"
        content = gguf_quantisers.quantise(np.atleast_2d(weight), to).tobytes()
        tensors.append((gguf_files.gguf_name(name, FAMILY), to, list(weight.shape), content))
    metadata = gguf_files.config_metadata(config)
    tokens = gguf_files.tokenizer_metadata(directory, "qwen2", template=False)
    known = {key for key, _, _ in tokens}
    return gguf_files.write_gguf(path, [entry for entry in metadata if entry[0] not in known] + tokens, tensors)


def read_gguf(path: Path, names: list[str]) -> Weights:
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    weights = {}
    for name in names:
        tensor = stored[gguf_files.gguf_name(name, FAMILY)]
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        weights[name] = values.reshape([int(size) for size in reversed(tensor.shape)])
    return weights


def write_mlx(directory: Path, binary: Path, bits: int, group_size: int, out: Path) -> Path:
    subprocess.run([binary, "quantize", "-m", directory, "-o", out, "--bits", str(bits), "--group-size",
                    str(group_size), "-q"], check=True, capture_output=True)
    return out


def read_mlx(directory: Path) -> Weights:
    mx.set_default_device(mx.cpu)
    stored = mx.load(str(directory / "model.safetensors"))
    how = json.loads((directory / "config.json").read_text())["quantization"]
    weights = {}
    for name, tensor in stored.items():
        module = name.removesuffix(".weight")
        if tensor.dtype == mx.uint32:
            tensor = mx.dequantize(tensor, stored[f"{module}.scales"], stored[f"{module}.biases"],
                                   group_size=how["group_size"], bits=how["bits"])
        elif not name.endswith(".weight"):
            continue
        weights[name] = np.array(tensor.astype(mx.float32))
    return weights


def torch_model(config: dict, weights: Weights) -> Qwen3ForCausalLM:
    """In float32."""
    known = {key: value for key, value in config.items() if key not in ("dtype", "architectures")}
    model = Qwen3ForCausalLM(Qwen3Config(**known, attn_implementation="sdpa")).float().eval()
    state = {name: torch.from_numpy(np.array(weight)) for name, weight in weights.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or [name for name in missing if name != "lm_head.weight"]:
        raise SystemExit(f"weights missing: {missing}, unexpected: {unexpected}")
    model.tie_weights()
    return model
