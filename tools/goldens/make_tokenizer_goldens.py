#!/usr/bin/env python3
"""Makes tests/goldens/tokenizer/: small tokenizers with odd settings, and what HF `tokenizers` makes of hard strings.

    python tools/goldens/make_tokenizer_goldens.py [--bundled DIR] [--out DIR]

Needs the `tokenizers` of requirements.txt. Each tokenizer gets a folder with tokenizer.json (the bundled one none: it
is that of models/) and golden.jsonl: `text`, `ids`, `ids_with_special`, `ids_special_as_text`, `decoded` (of `ids`),
`decoded_skip_special` (of `ids_with_special`), the fields of which the larger golden files of the developers have more.
"""

import argparse
import json
import sys
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

PINNED = "0.23.3"
ROOT = Path(__file__).resolve().parent.parent.parent
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
UNKNOWN = r"\p{Lu}?\p{Ll}+|\p{N}{2}|[^\S\r\n]+"  # no scanner has it, and it leaves much unmatched
TRAINING = """It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of
foolishness; we had everything before us, we had nothing before us. "I don't know," she said, "they'll say we've gone."
The year was 1775. Na\u00efve caf\u00e9 owners in \u4f60\u597d \u4e16\u754c, \u041f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440.
""" * 4
TEXTS = [
    "", " ", "a", "Hello world", " Hello", "hello ", "Hello  World", "   ", "\n", "\r\n", "\n\n \n", "a\n\nb", "\t\tx", "a \n b",
    "it was the best of times", "It's, I'LL we've THEY'RE don't 'tis '", "'\u017f \u2019s", "1 12 123 1234 12345678 3.14",
    "\u0661\u0662\u0663 \u2460\u2461 \u00bd x\u00b2", "!!!??? ... -> {}[]()", "foo_bar(x)=='y'\n\n\n", "http://a.b/c?d=e&f#g",
    "\u4f60\u597d\u4e16\u754c", "\u65e5\u672c\u8a9e\u30c6\u30ad\u30b9\u30c8", "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440", "\u0645\u0631\u062d\u0628\u0627", "\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "cafe\u0301 caf\u00e9", "A\u030a \u00c5 \u212b",
    "o\u0302\u0301 o\u0301\u0302 \u1ed1", "q\u0323\u0307 q\u0307\u0323", "\u0344\u0301", "\u0301 alone", "a\u0898\u0301 b\u1abf\u0323",
    "\U00011935\U00011930", "\U00011938", "\u0958 \u0915\u093c", "\U0001d15e", "\ufb01 \u1e9b\u0323", "\uac00\u11a8", "\U0001f600",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f1e9\U0001f1ea", "\ufeffbom", "\ufffd", "\u0000\u0001\u007f",
    "\u00a0x\u3000y\u2028z\u0085", "\u180ex \u200bx", "\u01c5\u02b0\u2160\u3007", "a" * 100, "ab" * 80, " " * 70 + "x", "\n" * 66,
    "\U0010ffff\ue000\U000e0041", "<|endoftext|>", "a<|endoftext|>b", "<|im_start|>user\nhi<|im_end|>\n", "<|im_start", "<|IM_END|>",
    "<s>x</s>", "  <s>  x </s> ", "left  <l>x", "x<l>", "<r>  x", "<r>\n\n<l> ", "<both> a <both>", "  <both>  <both>  ",
    "word", "a word here", "swords word's word_ word\u0301 wordword", "\u00e9clair", "an e\u0301clair, \u00e9clairs", "<spec>", " <spec>s<spec>",
    "<long", "<longer>", "<long><longer><longe>", "abcabcabd", "abcd bcde", "\u0120x\u00e9", "x \u0120x\u00e9 y", "tab\tword\nword",
]


def train(pre_tokenizer, size, normalizer=None, alphabet=None):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet() if alphabet is None else alphabet
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=sorted(alphabet), show_progress=False)
    tokenizer.train_from_iterator(TRAINING.splitlines(), trainer)
    return tokenizer


def odd_flags():
    """Added tokens with every flag, a prefix space, GPT-2's pattern, and a frame on both sides."""
    tokenizer = train(pre_tokenizers.ByteLevel(add_prefix_space=True), 420, normalizers.NFC())
    tokenizer.add_special_tokens([AddedToken("<s>", normalized=False, special=True),
                                  AddedToken("</s>", normalized=False, special=True, rstrip=True),
                                  AddedToken("<spec>", normalized=True, special=True),
                                  AddedToken("<longer>", normalized=False, special=True)])
    tokenizer.add_tokens([AddedToken("<l>", lstrip=True, normalized=False), AddedToken("<r>", rstrip=True, normalized=False),
                          AddedToken("<both>", lstrip=True, rstrip=True, normalized=True),
                          AddedToken("word", single_word=True, normalized=False),
                          AddedToken("e\u0301clair", single_word=True, normalized=True), AddedToken("<long", normalized=False),
                          AddedToken("abc", normalized=False), AddedToken("bcde", normalized=False),
                          AddedToken("abcabd", normalized=True), AddedToken("\u0120x\u00e9", normalized=False)])
    frame = processors.TemplateProcessing(single="<s> $A </s> </s>", special_tokens=[
        (token, tokenizer.token_to_id(token)) for token in ("<s>", "</s>")])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), frame])
    return json.loads(tokenizer.to_str())


def ignore_merges():
    """ignore_merges with tokens that no merge makes, merges as strings, and bytes that the vocabulary lacks."""
    alphabet = [c for c in pre_tokenizers.ByteLevel.alphabet() if c not in "xyz\u00c3\u0120"]
    split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tree = json.loads(train(split, 380, alphabet=alphabet).to_str())
    model = tree["model"]
    for token in ("Hello", "\u0120world", "123", "\u010a\u010a", "x"):
        model["vocab"].setdefault(token, len(model["vocab"]))
    tokenizer = Tokenizer.from_str(json.dumps(tree))
    tokenizer.add_special_tokens([AddedToken("<s>", normalized=False), AddedToken("<|endoftext|>", normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[
        ("<s>", tokenizer.token_to_id("<s>"))])
    tree = json.loads(tokenizer.to_str())
    model = tree["model"]
    model["ignore_merges"] = True
    model["merges"] = ["#version: 0.2"] + [" ".join(pair) for pair in model["merges"]]
    return tree


def unknown_pattern():
    """A split pattern that only the general engine knows, twice in a row, and an empty normalizer Sequence."""
    split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(UNKNOWN), "isolated"),
                                     pre_tokenizers.Split(Regex(r"t(?=h)|(?<=e)s*"), "isolated"),
                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = train(split, 360, normalizers.Sequence([]))
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", normalized=False)])
    return json.loads(tokenizer.to_str())


def golden_lines(tokenizer):
    for text in TEXTS:
        def ids(special, as_text=False):
            tokenizer.encode_special_tokens = as_text
            return tokenizer.encode(text, add_special_tokens=special).ids
        plain, framed = ids(False), ids(True)
        yield json.dumps({"text": text, "ids": plain, "ids_with_special": framed, "ids_special_as_text": ids(False, True),
                          "decoded": tokenizer.decode(plain, skip_special_tokens=False),
                          "decoded_skip_special": tokenizer.decode(framed, skip_special_tokens=True)},
                         separators=(",", ":"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bundled", type=Path, default=ROOT / "models/paceline-10m")
    parser.add_argument("--out", type=Path, default=ROOT / "tests/goldens/tokenizer")
    options = parser.parse_args()
    if tokenizers.__version__ != PINNED:
        sys.exit(f"tokenizers {tokenizers.__version__} found, {PINNED} expected")
    made = {"odd_flags": odd_flags(), "ignore_merges": ignore_merges(), "unknown_pattern": unknown_pattern()}
    for name, tree in made.items():
        folder = options.out / name
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(tree, ensure_ascii=True, separators=(",", ":"))
        (folder / "tokenizer.json").write_text(text + "\n")
        (folder / "golden.jsonl").write_text("\n".join(golden_lines(Tokenizer.from_str(text))) + "\n")
    bundled = options.out / "bundled"
    bundled.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_file(str(options.bundled / "tokenizer.json"))
    (bundled / "golden.jsonl").write_text("\n".join(golden_lines(tokenizer)) + "\n")


if __name__ == "__main__":
    main()
