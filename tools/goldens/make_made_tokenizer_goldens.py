#!/usr/bin/env python3
"""Makes tests/goldens/made_tokenizers/: tokenizers without a tokenizer.json, and their encodings by the packages that read
these files: sentencepiece, mistral_common and transformers.

    python tools/goldens/make_made_tokenizer_goldens.py [--out DIR] [--random N]

Needs sentencepiece, mistral_common, tokenizers and transformers of requirements.txt. A line of golden.jsonl has `text`; `ids`
of it, where special tokens in the text are text; and, where they apply, `ids_special`, in which they are found, and
`decoded`, of `ids`.
"""

import argparse
import base64
import io
import json
import random
import re
import shutil
import tempfile
from pathlib import Path

import sentencepiece
import tokenizers
import transformers
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from transformers.convert_slow_tokenizer import bytes_to_unicode

from make_gguf_tokenizer_goldens import O200K, CONTRACTIONS, SYLLABLES, corpus

ROOT = Path(__file__).resolve().parents[2]
# What nmt_nfkc does, for a few characters: from, to.
RULES = {"\ufb01": "fi", "\uff21": "A", "\u2460": "1", "e\u0301": "\u00e9", "\t": " ", "\u3000": " ", "\u00a0": " ", "\u200b": "",
         "\u0001": "", "\u2026": "...", "\u00bd": "1 2", "\u1e9b\u0323": "\u1e69", "\uff21\u0301": "\u00c1"}
SPM = dict(vocab_size=420, num_threads=1, max_sentence_length=1 << 20, hard_vocab_limit=False, minloglevel=2, character_coverage=0.995)
SENTENCE_PIECES = {
    "bpe_identity": dict(model_type="bpe", byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                         allow_whitespace_only_pieces=True),
    "bpe_rules": dict(model_type="bpe", byte_fallback=True, rules=True, user_defined_symbols=["<table>", "<tab", "ka\u2460", "\n", "\n\n"]),
    "bpe_unknown": dict(model_type="bpe", rules=True, remove_extra_whitespaces=False, add_dummy_prefix=False, bos_id=-1, pad_id=3),
    "unigram_rules": dict(model_type="unigram", byte_fallback=True, rules=True, user_defined_symbols=["<table>", "lo1", "tenten"]),
    "unigram_unknown": dict(model_type="unigram", normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True),
}
FIXED = ["", " ", "  ", "a", " a", "a ", "  a  b  ", "\n", "\n\n\n", "a\n\nb", "\t", "\t a\t\tb", "\u2581", "\u2581\u2581a", "a\u2581\u2581", "kaloka", "kakakaka",
         "tentententen", "<table>", "<table>x<tab<table", " <table> x", "ka\u2460lo1", "<0x41>", "<s>", "</s> <unk>", "a<s> b</s>", "\U0001f600 \u00df",
         "e\u0301", "\ufb01\uff21\u2460", "\uff21\u0301x", "\u00bd\u00bd \u00bd", "\u2026", "\u1e9b\u0323\u1e9b", "\u200b", " \u200b ", "\u200ba\u0001", "\u3000\u00a0a\u3000",
         "1234567890", "a" * 70, "\u4f60\u597d\u4f60", "caf\u00e9 na\u00efve", "\ufffd", "x\u0000y", "<unk>", "don't DON'T", "HelloWorld's", "'s 12345"]
CHARACTERS = [*" \u2581\n\t\u3000\u200b\u2460\uff21\ufb01\u00bd\u0301eaA1.,!'<>", "  ", "<table>", "<tab", "<s>", "ka", "lo1", "\U0001f600", "\u4f60\u597d", "\u00e9"]


def texts_of(count):
    draw = random.Random(20261127)
    return FIXED + ["".join(draw.choice(SYLLABLES if draw.random() < 0.6 else CHARACTERS) for _ in range(draw.randint(1, 24)))
                    for _ in range(count)]


def write(folder, lines, config=None):
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "golden.jsonl").write_text("".join(json.dumps(line, ensure_ascii=True) + "\n" for line in lines))


def train_sentence_pieces(options):
    draw, out = random.Random(20261121), io.BytesIO()
    options = dict(options)
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        if options.pop("rules", False):
            for source, target in RULES.items():
                rules.write(" ".join(f"{ord(c):X}" for c in source) + "\t" + " ".join(f"{ord(c):X}" for c in target) + "\n")
            rules.flush()
            options["normalization_rule_tsv"] = rules.name
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=corpus(draw), model_writer=out, **{**SPM, **options})
    return out.getvalue()


def sentence_pieces(name, options, out, count):
    folder = out / name
    folder.mkdir(parents=True)
    model = train_sentence_pieces(options)
    (folder / "tokenizer.model").write_bytes(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    specials = {processor.id_to_piece(i): i for i in range(processor.get_piece_size()) if processor.is_control(i) or processor.is_unknown(i)}
    lines = []
    for text in texts_of(count):
        ids = processor.encode(text)
        line = {"text": text, "ids": ids}
        parts = re.split("(" + "|".join(map(re.escape, specials)) + ")", text)
        if len(parts) > 1:
            line["ids_special"] = sum(([specials[part]] if part in specials else processor.encode(part) for part in parts if part), [])
        if processor.unk_id() not in ids:
            line["decoded"] = processor.decode(ids)
        lines.append(line)
    write(folder, lines)


def byte_level_bpe(pattern, size):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    steps = [pre_tokenizers.Split(Regex(pattern), "isolated")] if pattern else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not pattern)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    tokenizer.train_from_iterator(corpus(random.Random(5)), trainer)
    return json.loads(tokenizer.to_str())["model"]


def tekken(name, special, out, count):
    folder = out / name
    folder.mkdir(parents=True)
    pattern = O200K.replace(CONTRACTIONS + "?", "").replace("{1,3}", "")
    model = byte_level_bpe(pattern, 500)
    byte_of = {c: b for b, c in bytes_to_unicode().items()}
    words = [bytes(byte_of[c] for c in text) for text in sorted(model["vocab"], key=model["vocab"].get)]
    words.sort(key=lambda word: (len(word) > 1, word if len(word) == 1 else b""))
    vocab = [{"rank": rank, "token_bytes": base64.b64encode(word).decode(), "token_str": word.decode(errors="replace")}
             for rank, word in enumerate(words)]
    config = {"pattern": pattern, "num_vocab_tokens": len(vocab), "default_vocab_size": len(vocab) - 20 + 30,
              "default_num_special_tokens": 30, "version": "v3"}
    file = {"config": config, "vocab": vocab, "version": 3, "type": "Tekken"}
    if special:
        file["special_tokens"] = [{"rank": rank, "token_str": text, "is_control": True} for rank, text in enumerate(special)]
    (folder / "tekken.json").write_text(json.dumps(file, ensure_ascii=True, separators=(",", ":")) + "\n")
    tokenizer = Tekkenizer.from_file(folder / "tekken.json")
    found = re.compile("(" + "|".join(re.escape(text) for text in ("<s>", "</s>", "<unk>")) + ")")
    lines = []
    for text in texts_of(count):
        ids = tokenizer.encode(text, bos=False, eos=False)
        line = {"text": text, "ids": ids, "decoded": tokenizer.decode(ids)}
        parts = found.split(text)
        if len(parts) > 1:
            line["ids_special"] = sum(([{"<unk>": 0, "<s>": 1, "</s>": 2}[part]] if found.fullmatch(part)
                                       else tokenizer.encode(part, bos=False, eos=False) for part in parts if part), [])
        lines.append(line)
    write(folder, lines)


def vocab_and_merges(name, config, out, count, size=420):
    folder = out / name
    folder.mkdir(parents=True)
    model = byte_level_bpe(None, size)
    model["vocab"]["<|endoftext|>"] = len(model["vocab"])
    (folder / "vocab.json").write_text(json.dumps(model["vocab"], ensure_ascii=False) + "\n")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(" ".join(pair) + "\n" for pair in model["merges"]))
    write(folder, [], config)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert type(tokenizer).__name__ == config["tokenizer_class"], type(tokenizer)
    lines = []
    for text in [*texts_of(count), "x<|endoftext|>y", "<extra> <|endoftext|>"]:
        line = {"text": text, "ids_special": tokenizer.encode(text, add_special_tokens=False)}
        line["ids"] = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        line["decoded"] = tokenizer.decode(line["ids"], clean_up_tokenization_spaces=False)
        lines.append(line)
    write(folder, lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "tests/goldens/made_tokenizers")
    parser.add_argument("--random", type=int, default=90, metavar="N", help="random texts for each tokenizer")
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    for name, options in SENTENCE_PIECES.items():
        sentence_pieces(name, options, args.out, args.random)
    tekken("tekken_v3", None, args.out, args.random)
    tekken("tekken_listed", ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<pad>"], args.out, args.random)
    vocab_and_merges("gpt2", {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False, "eos_token": "<|endoftext|>"}, args.out, args.random)
    vocab_and_merges("gpt2_prefixed", {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True, "eos_token": "<|endoftext|>",
                                       "additional_special_tokens": ["<extra>"]}, args.out, args.random)
    vocab_and_merges("qwen2", {"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|endoftext|>"}, args.out, args.random)


if __name__ == "__main__":
    main()
