#!/usr/bin/env python3
"""Makes src/tokenizer/encoder_ranges.cc: the classes of code points for the normalizers BertNormalizer and Precompiled.

    python tools/make_encoder_classes.py [--check]

As make_unicode_classes.py, it assumes no version of Unicode: every code point is given to the pinned `tokenizers`.
Precompiled reads grapheme clusters of fewer than six bytes as one. A map that replaces every lead byte shows where they
end: a short cluster becomes one X, a longer one an X for each character.
"""

import argparse
import struct
import sys
from pathlib import Path

import tokenizers
from tokenizers import normalizers

PINNED = "0.23.3"
OUTPUT = Path(__file__).resolve().parent.parent / "src/tokenizer/encoder_ranges.cc"
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
ACUTE, ZWJ = "\u0301", "\u200d"


def every_byte_to_x():
    """A charsmap: a trie of darts-clone with each byte but NUL as a key, whose value is the text X."""
    units = [0] * 0x300
    units[0] = 0x100 << 10
    for byte in range(1, 256):
        units[0x100 + byte] = 0x300 << 10 | 1 << 8 | byte
        units[0x200 + byte] = 1 << 31
    return struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + b"X\0"


def bert(**flags):
    off = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    return normalizers.BertNormalizer(**{**off, **flags}).normalize_str


def class_tests():
    """In the order of the bits of EncoderClass in src/tokenizer/encoder_class.h."""
    clean, chinese, strip = bert(clean_text=True), bert(handle_chinese_chars=True), bert(strip_accents=True)
    marked = normalizers.Precompiled(every_byte_to_x()).normalize_str

    def extends(c):
        return len(marked("a" + c)) == 1

    return [
        lambda c: clean("x" + c + "x") == "xx",
        lambda c: c != " " and clean("x" + c + "x") == "x x",
        lambda c: chinese(c) == " " + c + " ",
        lambda c: strip("x" + c) == "x",
        extends,
        lambda c: len(c.encode()) < 4 and c != "\0" and len(marked(c + ACUTE)) == 2,
        lambda c: len(marked(c + "a")) == 1,
        lambda c: not extends(c) and len(marked("\u00a9" + ZWJ + c)) == 3,
    ]


def runs():
    tests = class_tests()
    found = []
    for c in CODE_POINTS:
        text = chr(c)
        classes = sum(1 << bit for bit, test in enumerate(tests) if test(text))
        if c == 0:
            classes |= 1 << 5  # a byte that no key of a charsmap has: a control character
        if classes == 0:
            continue
        if found and found[-1][1] == c - 1 and found[-1][2] == classes:
            found[-1][1] = c
        else:
            found.append([c, c, classes])
    return found


def source(found):
    lines = ["// Made by tools/make_encoder_classes.py from Hugging Face tokenizers " + PINNED + "; not to be edited.",
             '#include "tokenizer/encoder_class.h"', "", "namespace paceline {", "", "// clang-format off",
             "const EncoderRange kEncoderRanges[] = {"]
    line = "   "
    for first, last, classes in found:
        item = f" {{0x{first:X}, 0x{last:X}, 0x{classes:X}}},"
        if len(line + item) > 120:
            lines.append(line)
            line = "   "
        line += item
    return "\n".join(lines + [line, "};", "// clang-format on", f"const size_t kNumEncoderRanges = {len(found)};", "",
                              "}  // namespace paceline", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args()
    if tokenizers.__version__ != PINNED:
        sys.exit(f"tokenizers {tokenizers.__version__} found, expected {PINNED}")
    text = source(runs())
    if options.check:
        sys.exit(None if OUTPUT.read_text() == text else f"{OUTPUT} differs")
    OUTPUT.write_text(text)


if __name__ == "__main__":
    main()
