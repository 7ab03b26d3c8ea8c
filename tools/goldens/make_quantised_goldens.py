#!/usr/bin/env python3
"""Makes tests/goldens/quantised/: matrices in published formats, and their values.

    python tools/goldens/make_quantised_goldens.py [--out DIR]

Needs torch, safetensors, mlx, compressed-tensors, bitsandbytes, hqq and torchao of requirements.txt. Each
folder has config.json, model.safetensors and expected.safetensors, which has M.weight for every
quantised module M. Values are those of the library that owns the format where it runs on a CPU:
Fp8Dequantize of transformers (finegrained_fp8.py), the compressors of compressed-tensors,
dequantize_4bit of bitsandbytes, Quantizer of hqq, mlx.core.dequantize. GPTQ's and AWQ's tools need
GPUs: their matrices are packed and computed here by the formulas of AutoGPTQ's qlinear_cuda.py
(zeros are stored less one; scale * (code - zero)) and of AutoAWQ's packing_utils.py (the order of
eight codes in a word). torchao's int4 is packed for GPUs too (in_tiles, int4_tensor). A module named near_* may differ by a rounding. gptq_model and fp8_model are
whole models.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from safetensors.torch import save_file

SEED = 45
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
AWQ_PLACES = (0, 4, 1, 5, 2, 6, 3, 7)
Tensors = dict[str, torch.Tensor]


class Folder:
    """A model's files, filled module by module."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.random = torch.Generator().manual_seed(SEED)
        self.stored: Tensors = {}
        self.expected: Tensors = {}
        self.metadata: dict[str, str] = {}

    def matrix(self, rows: int, columns: int) -> torch.Tensor:
        return torch.randn(rows, columns, generator=self.random) * 0.05

    def codes(self, rows: int, columns: int, bits: int) -> torch.Tensor:
        return torch.randint(0, 2**bits, (rows, columns), generator=self.random)

    def add(self, module: str, parts: Tensors, values: torch.Tensor) -> None:
        self.stored |= {f"{module}.{part}": tensor.contiguous() for part, tensor in parts.items()}
        self.expected[f"{module}.weight"] = values.to(self.dtype).contiguous()

    def add_plain(self, name: str, values: torch.Tensor) -> None:
        self.stored[name] = self.expected[name] = values.to(self.dtype)

    def write(self, out: Path, config: dict, files: dict[str, dict] | None = None) -> None:
        out.mkdir(parents=True, exist_ok=True)
        save_file(self.stored, out / "model.safetensors", metadata=self.metadata or None)
        save_file(self.expected, out / "expected.safetensors")
        named = {"config.json": {"dtype": str(self.dtype).removeprefix("torch.")} | config} | (files or {})
        for name, content in named.items():
            (out / name).write_text(json.dumps(content, indent=1) + "\n")


def to_float8(weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (weight / scale).clamp(-448, 448).to(torch.float8_e4m3fn)


def spread(scales: torch.Tensor, block: int, rows: int, columns: int) -> torch.Tensor:
    whole = scales.float().repeat_interleave(block, 0).repeat_interleave(block, 1)
    return whole[:rows, :columns]


def write_fp8(out: Path) -> None:
    from transformers.integrations.finegrained_fp8 import Fp8Dequantize

    block = 16
    folder = Folder(torch.bfloat16)
    for module, rows, columns, dtype in (("model.layers.0.mlp.up_proj", 40, 24, torch.float32),
                                         ("model.layers.0.mlp.down_proj", 32, 48, torch.bfloat16),
                                         ("model.layers.0.mlp.gate_proj", 32, 32, torch.float8_e8m0fnu)):
        weight = folder.matrix(rows, columns)
        grid = (-(-rows // block), -(-columns // block))
        scales = (torch.rand(grid, generator=folder.random) * 1e-3 + 1e-4).to(dtype)
        stored = to_float8(weight, spread(scales, block, rows, columns))
        values = (stored.float() * spread(scales, block, rows, columns)).bfloat16()
        if rows % block == 0 and columns % block == 0:
            library = Fp8Dequantize(None)._dequantize_one(stored, scales, torch.bfloat16)
            assert torch.equal(library, values)
        folder.add(module, {"weight": stored, "weight_scale_inv": scales}, values)
    # One scale for all, with scales of activations, as Ministral 3 is published.
    scale = torch.tensor(3e-4, dtype=torch.bfloat16)
    stored = to_float8(folder.matrix(8, 24), scale.float())
    folder.add("model.layers.0.self_attn.q_proj",
               {"weight": stored, "weight_scale_inv": scale, "activation_scale": torch.tensor(0.02)},
               Fp8Dequantize(None)._dequantize_one(stored, scale.reshape(1, 1), torch.bfloat16))
    wide = (folder.matrix(4, 16) * 100).to(torch.float8_e5m2)
    folder.add("model.layers.0.self_attn.k_proj", {"weight": wide, "weight_scale": torch.tensor([[0.5]])},
               wide.float() * 0.5)
    folder.add_plain("lm_head.weight", folder.matrix(6, 24))
    folder.add_plain("model.norm.weight", torch.ones(24))
    folder.write(out, {"quantization_config": {
        "quant_method": "fp8", "weight_block_size": [block, block], "modules_to_not_convert": ["lm_head"]}})


def scheme(**weights: object) -> object:
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    return QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**weights))


def write_compressed(out: Path) -> None:
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization.utils import calculate_qparams

    folder = Folder(torch.bfloat16)

    def add(module: str, form: str, rows: int, columns: int, blocks: tuple[int, int], **settings: object) -> None:
        chosen = scheme(**settings)
        weight = folder.matrix(rows, columns).bfloat16()
        grid = weight.reshape(rows // blocks[0], blocks[0], columns // blocks[1], blocks[1])
        scales, zeros = calculate_qparams(grid.amin((1, 3)), grid.amax((1, 3)), chosen.weights)
        state = {"weight": weight, "weight_scale": scales.bfloat16(), "weight_zero_point": zeros}
        if blocks == (rows, columns):
            state = {key: value.reshape(1) if key != "weight" else value for key, value in state.items()}
        compressor = BaseCompressor.get_value_from_registry(form)
        packed = compressor.compress(state, chosen)
        # What decompress() does after it has unpacked codes and zero points.
        naive = BaseCompressor.get_value_from_registry("naive-quantized")
        unpacked = state | {"weight": naive.compress(state, chosen)["weight"]}
        folder.add(module, packed, naive.decompress(unpacked, chosen)["weight"])

    usual = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 32}
    add("model.layers.0.q_proj", "pack-quantized", 8, 64, (1, 32), **usual)
    add("model.layers.0.k_proj", "pack-quantized", 8, 64, (1, 32), **(usual | {"symmetric": False}))
    add("model.layers.0.v_proj", "pack-quantized", 6, 64, (1, 64),
        **(usual | {"strategy": "channel", "group_size": None, "num_bits": 8}))
    add("model.layers.0.o_proj", "pack-quantized", 8, 96, (1, 32), **(usual | {"num_bits": 3}))
    add("model.layers.0.up_proj", "pack-quantized", 5, 40, (1, 20), **(usual | {"group_size": 20}))
    channel = {"num_bits": 8, "type": "int", "strategy": "channel"}
    add("model.layers.1.q_proj", "int-quantized", 8, 64, (1, 64), **channel, symmetric=True)
    add("model.layers.1.k_proj", "int-quantized", 8, 64, (1, 64), **channel, symmetric=False)
    add("model.layers.1.v_proj", "naive-quantized", 8, 64, (8, 64), num_bits=8, type="int", strategy="tensor",
        symmetric=True)
    floats = {"num_bits": 8, "type": "float", "symmetric": True}
    add("model.layers.2.q_proj", "float-quantized", 8, 24, (8, 24), **floats, strategy="tensor")
    add("model.layers.2.k_proj", "float-quantized", 8, 24, (1, 24), **floats, strategy="channel")
    add("model.layers.2.v_proj", "float-quantized", 16, 32, (8, 16), **floats, strategy="block",
        block_structure=[8, 16])
    add_nvfp4(folder)
    add_reordered(folder)
    folder.add_plain("lm_head.weight", folder.matrix(6, 24))
    folder.stored["model.layers.2.q_proj.input_scale"] = torch.tensor([0.5])
    folder.stored["model.layers.2.k_scale"] = torch.tensor([0.5])
    groups = {"group_0": {"targets": ["Linear"], "weights": usual},
              "group_1": {"targets": ["re:.*v_proj"], "weights": usual | {"num_bits": 8}}}
    folder.write(out, {"quantization_config": {
        "quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": groups,
        "ignore": ["lm_head"]}})


def nibbles(codes: torch.Tensor) -> torch.Tensor:
    return (codes[:, 0::2] | codes[:, 1::2] << 4).to(torch.uint8)


def add_nvfp4(folder: Folder) -> None:
    from compressed_tensors.compressors import BaseCompressor

    rows, columns = 4, 64
    form = BaseCompressor.get_value_from_registry("nvfp4-pack-quantized")
    chosen = scheme(num_bits=4, type="float", symmetric=True, strategy="tensor_group", group_size=16)
    scales = (torch.rand(rows, columns // 16, generator=folder.random) * 100 + 1).to(torch.float8_e4m3fn)
    packed = {"weight_packed": nibbles(folder.codes(rows, columns, 4)), "weight_scale": scales,
              "weight_global_scale": torch.tensor([937.0])}
    folder.add("model.layers.3.q_proj", packed, form.decompress(packed, chosen)["weight"])
    # MXFP4 has exponents for scales.
    codes = folder.codes(rows, columns, 4)
    exponents = torch.randint(118, 130, (rows, columns // 32), generator=folder.random)
    values = E2M1[codes] * (2.0 ** (exponents - 127)).repeat_interleave(32, 1)
    folder.add("model.layers.3.k_proj", {"weight_packed": nibbles(codes), "weight_scale": exponents.to(torch.uint8)},
               values)


def add_reordered(folder: Folder) -> None:
    """A matrix with `actorder: group`, whose columns name their groups."""
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32

    rows, columns, size = 4, 64, 32
    codes = folder.codes(rows, columns, 4)
    groups = (torch.arange(columns) // size)[torch.randperm(columns, generator=folder.random)]
    scales = (torch.rand(rows, columns // size, generator=folder.random) * 0.01 + 0.001).bfloat16()
    values = (codes - 8).bfloat16() * scales[:, groups]
    folder.add("model.layers.4.q_proj", {
        "weight_packed": pack_to_int32((codes - 8).to(torch.int8), 4), "weight_scale": scales,
        "weight_shape": torch.tensor([rows, columns]), "weight_g_idx": groups.to(torch.int32)}, values)


def in_words(codes: np.ndarray, bits: int) -> torch.Tensor:
    """Streams of bits along the first dimension, from the lowest bit of a word up."""
    fields = (codes[..., None].astype(np.uint64) >> np.arange(bits, dtype=np.uint64)) & 1
    stream = np.moveaxis(fields, -1, 1).reshape(-1, codes.shape[1])
    words = stream.reshape(-1, 32, codes.shape[1]) << np.arange(32, dtype=np.uint64)[None, :, None]
    return torch.from_numpy(words.sum(1).astype(np.uint32).view(np.int32).copy())


def add_gptq(folder: Folder, module: str, bits: int, size: int, shift: int, *, symmetric: bool = False,
             reordered: bool = False, rows: int = 32, columns: int = 128) -> None:
    codes = folder.codes(columns, rows, bits)
    groups = torch.arange(columns) // size
    if reordered:
        groups = groups[torch.randperm(columns, generator=folder.random)]
    zeros = torch.randint(shift, 2**bits, (columns // size, rows), generator=folder.random)
    if symmetric:
        zeros[:] = 2 ** (bits - 1)
    scales = (torch.rand(columns // size, rows, generator=folder.random) * 0.01 + 1e-3).to(torch.float16)
    values = scales[groups] * (codes - zeros[groups]).to(torch.float16)
    folder.add(module, {
        "qweight": in_words(codes.numpy(), bits), "scales": scales, "g_idx": groups.to(torch.int32),
        "qzeros": in_words((zeros - shift).numpy().T, bits).T.contiguous()}, values.T)
    folder.stored[f"{module}.bias"] = folder.expected[f"{module}.bias"] = torch.zeros(rows, dtype=torch.float16)


def write_gptq(out: Path) -> None:
    for name, shift in (("gptq", 1), ("gptq_v2", 0)):
        folder = Folder(torch.float16)
        for bits in (2, 3, 4, 8):
            add_gptq(folder, f"model.layers.0.q{bits}_proj", bits, 32, shift)
        add_gptq(folder, "model.layers.1.q_proj", 4, 128, shift, symmetric=True)
        add_gptq(folder, "model.layers.1.k_proj", 4, 32, shift, reordered=True)
        add_gptq(folder, "lm_head", 8, 64, shift, symmetric=True)
        folder.add_plain("model.norm.weight", torch.ones(24))
        settings = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True, "sym": False}
        if shift == 0:
            folder.write(out / name, {"quantization_config": settings | {"checkpoint_format": "gptq_v2"}})
        else:
            folder.write(out / name, {}, {"quantize_config.json": settings})


def write_awq(out: Path) -> None:
    folder = Folder(torch.float16)
    rows, columns, size = 16, 128, 64

    def in_order(codes: torch.Tensor) -> torch.Tensor:
        words = torch.zeros(codes.shape[0], codes.shape[1] // 8, dtype=torch.int64)
        for column, place in enumerate(AWQ_PLACES):
            words |= codes[:, column::8] << 4 * place
        return torch.from_numpy(words.numpy().astype(np.uint32).view(np.int32))

    codes, zeros = folder.codes(columns, rows, 4), folder.codes(columns // size, rows, 4)
    scales = (torch.rand(columns // size, rows, generator=folder.random) * 0.01 + 1e-3).to(torch.float16)
    groups = torch.arange(columns) // size
    folder.add("model.layers.0.q_proj",
               {"qweight": in_order(codes), "qzeros": in_order(zeros), "scales": scales},
               (scales[groups] * (codes - zeros[groups]).to(torch.float16)).T)
    folder.write(out, {"quantization_config": {
        "quant_method": "awq", "bits": 4, "group_size": size, "version": "gemm", "zero_point": True,
        "modules_to_not_convert": None}})


def write_bitsandbytes(out: Path) -> None:
    from bitsandbytes import functional

    folder = Folder(torch.bfloat16)
    for kind in ("nf4", "fp4"):
        for nested in (False, True):
            module = f"model.layers.{int(nested)}.{kind}_proj"
            weight = folder.matrix(24, 48).bfloat16()
            packed, state = functional.quantize_4bit(weight, quant_type=kind, compress_statistics=nested)
            parts = {f"weight.{key}": value for key, value in state.as_dict(packed=True).items()}
            folder.add(module, {"weight": packed} | parts, functional.dequantize_4bit(packed, state))
    stored, scales, _ = functional.int8_vectorwise_quant(folder.matrix(8, 64).to(torch.float16))
    folder.add("near_proj", {"weight": stored, "SCB": scales, "weight_format": torch.tensor(0, dtype=torch.uint8)},
               functional.int8_vectorwise_dequant(stored, scales))
    folder.write(out, {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}})


def write_hqq(out: Path) -> None:
    from hqq.core.quantize import Quantizer
    from hqq.core.utils import encode_safetensor_type

    folder = Folder(torch.float32)
    for axis in (0, 1):
        for bits in (8, 4, 3, 2, 1):
            weight = folder.matrix(40, 64)
            packed, meta = Quantizer.quantize(weight, nbits=bits, group_size=32, axis=axis, optimize=False,
                                              compute_dtype=torch.float32, device="cpu")
            values = Quantizer.dequantize(packed, meta)
            parts = {key: encode_safetensor_type(value) for key, value in meta.items() if value is not None}
            folder.add(f"model.layers.{axis}.b{bits}_proj", {"W_q": packed} | parts, values)
    folder.write(out, {"quantization_config": {"quant_method": "hqq", "quant_config": {}}})


def write_modelopt(out: Path) -> None:
    folder = Folder(torch.bfloat16)
    scale = torch.tensor(4e-4)
    stored = to_float8(folder.matrix(8, 32), scale)
    folder.add("model.layers.0.q_proj", {"weight": stored, "weight_scale": scale, "input_scale": torch.tensor(0.1)},
               stored.float() * scale)
    codes = folder.codes(4, 64, 4)
    scales = (torch.rand(4, 4, generator=folder.random) * 100 + 1).to(torch.float8_e4m3fn)
    second = torch.tensor(1.7e-4)
    folder.add("model.layers.0.k_proj", {
        "weight": nibbles(codes), "weight_scale": scales, "weight_scale_2": second,
        "input_scale": torch.tensor(0.1)}, E2M1[codes] * (scales.float() * second).repeat_interleave(16, 1))
    folder.stored["model.layers.0.k_proj.k_scale"] = torch.tensor(1.0)
    # Inputs are multiplied before the product (NVFP4_AWQ).
    codes, factors = folder.codes(4, 64, 4), torch.rand(64, generator=folder.random).bfloat16()
    folder.add("model.layers.0.v_proj", {
        "weight": nibbles(codes), "weight_scale": scales.clone(), "weight_scale_2": second.clone(),
        "pre_quant_scale": factors},
        E2M1[codes] * (scales.float() * second).repeat_interleave(16, 1) * factors)
    folder.write(out, {}, {"hf_quant_config.json": {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}})


def in_tiles(codes: torch.Tensor) -> torch.Tensor:
    """Codes [rows, columns] as words [rows / 8, columns / 128, 32, 4], by the places of
    matrix_to_m16n8k16_Bint4_layout in PyTorch's ATen/native/cuda/int4mm.cu, which needs a GPU."""
    rows, columns = codes.shape
    words = np.zeros((rows // 8, columns // 128, 32, 4), np.uint32)
    for row in range(rows):
        for column in range(columns):
            pair, lane = column % 32 // 8, row % 8 * 4 + column % 8 // 2
            shift = 16 * (column % 2) + 4 * pair
            words[row // 8, column // 128, lane, column % 128 // 32] |= np.uint32(int(codes[row, column]) << shift)
    return torch.from_numpy(words.view(np.int32))


def int4_tensor(folder: Folder, rows: int, columns: int, size: int, pre_scale: bool = False):
    """torchao's Int4Tensor, whose tool needs a GPU, and its values by FBGEMM's quantize.py."""
    from torchao.quantization import Int4Tensor

    codes = folder.codes(rows, columns, 4) - 8
    shape = (columns // size, rows)
    scales = (torch.rand(shape, generator=folder.random) * 0.01 + 1e-3).bfloat16()
    zeros = (torch.randn(shape, generator=folder.random) * 0.02).bfloat16()
    packed = ((codes[:, 0::2] & 15) | (codes[:, 1::2] << 4)).to(torch.int8)
    factors = (torch.rand(columns, generator=folder.random) + 0.5).bfloat16() if pre_scale else None
    groups = torch.arange(columns) // size
    values = codes * scales.float()[groups].T + zeros.float()[groups].T
    tensor = Int4Tensor(packed, scales, zeros, [1, size], torch.Size((rows, columns)), act_pre_scale=factors)
    return tensor, values if factors is None else values * factors.float()


def tiled_tensor(folder: Folder, rows: int, columns: int, size: int):
    """torchao's Int4TilePackedTo4dTensor, padded to 8 rows and 1024 columns."""
    from torchao.quantization import Int4TilePackedTo4dTensor
    from torchao.quantization.quant_primitives import _dequantize_affine_tinygemm
    from torchao.quantization.utils import pack_tinygemm_scales_and_zeros

    padded, length = -(-rows // 8) * 8, -(-columns // 1024) * 1024
    codes = folder.codes(padded, length, 4)
    scales = (torch.rand(padded, length // size, generator=folder.random) * 0.01 + 1e-3).bfloat16()
    zeros = (torch.randn(padded, length // size, generator=folder.random) * 0.02).bfloat16()
    values = _dequantize_affine_tinygemm(codes.to(torch.int32), (1, size), scales.float(), zeros.float(), torch.int32,
                                         0, 15, output_dtype=torch.float32)
    tensor = Int4TilePackedTo4dTensor(in_tiles(codes), pack_tinygemm_scales_and_zeros(scales, zeros), [1, size],
                                      torch.Size((rows, columns)))
    return tensor, values[:rows, :columns]


def write_torchao(out: Path) -> None:
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor
    from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
    from torchao.quantization import Float8WeightOnlyConfig, Int8WeightOnlyConfig, IntxWeightOnlyConfig, quantize_
    from torchao.quantization.granularity import PerGroup

    folder, described = Folder(torch.bfloat16), Folder(torch.bfloat16)

    def add(to: Folder, module: str, tensor: torch.Tensor, values: torch.Tensor | None = None) -> None:
        parts, metadata = flatten_tensor_state_dict({f"{module}.weight": tensor})
        values = tensor.dequantize() if values is None else values
        to.add(module, {name.removeprefix(f"{module}."): part for name, part in parts.items()}, values)
        if to is described:
            names = json.loads(to.metadata.get("tensor_names", "[]"))
            to.metadata |= metadata | {"tensor_names": json.dumps([*names, f"{module}.weight"])}

    configs = {"q_proj": Int8WeightOnlyConfig(), "o_proj": Float8WeightOnlyConfig(),
               "k_proj": IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32))}
    for module, config in configs.items():
        linear = torch.nn.Linear(64, 8, bias=False)
        linear.weight.data = folder.matrix(8, 64)
        quantize_(linear.bfloat16(), config)
        add(folder, f"model.{module}", linear.weight)
        add(described, f"model.{module}", linear.weight)
    folder.write(out / "torchao", {"quantization_config": {"quant_method": "torchao"}})
    add(described, "model.layers.0.q_proj", *int4_tensor(described, 8, 64, 32))
    # A square of scales, whose orientation the shapes don't say.
    add(described, "model.layers.0.k_proj", *int4_tensor(described, 4, 128, 32))
    add(described, "model.layers.0.v_proj", *int4_tensor(described, 8, 96, 32, pre_scale=True))
    add(described, "model.layers.0.o_proj", *tiled_tensor(described, 10, 160, 32))
    weight = described.matrix(130, 96).bfloat16()
    second = torch.tensor(0.37)
    add(described, "model.layers.1.q_proj", NVFP4Tensor.to_nvfp4(weight, per_tensor_scale=second))
    add(described, "model.layers.1.k_proj", NVFP4Tensor.to_nvfp4(weight, is_swizzled_scales=True))
    for module, element, swizzled in (("q_proj", torch.float8_e4m3fn, False), ("k_proj", torch.float8_e4m3fn, True),
                                      ("v_proj", torch.float4_e2m1fn_x2, True)):
        tensor = MXTensor.to_mx(weight, element, 32, is_swizzled_scales=swizzled)
        add(described, f"model.layers.2.{module}", tensor)
    described.write(out / "torchao_described", {"quantization_config": {"quant_method": "torchao"}})


def from_mlx(tensor: mx.array) -> torch.Tensor:
    if tensor.dtype == mx.bfloat16:
        return torch.from_numpy(np.array(tensor.view(mx.uint16)).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.array(tensor))


def write_mlx(out: Path) -> None:
    mx.set_default_device(mx.cpu)
    folder = Folder(torch.bfloat16)
    for mode, bits, size in (("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)):
        weight = mx.array(folder.matrix(8, 64).numpy()).astype(mx.bfloat16)
        packed, scales = mx.quantize(weight, group_size=size, bits=bits, mode=mode)
        values = mx.dequantize(packed, scales, group_size=size, bits=bits, mode=mode)
        folder.add(f"model.layers.0.{mode}_proj",
                   {"weight": from_mlx(packed), "scales": from_mlx(scales)}, from_mlx(values.astype(mx.bfloat16)))
    # The matrices of three experts.
    weight = mx.array(folder.matrix(12, 64).reshape(3, 4, 64).numpy()).astype(mx.bfloat16)
    packed, scales = mx.quantize(weight, group_size=32, bits=4, mode="mxfp4")
    values = mx.dequantize(packed, scales, group_size=32, bits=4, mode="mxfp4").astype(mx.bfloat16)
    folder.add("model.layers.1.switch_mlp.up_proj",
               {"weight": from_mlx(packed), "scales": from_mlx(scales)}, from_mlx(values))
    folder.write(out, {"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}})


def write_models(goldens: Path, out: Path) -> None:
    """tests/goldens/models/llama_plain in GPTQ, of which parts stand in different shards, and in FP8."""
    from safetensors.torch import load_file

    source = goldens / "models" / "llama_plain"
    plain = load_file(source / "model.safetensors")
    config = json.loads((source / "config.json").read_text())
    gptq, fp8 = Folder(torch.float32), Folder(torch.float32)
    for name, weight in sorted(plain.items()):
        module = name.removesuffix(".weight")
        if not name.endswith("_proj.weight"):
            gptq.stored[name] = fp8.stored[name] = weight
            continue
        rows, columns = weight.shape
        add_gptq(gptq, module, 4, 32, 1, rows=rows, columns=columns, reordered="layers.1.mlp.down" in name)
        del gptq.stored[f"{module}.bias"]
        scale = (weight.abs().max() / 448).reshape(1, 1)
        fp8.stored |= {name: to_float8(weight, scale), f"{name}_scale_inv": scale}
    shards = {"model-00001-of-00002.safetensors": {k: v for k, v in gptq.stored.items() if "qweight" not in k},
              "model-00002-of-00002.safetensors": {k: v for k, v in gptq.stored.items() if "qweight" in k}}
    methods = {"gptq_model": {"quant_method": "gptq", "bits": 4, "group_size": 32},
               "fp8_model": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    for folder, method in methods.items():
        (out / folder).mkdir(parents=True, exist_ok=True)
        (out / folder / "config.json").write_text(json.dumps(config | {"quantization_config": method}, indent=1) + "\n")
    for shard, tensors in shards.items():
        save_file(tensors, out / "gptq_model" / shard)
    index = {name: shard for shard, tensors in shards.items() for name in tensors}
    (out / "gptq_model" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}, indent=1) + "\n")
    save_file(fp8.stored, out / "fp8_model" / "model.safetensors")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    goldens = Path(__file__).resolve().parents[2] / "tests" / "goldens"
    parser.add_argument("--out", type=Path, default=goldens / "quantised")
    out: Path = parser.parse_args().out
    write_fp8(out / "fp8")
    write_compressed(out / "compressed_tensors")
    write_gptq(out)
    write_awq(out / "awq")
    write_bitsandbytes(out / "bitsandbytes")
    write_hqq(out / "hqq")
    write_modelopt(out / "modelopt")
    write_mlx(out / "mlx")
    write_torchao(out)
    write_models(goldens, out)


if __name__ == "__main__":
    main()
