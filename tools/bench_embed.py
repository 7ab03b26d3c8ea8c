#!/usr/bin/env python3
"""Embeds the same texts with Paceline and with sentence-transformers on its defaults, and compares speed and vectors.

    python3 tools/bench_embed.py [--model DIR] [--texts N] [--runs N] [--json FILE]

Needs sentence-transformers, torch, transformers and tokenizers (tools/goldens/requirements.txt). Without --model, the model
has the shape of bge-small (BERT, 12 layers, 384 wide, 12 heads, MLP 1536) and random weights, and texts have 5 to 500
tokens. The sides take turns, each in a process of its own with all threads; times are of embedding alone: sentence-transformers'
`encode` behind a first call, and `paceline embed --jsonl` less the time of one text, which is that of loading. Paceline runs
with weights in float32, in bfloat16, and quantised to 8 bits; sentence-transformers runs in float32.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHAPE = {"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 1536}
FORMATS = {"float32": ("float32", []), "bfloat16": ("bfloat16", []), "q8": ("float32", ["--quantize", "q8"])}
GOALS = {"float32": 1.2, "bfloat16": 3.0, "q8": 3.0}
PEER = """
import json, sys, time
import torch
from sentence_transformers import SentenceTransformer
texts = json.load(sys.stdin)
model = SentenceTransformer(sys.argv[1], device="cpu", model_kwargs={"dtype": torch.float32})
model.encode(texts[:2])
start = time.perf_counter()
vectors = model.encode(texts)
print(json.dumps({"seconds": time.perf_counter() - start, "vectors": vectors.tolist()}))
"""


def make_model(folder: Path, texts: list[str], dtype: str) -> None:
    """A sentence-transformers model with random weights, whose words are tokens."""
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted({word for text in texts for word in text.split()})
    vocab = {word: i for i, word in enumerate(specials + words)}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"], model_max_length=512)
    torch.manual_seed(1)
    model = transformers.BertModel(transformers.BertConfig(vocab_size=30522, **SHAPE)).to(getattr(torch, dtype))
    with tempfile.TemporaryDirectory() as plain:
        model.save_pretrained(plain)
        fast.save_pretrained(plain)
        modules = [Transformer(plain), Pooling(SHAPE["hidden_size"], pooling_mode="cls"), Normalize()]
        SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)


def make_texts(count: int) -> list[str]:
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(5000)]
    return [" ".join(rng.choices(words, k=rng.randint(5, 500) - 2)) for _ in range(count)]


def run_peer(model: Path, texts: list[str]) -> tuple[float, list[list[float]]]:
    done = subprocess.run([sys.executable, "-c", PEER, str(model)], input=json.dumps(texts), capture_output=True, text=True,
                          check=True)
    answer = json.loads(done.stdout)
    return answer["seconds"], answer["vectors"]


def run_paceline(binary: Path, model: Path, options: list[str], texts: list[str]) -> tuple[float, list[list[float]]]:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    start = time.perf_counter()
    done = subprocess.run([binary, "embed", "-m", model, "--jsonl", *options], input=lines, capture_output=True, text=True,
                          check=True)
    return time.perf_counter() - start, [json.loads(line)["embedding"] for line in done.stdout.splitlines()]


def lowest_cosine(ours: list[list[float]], theirs: list[list[float]]) -> float:
    """Both are normalised."""
    return min(sum(a * b for a, b in zip(x, y)) for x, y in zip(ours, theirs, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="a directory [bge-small's shape, random weights]")
    parser.add_argument("--texts", type=int, default=1000, help="[1000]")
    parser.add_argument("--runs", type=int, default=3, help="of each side, taking turns [3]")
    parser.add_argument("--format", action="append", choices=FORMATS, dest="formats", help="repeat it for several [all]")
    parser.add_argument("--option", action="append", default=[], help="another one of paceline embed, e.g. --option=-t1")
    parser.add_argument("--paceline", type=Path, default=ROOT / "build" / "release" / "paceline")
    parser.add_argument("--json", type=Path, help="write every run there as well")
    options = parser.parse_args()
    texts = make_texts(options.texts)
    runs = []
    with tempfile.TemporaryDirectory() as work:
        models = {}
        for name in options.formats or FORMATS:
            dtype, _ = FORMATS[name]
            if options.model:
                models[dtype] = options.model
            elif dtype not in models:
                models[dtype] = Path(work) / dtype
                make_model(models[dtype], texts, dtype)
        for _ in range(options.runs):
            seconds, theirs = run_peer(next(iter(models.values())), texts)
            runs.append({"side": "sentence-transformers", "seconds": seconds})
            for name in options.formats or FORMATS:
                dtype, extra = FORMATS[name]
                loading, _ = run_paceline(options.paceline, models[dtype], extra + options.option, texts[:1])
                whole, ours = run_paceline(options.paceline, models[dtype], extra + options.option, texts)
                runs.append({"side": name, "seconds": whole - loading, "lowest_cosine": lowest_cosine(ours, theirs)})
    if options.json:
        options.json.write_text(json.dumps({"cores": len(os.sched_getaffinity(0)), "texts": len(texts), "runs": runs}))
    medians = {side: statistics.median(run["seconds"] for run in runs if run["side"] == side)
               for side in dict.fromkeys(run["side"] for run in runs)}
    peer = medians.pop("sentence-transformers")
    print(f"sentence-transformers, float32: {len(texts) / peer:.1f} texts a second")
    for name, seconds in medians.items():
        cosine = min(run["lowest_cosine"] for run in runs if run["side"] == name)
        print(f"paceline, {name}: {len(texts) / seconds:.1f} texts a second, {peer / seconds:.2f} times "
              f"(goal {GOALS[name]}), lowest cosine {cosine:.6f}")


if __name__ == "__main__":
    main()
