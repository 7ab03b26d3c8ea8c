#!/usr/bin/env python3
"""Embeds the same texts with Paceline and with sentence-transformers on its defaults, and compares speed and vectors.

    python3 tools/bench_embed.py [--model DIR | --shape NAME] [--texts N] [--runs N] [--llama PYTHON] [--json FILE]

Needs sentence-transformers, torch, transformers and tokenizers (tools/goldens/requirements.txt). Without --model, the model
is a BERT with the shape of bge-small (12 layers, 384 wide, 12 heads, MLP 1536) or of bge-m3 (24 layers, 1024 wide, 16 heads,
MLP 4096) and random weights, and texts have 5 to 500 tokens. The sides take turns, each in a process of its own with all
threads; times are of embedding alone: sentence-transformers' `encode` after a first call, and `paceline embed --jsonl` less
the time of one text, which is that of loading. Paceline runs with weights in float32, in bfloat16, and quantised to 8 bits;
sentence-transformers runs in float32. With --llama, the Python of an environment with llama-cpp-python, the same model of
random weights also runs there, from GGUF files in F32, BF16 and Q8_0 (package gguf).
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
SHAPES = {
    "bge-small": {"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 1536},
    "bge-m3": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
}
FORMATS = {"float32": ("float32", []), "bfloat16": ("bfloat16", []), "q8": ("float32", ["--quantize", "q8"])}
LLAMA_FORMATS = {"float32": "F32", "bfloat16": "BF16", "q8": "Q8_0"}
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
LLAMA = """
import json, os, sys, time
import llama_cpp
texts = json.load(sys.stdin)
model = llama_cpp.Llama(sys.argv[1], embedding=True, n_ctx=512, n_batch=512, n_ubatch=512, verbose=False,
                        n_threads=os.cpu_count(), n_threads_batch=os.cpu_count())
model.embed(texts[:2], normalize=True)
start = time.perf_counter()
vectors = model.embed(texts, normalize=True)
print(json.dumps({"seconds": time.perf_counter() - start, "vectors": vectors}))
"""
# The names of llama.cpp's architecture "bert" (gguf-py, TENSOR_NAMES) for those of transformers' BertModel.
GGUF_NAMES = {
    "embeddings.word_embeddings": "token_embd", "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm",
}


def gguf_name(name: str) -> str:
    stem, kind = name.rsplit(".", 1)
    if not stem.startswith("encoder.layer."):
        return f"{GGUF_NAMES[stem]}.{kind}"
    number, of_layer = stem.removeprefix("encoder.layer.").split(".", 1)
    return f"blk.{number}.{GGUF_NAMES[of_layer]}.{kind}"


def write_gguf(folder: Path, file: Path, kind: str) -> None:
    """The model of make_model() as llama.cpp reads it."""
    import gguf
    from safetensors.numpy import load_file
    config = json.loads((folder / "config.json").read_text())
    vocab = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    tokens = sorted(vocab, key=vocab.get)
    # The embedding has rows beyond the vocabulary.
    tokens += [f"[unused{i}]" for i in range(len(tokens), config["vocab_size"])]
    writer = gguf.GGUFWriter(str(file), "bert")
    writer.add_context_length(512)
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.CLS)
    writer.add_tokenizer_model("bert")
    writer.add_token_list([token if token.startswith("[") else "\u2581" + token for token in tokens])
    writer.add_token_type_count(config["type_vocab_size"])
    writer.add_token_types([3 if token.startswith("[") else 1 for token in tokens])
    writer.add_unk_token_id(vocab["[UNK]"])
    writer.add_pad_token_id(vocab["[PAD]"])
    writer.add_bos_token_id(vocab["[CLS]"])
    writer.add_sep_token_id(vocab["[SEP]"])
    stored = gguf.GGMLQuantizationType[kind]
    for name, values in load_file(folder / "model.safetensors").items():
        if name.startswith("pooler.") or name == "embeddings.position_ids":
            continue
        is_matrix = name.startswith("encoder.") and values.ndim == 2
        packed = gguf.quants.quantize(values, stored if is_matrix else gguf.GGMLQuantizationType.F32)
        writer.add_tensor(gguf_name(name), packed, raw_dtype=stored if is_matrix else gguf.GGMLQuantizationType.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_model(folder: Path, texts: list[str], dtype: str, shape: dict) -> None:
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
    model = transformers.BertModel(transformers.BertConfig(vocab_size=30522, **shape)).to(getattr(torch, dtype))
    with tempfile.TemporaryDirectory() as plain:
        model.save_pretrained(plain)
        fast.save_pretrained(plain)
        modules = [Transformer(plain), Pooling(shape["hidden_size"], pooling_mode="cls"), Normalize()]
        SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)


def make_texts(count: int) -> list[str]:
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(5000)]
    return [" ".join(rng.choices(words, k=rng.randint(5, 500) - 2)) for _ in range(count)]


def run_peer(python: Path, program: str, model: Path, texts: list[str]) -> tuple[float, list[list[float]]]:
    done = subprocess.run([python, "-c", program, str(model)], input=json.dumps(texts), capture_output=True, text=True,
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


def make_models(work: Path, texts: list[str], options: argparse.Namespace) -> dict[str, Path]:
    """A model for each dtype; with --llama, for each of its formats too. They have the same weights, rounded."""
    models = {}
    for name in options.formats:
        dtype, _ = FORMATS[name]
        if options.model:
            models[dtype] = options.model
        elif dtype not in models:
            models[dtype] = work / dtype
            make_model(models[dtype], texts, dtype, SHAPES[options.shape])
    if options.llama and "float32" not in models:
        make_model(work / "float32", texts, "float32", SHAPES[options.shape])
    for name in options.formats if options.llama else []:
        models[LLAMA_FORMATS[name]] = work / f"{name}.gguf"
        write_gguf(work / "float32", models[LLAMA_FORMATS[name]], LLAMA_FORMATS[name])
    return models


def run_all(models: dict[str, Path], texts: list[str], options: argparse.Namespace) -> list[dict]:
    """Each side once: its format, seconds, and the lowest cosine with sentence-transformers' vectors."""
    seconds, theirs = run_peer(sys.executable, PEER, next(iter(models.values())), texts)
    runs = [{"side": "sentence-transformers", "seconds": seconds, "lowest_cosine": 1.0}]
    for name in options.formats:
        dtype, extra = FORMATS[name]
        loading, _ = run_paceline(options.paceline, models[dtype], extra + options.option, texts[:1])
        whole, ours = run_paceline(options.paceline, models[dtype], extra + options.option, texts)
        runs.append({"side": name, "seconds": whole - loading, "lowest_cosine": lowest_cosine(ours, theirs)})
        if options.llama:
            kind = LLAMA_FORMATS[name]
            seconds, vectors = run_peer(options.llama, LLAMA, models[kind], texts)
            runs.append({"side": kind, "seconds": seconds, "lowest_cosine": lowest_cosine(vectors, theirs)})
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="a directory [--shape with random weights]")
    parser.add_argument("--shape", choices=SHAPES, default="bge-small", help="[bge-small]")
    parser.add_argument("--texts", type=int, default=1000, help="[1000]")
    parser.add_argument("--runs", type=int, default=3, help="of each side, taking turns [3]")
    parser.add_argument("--format", action="append", choices=FORMATS, dest="formats", help="repeat it for several [all]")
    parser.add_argument("--option", action="append", default=[], help="another one of paceline embed, e.g. --option=-t1")
    parser.add_argument("--paceline", type=Path, default=ROOT / "build" / "release" / "paceline")
    parser.add_argument("--llama", type=Path, metavar="PYTHON", help="of an environment with llama-cpp-python: another peer")
    parser.add_argument("--json", type=Path, help="write every run there as well")
    options = parser.parse_args()
    if options.llama and options.model:
        parser.error("--llama runs the model of --shape; leave out --model")
    options.formats = options.formats or list(FORMATS)
    texts = make_texts(options.texts)
    with tempfile.TemporaryDirectory() as work:
        models = make_models(Path(work), texts, options)
        runs = [run for _ in range(options.runs) for run in run_all(models, texts, options)]
    if options.json:
        options.json.write_text(json.dumps({"cores": len(os.sched_getaffinity(0)), "texts": len(texts), "runs": runs}))
    seconds = {side: statistics.median(run["seconds"] for run in runs if run["side"] == side)
               for side in dict.fromkeys(run["side"] for run in runs)}
    cosine = {side: min(run["lowest_cosine"] for run in runs if run["side"] == side) for side in seconds}
    peer = seconds["sentence-transformers"]
    print(f"sentence-transformers, float32: {len(texts) / peer:.1f} texts a second")
    for name in options.formats:
        ours = seconds[name]
        beside = f", {seconds[LLAMA_FORMATS[name]] / ours:.2f} times llama.cpp in {LLAMA_FORMATS[name]}" if options.llama else ""
        print(f"paceline, {name}: {len(texts) / ours:.1f} texts a second, {peer / ours:.2f} times sentence-transformers{beside}, "
              f"lowest cosine {cosine[name]:.6f}")
    for kind in LLAMA_FORMATS.values():
        if kind in seconds:
            print(f"llama.cpp, {kind}: {len(texts) / seconds[kind]:.1f} texts a second, lowest cosine {cosine[kind]:.6f}")


if __name__ == "__main__":
    main()
