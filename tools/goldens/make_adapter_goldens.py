#!/usr/bin/env python3
"""Makes tests/goldens/adapters/: small LoRA adapters of two model goldens, in three formats.

    python tools/goldens/make_adapter_goldens.py [--out DIR]

Needs peft, mlx[cpu], mlx-lm, gguf, torch, transformers and numpy of requirements.txt. Each folder is
an adapter as its own library writes it, and golden.json beside them has, by adapter and module, the
shapes, the scale that the library computes with, and the FNV-1a hashes of A [rank, in] and
B [out, rank] as they stand in the loaded model.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import gguf
import mlx.core as mx
import mlx_lm.tuner.utils as mlx_tuner
import mlx_lm.utils as mlx_utils
import numpy as np
import peft
import torch

from peft_models import GOLDENS, SEED, load_model, randomise, sort_lists

# Adapter -> (model golden, dtype, arguments of peft.LoraConfig).
PEFT_ADAPTERS: dict[str, tuple[str, torch.dtype, dict]] = {
    "peft_llama": ("llama_plain", torch.float32, {
        "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj", "down_proj"],
        "rank_pattern": {"layers.0.self_attn.q_proj": 2, r"down_pro.": 3},
        "alpha_pattern": {r"layers\.[12]\.self_attn\.v_proj": 5}}),
    "peft_llama_rslora": ("llama_plain", torch.bfloat16, {
        "r": 3, "lora_alpha": 4, "use_rslora": True, "target_modules": r".*layers\.[02]\.mlp\.(gate|up)_proj"}),
    "peft_llama_layers": ("llama_plain", torch.float16, {
        "r": 2, "lora_alpha": 16, "target_modules": "all-linear", "init_lora_weights": "gaussian",
        "exclude_modules": ["gate_proj", "up_proj"]}),
    "peft_llama_head": ("llama_plain", torch.float32, {
        "r": 1, "lora_alpha": 3, "target_modules": ["k_proj", "lm_head"]}),
    "peft_gemma3": ("gemma3_language_model_prefix", torch.float32, {
        "r": 2, "lora_alpha": 6, "target_modules": ["q_proj", "o_proj"], "layers_to_transform": [0, 2],
        "layers_pattern": "layers"}),
}


def fnv1a(data: bytes) -> str:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def tensor_hash(tensor: torch.Tensor) -> str:
    plain = tensor.detach().contiguous()
    return fnv1a(plain.view(torch.uint8 if plain.dtype == torch.uint8 else torch.int16).numpy().tobytes())


def canonical(module: str) -> str:
    """The name without what stands in front of "layers." or "lm_head"."""
    for mark in ("layers.", "lm_head"):
        if mark in module:
            return module[module.index(mark):]
    raise ValueError(module)


def is_text(module: str) -> bool:
    return "vision" not in module


def described_peft(model: torch.nn.Module) -> dict:
    described = {}
    for name, module in model.named_modules():
        if not isinstance(module, peft.tuners.lora.LoraLayer) or not is_text(name):
            continue
        a, b = module.lora_A["default"].weight, module.lora_B["default"].weight
        described[canonical(name)] = {"a_shape": list(a.shape), "b_shape": list(b.shape),
                                      "scale": module.scaling["default"],
                                      "a": tensor_hash(a), "b": tensor_hash(b)}
    return dict(sorted(described.items()))


def make_peft(name: str, out: Path) -> dict:
    golden, dtype, arguments = PEFT_ADAPTERS[name]
    config = peft.LoraConfig(task_type="CAUSAL_LM", base_model_name_or_path=f"paceline/{golden}", **arguments)
    model = peft.get_peft_model(load_model(GOLDENS / "models" / golden), config)
    randomise(model, dtype)
    model.peft_config["default"].base_model_name_or_path = f"paceline/{golden}"
    model.save_pretrained(out / name, save_embedding_layers=False)
    (out / name / "README.md").unlink(missing_ok=True)
    sort_lists(out / name / "adapter_config.json")
    return {"model": golden, "pairs": described_peft(model)}


def with_tokenizer_free_load(path: Path):
    model, _ = mlx_utils.load_model(path)
    return model


def make_mlx(out: Path) -> dict:
    """Layers 1 and 2 of llama_plain, as mlx_lm.lora saves them."""
    model = with_tokenizer_free_load(GOLDENS / "models" / "llama_plain")
    model.freeze()
    parameters = {"rank": 3, "scale": 2.5, "dropout": 0.0,
                  "keys": ["self_attn.k_proj", "mlp.down_proj"]}
    mlx_tuner.linear_to_lora_layers(model, 2, parameters)
    generator = np.random.default_rng(SEED)
    drawn = [(name, mx.array(generator.normal(0, 0.1, value.shape).astype(np.float32)))
             for name, value in sorted(mlx_utils.tree_flatten(model.trainable_parameters()))]
    folder = out / "mlx_llama"
    folder.mkdir(parents=True)
    mx.save_safetensors(str(folder / "adapters.safetensors"), dict(drawn))
    config = {"adapter_path": "adapters", "fine_tune_type": "lora", "iters": 1000, "learning_rate": 1e-05,
              "lora_parameters": parameters, "model": "paceline/llama_plain", "num_layers": 2, "seed": 0,
              "train": True}
    mlx_utils.save_config(config, folder / "adapter_config.json")
    loaded = mlx_tuner.load_adapters(with_tokenizer_free_load(GOLDENS / "models" / "llama_plain"), folder)
    pairs = {}
    for name, module in loaded.named_modules():
        if "lora_a" not in module:
            continue
        a, b = (np.ascontiguousarray(np.array(module[key]).T) for key in ("lora_a", "lora_b"))
        pairs[canonical(name)] = {"a_shape": list(a.shape), "b_shape": list(b.shape), "scale": module.scale,
                                  "a": fnv1a(a.tobytes()), "b": fnv1a(b.tobytes())}
    return {"model": "llama_plain", "pairs": dict(sorted(pairs.items()))}


GGUF_NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
              "mlp.down_proj": "ffn_down"}


def interleaved(rows: np.ndarray, heads: int) -> np.ndarray:
    """LlamaModel.permute of llama.cpp's convert_hf_to_gguf.py: both rows of a rotary pair together."""
    return (rows.reshape(heads, 2, rows.shape[0] // heads // 2, rows.shape[1])
            .swapaxes(1, 2).reshape(rows.shape))


def make_gguf(out: Path) -> dict:
    """As convert_lora_to_gguf.py writes an adapter of architecture llama, one tensor in Q8_0."""
    heads = {"self_attn.q_proj": 4, "self_attn.k_proj": 2}
    sizes = {"self_attn.q_proj": (32, 32), "self_attn.k_proj": (16, 32), "mlp.down_proj": (32, 64)}
    generator = np.random.default_rng(SEED)
    writer = gguf.GGUFWriter(out / "llama.gguf", "llama")
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, 12.0)
    pairs = {}
    for part, (rows, columns) in sizes.items():
        a = generator.normal(0, 0.1, (4, columns)).astype(np.float32)
        b = generator.normal(0, 0.1, (rows, 4)).astype(np.float32)
        name = f"blk.1.{GGUF_NAMES[part]}.weight"
        stored_b = interleaved(b, heads[part]) if part in heads else b
        if part == "mlp.down_proj":
            packed = gguf.quants.quantize(a, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(f"{name}.lora_a", packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
            a = gguf.quants.dequantize(packed, gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(f"{name}.lora_a", a)
        writer.add_tensor(f"{name}.lora_b", np.ascontiguousarray(stored_b))
        pairs[f"layers.1.{part}"] = {"a_shape": list(a.shape), "b_shape": list(b.shape), "scale": 3.0,
                                     "a": fnv1a(a.tobytes()), "b": fnv1a(b.tobytes())}
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return {"model": "llama_plain", "pairs": dict(sorted(pairs.items()))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=GOLDENS / "adapters")
    out: Path = parser.parse_args().out
    torch.set_num_threads(1)
    mx.set_default_device(mx.cpu)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    described = {name: make_peft(name, out) for name in PEFT_ADAPTERS}
    described["mlx_llama"] = make_mlx(out)
    described["llama.gguf"] = make_gguf(out)
    (out / "golden.json").write_text(json.dumps(described, indent=1) + "\n")


if __name__ == "__main__":
    main()
