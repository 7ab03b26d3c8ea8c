#!/usr/bin/env python3
"""Makes src/tokenizer/unicode_ranges.cc: which class every code point has for Hugging Face `tokenizers`.

    python tools/make_unicode_classes.py [--check]

Nothing is taken from a Unicode version that we assume: the pinned `tokenizers` is asked, code point by code point.
Its parts disagree among themselves (its regular expressions are newer than its NFC), so each class is asked where it
is used: \\p{...} and \\s of Split, \\w of an added token with single_word, the normalizer NFC.
"""

import argparse
import ctypes
import sys
import unicodedata
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

PINNED = "0.23.3"
OUTPUT = Path(__file__).resolve().parent.parent / "src/tokenizer/unicode_ranges.cc"
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CHUNK = 4096
# In the order of the bits of UnicodeClass in src/tokenizer/unicode_class.h.
PATTERNS = [r"\p{L}", r"\p{N}", r"\p{M}", r"\p{P}", r"\p{S}", r"\s"]
WORD, NFC_ACTIVE, NFC_BARRIER = 1 << 6, 1 << 7, 1 << 8
LEFT_OF_ALL, RIGHT_OF_ALL = "\u0345", "\u0334"  # canonical combining classes 240 and 1: the highest and the lowest


def chunks():
    for i in range(0, len(CODE_POINTS), CHUNK):
        yield CODE_POINTS[i:i + CHUNK]


def matched_by(pattern):
    """The code points that `pattern` (one character) matches: NULs on both sides make them pieces of their own."""
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    found = set()
    for chunk in chunks():
        text = "\0\0" + "\0\0".join(map(chr, chunk)) + "\0\0"
        found.update(ord(piece) for piece, _ in split.pre_tokenize_str(text) if len(piece) == 1)
    return found


def word_characters():
    """The code points next to which an added token with single_word isn't recognised."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.add_tokens([AddedToken("~x~", single_word=True, normalized=False)])
    found = set()
    for chunk in chunks():
        text = "".join(chr(c) + "~x~" for c in chunk)
        matches = {start for start, _ in tokenizer.encode(text).offsets}
        # Every token also ends where the next code point begins, so it is missing if either neighbour is a word's.
        before = [4 * i + 1 not in matches for i in range(len(chunk))]
        for i, c in enumerate(chunk):
            if before[i] and (i == 0 or before[i - 1]):
                found.add(c)
        # Doubtful: between two misses. Ask these alone.
        for i, c in enumerate(chunk):
            if c in found and not tokenizer.encode("~x~" + chr(c)).ids == []:
                found.discard(c)
    return found


def nfc_classes():
    """(active, barriers): what NFC may change, reorder or compose with what stands before it; and what the installed
    Python knows as such but the pinned NFC does not, which therefore is inert on both sides."""
    nfc = normalizers.NFC().normalize_str
    seconds, composed = set(), set()
    for c in CODE_POINTS:
        decomposed = unicodedata.normalize("NFD", chr(c))
        if len(decomposed) > 1:
            composed.add(c)
            seconds.add(ord(decomposed[-1]))
    pairs = {}
    for c in composed:
        decomposed = unicodedata.normalize("NFD", chr(c))
        pairs.setdefault(ord(decomposed[-1]), []).append(decomposed)
    active, barriers = set(), set()
    for c in CODE_POINTS:
        reordered = nfc("a" + LEFT_OF_ALL + chr(c)) != "a" + LEFT_OF_ALL + chr(c) or \
            nfc("a" + chr(c) + RIGHT_OF_ALL) != "a" + chr(c) + RIGHT_OF_ALL
        composes = any(nfc(d) != d for d in pairs.get(c, []))
        if reordered or composes or nfc(chr(c)) != chr(c):
            active.add(c)
        elif unicodedata.combining(chr(c)) != 0 or newly_combining(c) or c in seconds and \
                any(unicodedata.normalize("NFC", d) != d for d in pairs[c]):
            barriers.add(c)
    return active, barriers


def newly_combining(c):
    """Whether c reorders in utf8proc 2.8 (Unicode 15), which the program uses; asked of the library itself."""
    if c == 0:
        return False  # the end of a C string
    text = "a" + LEFT_OF_ALL + chr(c)
    other = "a" + chr(c) + RIGHT_OF_ALL
    return utf8proc_nfc(text) != text or utf8proc_nfc(other) != other


def utf8proc_nfc(text):
    if not hasattr(utf8proc_nfc, "library"):
        utf8proc_nfc.library = ctypes.CDLL("libutf8proc.so.2")
        utf8proc_nfc.library.utf8proc_NFC.restype = ctypes.c_void_p
        utf8proc_nfc.free = ctypes.CDLL(None).free
    address = utf8proc_nfc.library.utf8proc_NFC(text.encode())
    result = ctypes.string_at(address).decode()
    utf8proc_nfc.free(ctypes.c_void_p(address))
    return result


def ranges_of(classes):
    """Maximal runs (first, last, flags) with flags other than 0."""
    runs = []
    for c in range(0x110000):
        flags = classes.get(c, 0)
        if flags and runs and runs[-1][1] == c - 1 and runs[-1][2] == flags:
            runs[-1][1] = c
        elif flags:
            runs.append([c, c, flags])
    return runs


def render():
    classes = dict.fromkeys(CODE_POINTS, 0)
    for bit, pattern in enumerate(PATTERNS):
        for c in matched_by(pattern):
            classes[c] |= 1 << bit
    for c in word_characters():
        classes[c] |= WORD
    active, barriers = nfc_classes()
    for c in active:
        classes[c] |= NFC_ACTIVE
    for c in barriers:
        classes[c] |= NFC_BARRIER
    entries = ["{0x%X, 0x%X, 0x%X}," % tuple(run) for run in ranges_of(classes)]
    lines, line = [], "   "
    for entry in entries:
        if len(line) + 1 + len(entry) > 118:
            lines.append(line)
            line = "   "
        line += " " + entry
    lines.append(line)
    return "\n".join([
        f"// Made by tools/make_unicode_classes.py from Hugging Face tokenizers {PINNED}; not to be edited.",
        '#include "tokenizer/unicode_ranges.h"', "", "namespace paceline {", "", "// clang-format off",
        "const UnicodeRange kUnicodeRanges[] = {", *lines, "};", "// clang-format on",
        f"const size_t kNumUnicodeRanges = {len(entries)};", "", "}  // namespace paceline", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed file instead of writing it")
    options = parser.parse_args()
    if tokenizers.__version__ != PINNED:
        sys.exit(f"tokenizers {tokenizers.__version__} found, {PINNED} expected")
    text = render()
    if options.check:
        sys.exit(0 if OUTPUT.read_text() == text else f"{OUTPUT}: differs")
    OUTPUT.write_text(text)


if __name__ == "__main__":
    main()
