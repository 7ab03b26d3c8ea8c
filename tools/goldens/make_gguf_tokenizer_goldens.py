"""Writes tests/goldens/gguf/sentencepiece_*.json: small sentencepiece vocabularies as a GGUF file lists them, and
sentencepiece's encodings of texts; and splits.json: a byte-level vocabulary whose merges cross every border, and its
encodings by Hugging Face's tokenizers with the normalizer and pre-tokenizer of each model's tokenizer.json."""
import io
import json
import random
from pathlib import Path

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2

OUT = Path(__file__).resolve().parents[2] / "tests/goldens/gguf"
SYLLABLES = ["ka", "lo", "mi", "ten", "der", "\u00e9t", "sch", "on", "\u4f60\u597d", "\u043f\u0440\u0438", "ing", "a", "I", "st", "re", "(", "1", "20"]

COMMON = dict(model_type="bpe", vocab_size=600, byte_fallback=True, normalization_rule_name="identity",
              remove_extra_whitespaces=False, character_coverage=0.995, num_threads=1, max_sentence_length=1 << 20,
              hard_vocab_limit=False, minloglevel=2)
MODELS = {
    "prefixed": dict(add_dummy_prefix=True, allow_whitespace_only_pieces=True),
    "user_defined": dict(add_dummy_prefix=False, split_digits=True, bos_id=2, eos_id=1, unk_id=3, pad_id=0,
                         user_defined_symbols=["\n", "\n\n", "\u2581\u2581", "\u2581\u2581\u2581", "<table>", "</td>"]),
}


def words(draw, count):
    return ["".join(draw.choices(SYLLABLES, k=draw.choice([1, 2, 2, 3]))) for _ in range(count)]


def corpus(draw):
    known = words(draw, 400)
    for _ in range(1500):
        yield "".join(word + draw.choice([" ", " ", " ", "  ", ", ", ". ", "\n", ":"]) for word in draw.choices(known, k=9))


def texts(draw):
    fixed = ["", " ", "  ", "   a", "a ", " a", "\n", "\n\n\n", "a\n\nb", "    x     y", "\t", "\u2581", "\u2581\u2581a",
             "kaloka", "<table>x</td>", "<0x41>", "\U0001f600 \u00df", "e\u0301", "\u00a0", "1234567890", "a" * 70,
             "\u4f60\u597d\u4f60", "caf\u00e9 na\u00efve", "<s>", "</s> <unk>"]
    known = words(draw, 60)
    for _ in range(120):
        fixed.append("".join(word + draw.choice([" ", "", "  ", "\n", "   ", "\u00e9", "?", "7"])
                             for word in draw.choices(known, k=draw.randint(1, 12))))
    return fixed


def make(name, options):
    draw = random.Random(20261121)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=corpus(draw), model_writer=model, **COMMON, **options)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    types = [piece.type for piece in proto.pieces]  # with the numbers that GGUF files have
    user_defined = sentencepiece_model_pb2.ModelProto.SentencePiece.USER_DEFINED
    pieces = [piece.piece.replace("\u2581", " ") if piece.type == user_defined else piece.piece for piece in proto.pieces]
    golden = {"sentencepiece": sentencepiece.__version__, "add_space_prefix": options["add_dummy_prefix"],
              "unknown": processor.unk_id(), "bos": processor.bos_id(), "pieces": pieces, "types": types,
              "scores": [piece.score for piece in proto.pieces],
              "cases": [{"text": text, "ids": processor.encode(text), "decoded": processor.decode(processor.encode(text))}
                        for text in texts(draw)]}
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"sentencepiece_{name}.json").write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")


CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
CL100K = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTIONS + "?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTIONS + r"?|\p{N}{1,3}|"
         r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CASED = ("A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a"
         "\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
         "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc"
         "\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"
         "\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf"
         "\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
         "\U000118a0-\U000118df\U0001e900-\U0001e943")
HAN_AND_HANGUL = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
DIGITS = {"type": "Digits", "individual_digits": True}
# By tokenizer.ggml.pre: Split patterns (strings) and other pre-tokenizers; then what else the files have.
SPLITS = [
    (["default", "gpt-2", "exaone4", "a.x-4.0", "mellum", "trillion", "granite-docling"], [], {}),
    (["olmo"], [], {"nfc": True}),
    (["llama-bpe", "llama3", "llama-v3", "smaug-bpe", "falcon3", "pixtral", "midm-2.0", "lfm2"], [CL100K], {"ignore_merges": True, "bos": True}),
    (["dbrx", "glm4", "chatglm-bpe"], [CL100K], {}),
    (["qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "kormo", "f2llmv2"], [CL100K.replace("{1,3}", "")], {"nfc": True}),
    # PRETOKENIZE_REGEX of transformers' tokenization_qwen3_5.py
    (["qwen35"], [r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""],
     {"nfc": True}),
    (["deepseek-v3"], [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
                       r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^" "\r\n" r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+["
                       "\r\n" r"]*|\s*[" "\r\n" r"]+|\s+(?!\S)|\s+"], {}),
    (["deepseek-llm"], ["[\r\n]", r"\s?[" + CASED + "]+", r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$",
                        HAN_AND_HANGUL, DIGITS], {}),
    (["deepseek-coder"], ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN_AND_HANGUL, DIGITS], {}),
    (["tekken"], [O200K.replace(CONTRACTIONS + "?", "").replace("{1,3}", "")], {"ignore_merges": True, "bos": True}),
    (["gpt-4o", "llama4", "kanana2"], [O200K], {}),
    (["tiny_aya"], [r"\d{1,3}(?=(?:\d{3})*\b)", O200K], {"nfc": True}),
    (["seed-coder"], [CL100K.replace("{1,3}", "{1}").replace(r"[^\s\p{L}\p{N}]+[\r\n]*", r"[^\s\p{L}\p{N}\r\n]+")], {}),
    (["minicpm5"], [r"\p{N}{1,3}", CL100K.replace("{1,3}", "+")], {"ignore_merges": True}),
    (["viking"], [r" ?[^(\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+", DIGITS], {}),
    (["smollm", "starcoder", "refact", "minerva-7b"], [DIGITS, None], {}),
    (["command-r"], [DIGITS, None], {"nfc": True}),
]
SPLIT_TEXTS = [
    "", " ", "a", "Hello world", "I'm, WE'LL they'Re don'T 'tis", "HelloWorldFooBAR's", "  two  spaces   x ", "\n", "\r\n\r\n", "a\n\n b \n", "tab\tword",
    "1 12 123 1234 12345 1234567 3.14,15", "x1y22z333", "\u0661\u0662\u0663\u0664 \u00bd\u2460 x\u00b2", "foo_bar(x)=='y'//z\n/\n", "!!!???...;;", "$5 +3 <a> ^b ~c |d `e",
    "http://a.b/c?d=e&f#g", "\u4f60\u597d\u4e16\u754c123", "\u65e5\u672c\u8a9e\u30c6\u30ad\u30b9\u30c8\u3067\u3059", "\ud55c\uad6d\uc5b4 \ud14d", "\u041f\u0440\u0438\u0432\u0435\u0442, \u041c\u0418\u0420",
    "cafe\u0301 caf\u00e9 A\u030a", "\u0939\u093f\u0928\u094d\u0926\u0940 \u0e44\u0e17\u0e22", "\u0645\u0631\u062d\u0628\u0627\u060c \u06d4", "\U0001f600\U0001f468\u200d\U0001f469 ok", "\u00a0nb\u3000id\u2028",
    "\u2018q\u2019 \u201cr\u201d \u2026 \u3001\u3002", "(a|b), [c] {d}", "iPhone15Pro Max2", "\u01c5a \u02b0b \ufb01n", "trailing   ", "   \n\n\t x", "a'b'c'S'LL", "(.,!?) |x| (y", "99 1000000 0x1F", "\u1112\u1161\u11ab e\u0301t\u00e9",
]


def byte_level_vocabulary():
    """Merges of pairs of any bytes, and tokens that no merge makes."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    tokenizer.pre_tokenizer = byte_level(add_prefix_space=False, use_regex=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=900, initial_alphabet=sorted(byte_level.alphabet()), min_frequency=1,
                                             special_tokens=["<s>"], show_progress=False)
    tokenizer.train_from_iterator(SPLIT_TEXTS * 2, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    for whole in ("\u0120HelloWorld", "Hello", "\u0120world", "123", "12", "\u0120don", "Max", "\u0120ok"):
        model["vocab"].setdefault(whole, len(model["vocab"]))
    return model


def splits():
    model = byte_level_vocabulary()
    added = [{"id": 0, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}]
    groups = []
    for names, steps, options in SPLITS:
        own = [step if isinstance(step, dict) else {"type": "Split", "pattern": {"Regex": step}, "behavior": "Isolated", "invert": False}
               for step in steps if step is not None]
        uses_gpt2 = not steps or None in steps
        own.append({"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": uses_gpt2})
        tree = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
                "normalizer": {"type": "NFC"} if options.get("nfc") else None,
                "pre_tokenizer": {"type": "Sequence", "pretokenizers": own}, "post_processor": None, "decoder": {"type": "ByteLevel",
                "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
                "model": {**model, "ignore_merges": options.get("ignore_merges", False)}}
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(tree))
        groups.append({"names": names, "begins_with_bos": options.get("bos", False),
                       "ids": [tokenizer.encode(text, add_special_tokens=False).ids for text in SPLIT_TEXTS]})
    texts = sorted(model["vocab"], key=model["vocab"].get)
    golden = {"tokenizers": tokenizers.__version__, "tokens": texts, "merges": [" ".join(pair) for pair in model["merges"]],
              "texts": SPLIT_TEXTS, "splits": groups}
    (OUT / "splits.json").write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    splits()
    for model_name, model_options in MODELS.items():
        make(model_name, model_options)
