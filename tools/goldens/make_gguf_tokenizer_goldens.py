"""Writes tests/goldens/gguf/sentencepiece_*.json: small sentencepiece vocabularies as a GGUF file lists them, and
sentencepiece's encodings of texts."""
import io
import json
import random
from pathlib import Path

import sentencepiece
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


if __name__ == "__main__":
    for model_name, model_options in MODELS.items():
        make(model_name, model_options)
