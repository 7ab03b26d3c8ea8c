#!/usr/bin/env python3
"""Compares the bundled model's perplexity in every format with PyTorch's on the dequantised weights.

    python tools/compare_perplexity.py [--binary build/release/paceline] [--formats gguf_Q4_K mlx_4_64 ...]

Writes the model in each format (tools/format_models.py). transformers computes in float32 with the weights dequantised
by gguf-py and mlx, `paceline perplexity` with --activations bf16 and int8, over the same windows of the same text.
Prints a table, and fails where a bar is missed. Needs tools/goldens/requirements.txt, and ../shared/corpus or a text.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer

import format_models
import gguf_quantisers

ROOT = Path(__file__).resolve().parent.parent
MAX_DIFFERENCE = 0.001  # of ours with bfloat16 inputs from PyTorch's
MAX_INT8_LOSS = 0.003  # that inputs of 8 bits add
BATCH = 4  # windows
MLX_FORMATS = [f"mlx_{bits}_{size}" for bits in (2, 3, 4, 5, 6, 8) for size in (32, 64, 128)]
GGUF_FORMATS = [f"gguf_{kind}" for kind in gguf_quantisers.TYPES]
PADDED_PLAIN = "gguf_BF16_padded"


@dataclass(frozen=True)
class Text:
    path: Path
    tokens: list[int]
    separator: int
    context: int

    def windows(self) -> list[list[int]]:
        """Windows as in src/cli/perplexity.h: without overlap, the separator before each."""
        stride = self.context - 1
        return [[self.separator, *self.tokens[i:i + stride]] for i in range(0, len(self.tokens), stride)]


@dataclass(frozen=True)
class Row:
    name: str
    bits: float  # of a weight in a matrix
    torch: float
    bf16: float
    int8: float | None  # of plain numbers there is none

    def difference(self) -> float:
        return self.bf16 / self.torch - 1

    def int8_loss(self) -> float:
        return 0.0 if self.int8 is None else self.int8 / self.bf16 - 1

    def is_good(self) -> bool:
        return abs(self.difference()) <= MAX_DIFFERENCE and self.int8_loss() <= MAX_INT8_LOSS


def read_text(path: Path, model: Path, positions: int, context: int, folder: Path) -> Text:
    content = lzma.open(path).read() if path.suffix == ".xz" else path.read_bytes()
    plain = folder / "text.txt"
    plain.write_bytes(content)
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    # Some 4 bytes per token, doubled, so that enough text remains.
    tokens = tokenizer.encode(content[:positions * 8].decode(errors="ignore")).ids[:positions]
    return Text(plain, tokens, tokenizer.token_to_id("<|endoftext|>"), context)


@torch.inference_mode()
def torch_perplexity(model: torch.nn.Module, text: Text) -> float:
    nats, windows = 0.0, text.windows()
    while windows:
        batch = [windows.pop(0)]
        while windows and len(batch) < BATCH and len(windows[0]) == len(batch[0]):
            batch.append(windows.pop(0))
        ids = torch.tensor(batch)
        logits = model(ids).logits[:, :-1]
        nats += torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="sum").item()
    return math.exp(nats / len(text.tokens))


def our_perplexity(binary: Path, model: Path, text: Text, *options: str) -> float:
    command = [binary, "perplexity", "-m", model, "-f", text.path, "-c", str(text.context), "--max-positions",
               str(len(text.tokens)), "--json", "-q", *options]
    measured = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    if measured["tokens"] != len(text.tokens):
        raise SystemExit(f"paceline measured {measured['tokens']} tokens, PyTorch {len(text.tokens)}")
    return measured["perplexity"]


class Comparison:
    def __init__(self, model: Path, binary: Path, text: Text, folder: Path):
        self.model, self.binary, self.text, self.folder = model, binary, text, folder
        self.config, self.weights = format_models.read_plain(model)
        self.padded = format_models.pad(self.config, self.weights)

    def is_padded(self, kind: str) -> bool:
        size = gguf_quantisers.block_elements(kind)
        return any(weight.ndim == 2 and weight.shape[1] % size for weight in self.weights.values())

    def row(self, name: str) -> Row:
        if name.startswith("mlx_"):
            return self.mlx_row(name)
        kind = name.removeprefix("gguf_").removesuffix("_padded")
        padded = self.is_padded(kind) or name == PADDED_PLAIN
        config, weights = self.padded if padded else (self.config, self.weights)
        path = format_models.write_gguf(self.model, config, weights, kind, self.folder / f"{name}.gguf")
        reference = format_models.torch_model(config, format_models.read_gguf(path, list(weights)))
        found = self.measured(name + (" *" if padded and name != PADDED_PLAIN else ""),
                              gguf_quantisers.bits_per_weight(kind), reference, path, kind in gguf_quantisers.PLAIN)
        path.unlink()
        return found

    def mlx_row(self, name: str) -> Row:
        bits, group_size = (int(part) for part in name.split("_")[1:])
        out = format_models.write_mlx(self.model, self.binary, bits, group_size, self.folder / name)
        reference = format_models.torch_model(self.config, format_models.read_mlx(out))
        return self.measured(name, bits + 32 / group_size, reference, out, is_plain=False)

    def measured(self, name: str, bits: float, reference: torch.nn.Module, path: Path, is_plain: bool) -> Row:
        bf16, int8 = (our_perplexity(self.binary, path, self.text, "--activations", kind) if kind == "bf16" or
                      not is_plain else None for kind in ("bf16", "int8"))
        return Row(name, bits, torch_perplexity(reference, self.text), bf16, int8)


def line(row: Row, baseline: float) -> str:
    int8 = "" if row.int8 is None else f"{row.int8:.3f} ({row.int8_loss():+.3%})"
    return (f"| {row.name} | {row.bits:.3f} | {row.torch:.3f} | {row.bf16:.3f} ({row.difference():+.3%}) | {int8} | "
            f"{row.bf16 / baseline - 1:+.2%} |" + ("" if row.is_good() else " MISSED"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=ROOT / "models/paceline-10m")
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/paceline")
    parser.add_argument("--text", type=Path, default=ROOT / "../shared/corpus/valid.txt.xz")
    parser.add_argument("--positions", type=int, default=10230, help="number of tokens to measure, from the first")
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--formats", nargs="*", default=[*GGUF_FORMATS, PADDED_PLAIN, *MLX_FORMATS])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = read_text(arguments.text, arguments.model, arguments.positions, arguments.context, Path(folder))
        comparison = Comparison(arguments.model, arguments.binary.resolve(), text, Path(folder))
        baseline = comparison.row("gguf_BF16").bf16
        print(f"{len(text.tokens)} tokens in windows of {text.context}, bfloat16 weights: {baseline:.3f}\n")
        print(f"| format | bits | PyTorch | bf16 inputs (at most {MAX_DIFFERENCE:.1%} from PyTorch) | "
              f"8-bit inputs (add at most {MAX_INT8_LOSS:.1%}) | loss |\n| --- | --- | --- | --- | --- | --- |")
        missed = []
        for name in arguments.formats:
            row = comparison.row(name)
            print(line(row, baseline), flush=True)
            if not row.is_good():
                missed.append(row.name)
    print(f"\n{len(arguments.formats)} formats, bars missed: {', '.join(missed) or 'none'} (* padded with zeros)")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
