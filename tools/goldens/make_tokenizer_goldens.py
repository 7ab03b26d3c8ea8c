#!/usr/bin/env python3
"""Makes tests/goldens/tokenizer/: small tokenizers with odd settings, and HF `tokenizers`' encodings of hard strings.

    python tools/goldens/make_tokenizer_goldens.py [--bundled DIR] [--out DIR]

Needs the `tokenizers` of requirements.txt. Each tokenizer gets a folder with tokenizer.json (except the bundled one,
which is in models/) and golden.jsonl. A line has `text`, `ids`, `ids_with_special`, `ids_special_as_text`, `decoded`
(of `ids`), `decoded_skip_special` (of `ids_with_special`), as in the larger golden files of the developers, and `spans`
of `ids`, flat, in bytes of the text. Other lines have only `decode`, random ids, and `decoded`.
"""

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

PINNED = "0.23.3"
ROOT = Path(__file__).resolve().parent.parent.parent
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
UNKNOWN = r"\p{Lu}?\p{Ll}+|\p{N}{2}|[^\S\r\n]+"  # no scanner has it, and much text stays unmatched
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


# Edge cases of SentencePiece-like files and rarer parts.
FEW_TEXTS = [
    "", " ", "  ", "a", "it was", " it was ", "It  was   the", "\u2581it\u2581was", "\u2581", "was\nit\n\n", "\t", "caf\u00e9 CAFE\u0301",
    "\u4f60\u597d \u4e16", "\U0001f600\U0001f600", "\u00ff\u0100x", "1775 12\u00bd\u0663", "don't!? (said) -- \u00abx\u00bb", "\ufb01ne \u212b\u1e9b\u0323",
    "\uac01\u1112\u1161\u11ab", "\u0130\u03a3 \u1e9e", "q\u0323\u0307\u0301", "\u200bx\u0001y\ufeff", "<s>it", "it<s> was</s>", "  <l> it", "it <r>  was",
    "the<both>the", "xxyyzz", "<unk>", "<0x41>", "a\u0301\u0301\u0301", "\u2460\u3307\uff21", "\u3000it\u00a0was\u2028", "\U0001d400\U00011938\u0344",
    "the age of wisdom, it was the age of", "\ufffd\ufffd", "itwasthebestoftimes", "\u00c9t\u00c9", "\u05d0\u05b8it", "a b  c   d", "##the was##",
    "was</w>", "--  --", "\u1e9b\u0323\u0323x\u0334", "\U0001f468\u200d\U0001f469", "It's 3.14!", "\u09b2it\u0e33", "e\u0301", "it\r\nwas", "\u0345\u0334\u0345",
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


def assembled(pre_tokenizer=None, normalizer=None, decoder=None, post_processor=None, size=340, bytes_of_fallback=False,
              added=(), **options):
    """A tokenizer with parts from JSON, trained with them."""
    tree = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": decoder,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": {}, "merges": [], **options}}
    tokenizer = Tokenizer.from_str(json.dumps({**tree, "model": {**tree["model"], "unk_token": None}}))
    affixes = {key: options[key] for key in ("continuing_subword_prefix", "end_of_word_suffix") if key in options}
    first = ["<unk>", "<s>", "</s>"] + ([f"<0x{b:02X}>" for b in range(256)] if bytes_of_fallback else [])
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=first, show_progress=False, limit_alphabet=60, **affixes)
    tokenizer.train_from_iterator(TRAINING.splitlines(), trainer)
    trained = json.loads(tokenizer.to_str())["model"]
    tree["model"] |= {"vocab": trained["vocab"], "merges": trained["merges"]}
    tree["post_processor"] = post_processor
    next_id = len(trained["vocab"])
    for token in (*SPECIALS, *added):
        identity = trained["vocab"].get(token["content"], next_id)
        next_id = max(next_id, identity + 1)
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
        tree["added_tokens"].append({"id": identity, **flags, **token})
    return tree


SPECIALS = [{"content": content, "special": True} for content in ("<unk>", "<s>", "</s>")]
STRIPPING = [{"content": "<l>", "lstrip": True}, {"content": "<r>", "rstrip": True, "normalized": True},
             {"content": "<both>", "lstrip": True, "rstrip": True, "single_word": True, "normalized": True}]
REPLACED = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
SPACED = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
FRAME = {"type": "TemplateProcessing", "pair": [],
         "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
         "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}


def byte_level(prefix):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True}


def sequence(key, *parts):
    return {"type": "Sequence", key: list(parts)}


def split(pattern, behavior, invert=False):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def metaspace(**options):
    return {"type": "Metaspace", "replacement": "\u2581", **options}


def assembled_tokenizers():
    """Every part missing in the three above, in the combinations of well-known models or worse."""
    fallback = {"byte_fallback": True, "bytes_of_fallback": True, "unk_token": "<unk>", "size": 520}
    joined = sequence("decoders", SPACED, {"type": "ByteFallback"}, {"type": "Fuse"})
    return {
        "prepended": assembled(None, sequence("normalizers", {"type": "Prepend", "prepend": "\u2581"}, REPLACED), sequence(
            "decoders", SPACED, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}),
            FRAME, fuse_unk=True, added=STRIPPING, **fallback),
        "replaced": assembled(split({"String": " "}, "MergedWithPrevious"), REPLACED, joined, FRAME, fuse_unk=True, **fallback),
        "metaspace_first": assembled(metaspace(prepend_scheme="first", split=False), {"type": "Nmt"}, sequence(
                "decoders", {"type": "ByteFallback"}, metaspace(prepend_scheme="first", split=False)), FRAME, added=STRIPPING, **fallback),
        "metaspace_always": assembled(sequence("pretokenizers", metaspace(add_prefix_space=True), {"type": "Digits", "individual_digits": True}),
            {"type": "NFKC"}, metaspace(prepend_scheme="always", split=True), unk_token="<unk>", fuse_unk=True, added=STRIPPING),
        "suffixed": assembled(sequence("pretokenizers", {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Contiguous"},
                        {"type": "Digits", "individual_digits": False}),
            sequence("normalizers", {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"},
                     {"type": "Strip", "strip_left": True, "strip_right": True},
                     {"type": "Replace", "pattern": {"Regex": "[xyz]{2}"}, "content": "w"}),
            {"type": "BPEDecoder", "suffix": "</w>"}, {"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]},
            end_of_word_suffix="</w>", unk_token="<unk>"),
        "prefixed": assembled({"type": "BertPreTokenizer"}, {"type": "NFD"}, {"type": "WordPiece", "prefix": "##", "cleanup": True},
                              continuing_subword_prefix="##", unk_token="<unk>", fuse_unk=True),
        "behaviors": assembled(sequence("pretokenizers", split({"String": "the"}, "MergedWithNext"), split({"Regex": "[aeiou]+"}, "Contiguous"),
                        {"type": "CharDelimiterSplit", "delimiter": "w"}, split({"Regex": "[a-z ]+"}, "Removed", True),
                        {"type": "Whitespace"}), unk_token="<unk>", ignore_merges=True, added=STRIPPING),
        "byte_normalized": assembled(split({"String": "\u0120"}, "MergedWithNext"), sequence("normalizers", {"type": "NFC"}, {"type": "ByteLevel"}), sequence(
                "decoders", byte_level(False), {"type": "Strip", "content": " ", "start": 1, "stop": 0},
                {"type": "Replace", "pattern": {"String": "was"}, "content": "WAS"}),
            {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": True, "add_prefix_space": False}),
        "trimmed": assembled(sequence("pretokenizers", byte_level(True),
                        {"type": "Punctuation", "behavior": "MergedWithPrevious"}), None, byte_level(True),
            sequence("processors", byte_level(True), FRAME),
            added=STRIPPING),
    }


# What encoders' normalizers and models treat in ways of their own.
ENCODER_TEXTS = [
    "\u039f\u0394\u039f\u03a3 \u03a3 \u03a3\u0391\u03a3", "\u0130stanbul I\u0131 \u0130", "\u1112\u1161\u11ab\u1100\u1161 \ud55c\uae00\u11a8",
    "\u200fx\u202e\u05e9\u05c1\u05dc", "a\u0301b\u0327c\u0345", "\u4e2d\u6587x\u3400\u9fff\uf900\U00020000\U0002ceb0", "\u30c6\u3099\u30d7", "x\u0000y\u0007z\u007f\u0080\u00ad",
    "\ufffdx\ue000y\U000f0000\u0378", "w" * 101, "e\u0301" * 60, "it" * 50, "it" * 51, "##was ##", "[UNK] [CLS]it[SEP] [MASK]", "  [MASK]it", "<mask> it <mask>",
    "\uff21\u0301\uff22 \uff21\u20dd", "\u00bd\u0301x", "\ufb01\u0301n \ufb01\u200d", "\u0600\u0661 \u06ddx \u0600\ufb01", "\u00a9\u200d\u00a9 \u2122\u0301", "a\u200bb\u200b\u200bc",
    "\u200bx", "x\u200b", "\u200b\u200b", "\t\r\n\u0085\u00a0", "\r\u0301\n", "\u2460\u2461\u2460", "\u3231\u321c \ufdfa", "\U0001f468\u200d\U0001f469\u200d\U0001f467\U0001f3fd",
    "\U0001f1e9\U0001f1ea\u0301", "\u0915\u094d\u0937\u093f \u0958", "\u0e01\u0e33\u0e49", "\u1e9b\u0323\u0344", "it?was!it...was,it's", "1775,12.5%", "\u00bfit\u00a1\u3001\u3002\u2014was",
    "q\u4f60\u4f60q \u4f60", "xx\u4f60yy", "\u1d400\U0001d400", "Na\u00efve CAF\u00c9 na\u00cfve", "\u01c5\u01c4 \u1fb3\u1fbc", "\u10d0\u1c90 \u13a0\uab70",
]
RULES = {"\u200b": "", "\t": " ", "\n": " ", "\u3000": " ", "\u00a0": " ", "\uff21": "A", "\uff22": "B", "\ufb01": "fi", "\u2460": "1", "\u2461": "2",
         "\u00bd": "1/2", "e\u0301": "\u00e9", "a\u0301": "\u00e1", "\u2122": "TM", "\u0958": "\u0915\u093c", "\u1112\u1161\u11ab": "\ud55c", "\ufdfa": "xyz abc",
         "\u00a9": "(c)", "\u0301": "", "\u3231": "(\u682a)", "\ufe0f": "", "it\u20dd": "IT", "\U0001d400": "A"}


def charsmap():
    """A small precompiled charsmap, as sentencepiece's trainer makes it of RULES."""
    with tempfile.TemporaryDirectory() as folder:
        rules, corpus, prefix = Path(folder, "rules.tsv"), Path(folder, "corpus.txt"), Path(folder, "model")
        def codes(text):
            return " ".join(f"{ord(c):X}" for c in text)
        rules.write_text("".join(f"{codes(old)}\t{codes(new)}\n" for old, new in RULES.items()))
        corpus.write_text(TRAINING)
        sentencepiece.SentencePieceTrainer.train(input=str(corpus), model_prefix=str(prefix), vocab_size=90, hard_vocab_limit=False,
                                                 normalization_rule_tsv=str(rules), minloglevel=2)
        model = sentencepiece_model_pb2.ModelProto()
        model.ParseFromString(prefix.with_suffix(".model").read_bytes())
        return model.normalizer_spec.precompiled_charsmap


BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def bert(post_processor, pre_tokenizer, longest=100, typed=True, **flags):
    """WordPiece with BertNormalizer."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=longest))
    tokenizer.normalizer = normalizers.BertNormalizer(**flags)
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=330, special_tokens=BERT_SPECIALS, show_progress=False)
    lines = TRAINING.splitlines() + ["\u039f\u0394\u039f\u03a3 \u03c2 \u05e9\u05dc ##was"] * 2
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.post_processor = post_processor
    tree = json.loads(tokenizer.to_str())
    if not typed:
        del tree["model"]["type"]
    return tree


def unigram(normalizer, pre_tokenizer, pair):
    """A Unigram model in the order of XLM-R's tokens."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    tokenizer.decoder = decoders.Metaspace()
    first = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=190, special_tokens=first, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(TRAINING.splitlines(), trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair=pair, special_tokens=[("<s>", 0), ("</s>", 2)])
    return json.loads(tokenizer.to_str())


def encoder_tokenizers():
    frame = processors.TemplateProcessing(single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
                                          special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    around = ("[SEP]", 3), ("[CLS]", 2)
    space = pre_tokenizers.Metaspace
    small = charsmap()
    return {
        "bert": bert(frame, pre_tokenizers.BertPreTokenizer()),
        "bert_cased": bert(processors.BertProcessing(*around), pre_tokenizers.BertPreTokenizer(), typed=False, lowercase=False),
        "bert_accents": bert(processors.RobertaProcessing(*around), pre_tokenizers.Whitespace(), 7, clean_text=False,
                             handle_chinese_chars=False, strip_accents=False),
        "unigram": unigram(normalizers.Sequence([normalizers.Precompiled(small), normalizers.Replace(Regex(" {2,}"), " ")]),
                           pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space()]), "<s> $A </s> </s> $B </s>"),
        "unigram_whole": unigram(normalizers.Precompiled(small), space(prepend_scheme="first", split=False), "<s> $B:1 $A </s>"),
    }


def byte_spans(text, offsets):
    """Offsets in code points as offsets in bytes, flat."""
    position, positions = 0, [0]
    for c in text:
        position += len(c.encode())
        positions.append(position)
    return [positions[offset] for pair in offsets for offset in pair]


def random_ids(rng, tokenizer):
    vocabulary = tokenizer.get_vocab()
    fallback = [vocabulary[f"<0x{b:02X}>"] for b in range(256) if f"<0x{b:02X}>" in vocabulary]
    ids = []
    for _ in range(rng.randrange(1, 10)):
        if fallback and rng.randrange(3) == 0:
            ids.extend(fallback[b] for b in rng.choice(("\u00e9", "\u4f60", "\U0001f600")).encode())
            ids.extend(rng.choices(fallback, k=rng.randrange(2)))
        else:
            ids.append(rng.randrange(max(vocabulary.values()) + 1))
    return ids


def golden_lines(tokenizer, texts, pairs=False):
    for text in texts:
        def encode(special, as_text=False):
            tokenizer.encode_special_tokens = as_text
            return tokenizer.encode(text, add_special_tokens=special)
        plain, framed, as_text = encode(False), encode(True).ids, encode(False, True).ids
        line = {"text": text, "ids": plain.ids, "spans": byte_spans(text, plain.offsets), "ids_with_special": framed}
        if as_text != plain.ids:
            line["ids_special_as_text"] = as_text
        yield json.dumps({**line, "decoded": tokenizer.decode(plain.ids, skip_special_tokens=False),
                          "decoded_skip_special": tokenizer.decode(framed, skip_special_tokens=True)}, separators=(",", ":"))
    tokenizer.encode_special_tokens = False
    for first, second in zip(texts[::9], texts[4::9]) if pairs else ():
        def pair(special):
            return tokenizer.encode(first, second, add_special_tokens=special)
        framed, bare = pair(True), pair(False)
        yield json.dumps({"pair": [first, second], "ids": bare.ids, "type_ids": bare.type_ids, "ids_with_special": framed.ids,
                          "type_ids_with_special": framed.type_ids}, separators=(",", ":"))
    rng = random.Random(len(texts))
    for _ in range(40):
        ids = random_ids(rng, tokenizer)
        yield json.dumps({"decode": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)}, separators=(",", ":"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bundled", type=Path, default=ROOT / "models/paceline-10m")
    parser.add_argument("--out", type=Path, default=ROOT / "tests/goldens/tokenizer")
    options = parser.parse_args()
    if tokenizers.__version__ != PINNED:
        sys.exit(f"tokenizers {tokenizers.__version__} found, {PINNED} expected")
    made = {"odd_flags": odd_flags(), "ignore_merges": ignore_merges(), "unknown_pattern": unknown_pattern(),
            **assembled_tokenizers()}
    made |= (encoders := encoder_tokenizers())
    for name, tree in made.items():
        folder = options.out / name
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(tree, ensure_ascii=True, separators=(",", ":"))
        (folder / "tokenizer.json").write_text(text + "\n")
        texts = TEXTS if name in ("odd_flags", "ignore_merges", "unknown_pattern") else FEW_TEXTS
        texts = texts + ENCODER_TEXTS if name in encoders else texts
        (folder / "golden.jsonl").write_text("\n".join(golden_lines(Tokenizer.from_str(text), texts, name in encoders)) + "\n")
    bundled = options.out / "bundled"
    bundled.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_file(str(options.bundled / "tokenizer.json"))
    (bundled / "golden.jsonl").write_text("\n".join(golden_lines(tokenizer, TEXTS)) + "\n")


if __name__ == "__main__":
    main()
