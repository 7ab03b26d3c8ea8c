#!/usr/bin/env python3
"""Makes src/tokenizer/unicode_ranges.cc and unicode_lowercase.cc: the classes and the lower case of every code point in
Hugging Face `tokenizers`.

    python tools/make_unicode_classes.py [--check]

No Unicode version is assumed: every code point is tested with the pinned `tokenizers`. Its parts use different versions
(its regular expressions are newer than its NFC), so each class is tested where it is used: \\p{...} and \\s in Split,
\\w in an added token with single_word, the normalizers, Digits and Punctuation.
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
LOWERCASE_OUTPUT = OUTPUT.with_name("unicode_lowercase.cc")
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CHUNK = 4096
UTF8PROC, LIBC = ctypes.CDLL("libutf8proc.so.2"), ctypes.CDLL(None)
# In the order of the bits of UnicodeClass in src/tokenizer/unicode_class.h.
PATTERNS = [r"\p{L}", r"\p{N}", r"\p{M}", r"\p{P}", r"\p{S}", r"\s"]
WORD, NFC_ACTIVE, NFC_BARRIER = 1 << 6, 1 << 7, 1 << 8
DECOMPOSES_LATER, ACCENT, DIGIT, PUNCTUATION_MARK = 1 << 9, 1 << 10, 1 << 11, 1 << 12
DOTTED_CAPITAL_I = 0x130  # the only one whose lower case is two code points
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
    """(active, barriers): code points that NFC may change, reorder or compose with the one before; and those that the
    installed Python treats so but the pinned NFC doesn't, which are inert on both sides."""
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
    return utf8proc_normal("NFC", text) != text or utf8proc_normal("NFC", other) != other


def utf8proc_normal(form, text):
    function = getattr(UTF8PROC, "utf8proc_" + form)
    function.restype = ctypes.c_void_p
    address = function(text.encode())
    result = ctypes.string_at(address).decode()
    LIBC.free(ctypes.c_void_p(address))
    return result


def decomposed_later():
    """The code points that utf8proc decomposes and the pinned normalizers don't."""
    found = set()
    for form in ("NFD", "NFKD"):
        theirs = getattr(normalizers, form)().normalize_str
        for c in CODE_POINTS[1:]:  # not the end of a C string
            if theirs(chr(c)) == utf8proc_normal(form, chr(c)):
                continue
            if theirs(chr(c)) != chr(c):
                sys.exit(f"U+{c:04X} decomposes to something else in utf8proc")
            found.add(c)
    return found


def alone_in(pre_tokenizer):
    """The code points that `pre_tokenizer` makes pieces of their own between letters."""
    found = set()
    for chunk in chunks():
        text = "a" + "a".join(map(chr, chunk)) + "a"
        found.update(ord(piece) for piece, _ in pre_tokenizer.pre_tokenize_str(text) if len(piece) == 1 and piece != "a")
    return found


def accents():
    strip = normalizers.StripAccents().normalize_str
    return {c for c in CODE_POINTS if strip(chr(c) + "x") == "x"}


def lowercase_runs():
    """Runs [first, last, step, delta] of code points that have a lower case other than themselves, `delta` away."""
    lower = normalizers.Lowercase().normalize_str
    runs = []
    for c in CODE_POINTS:
        text = lower(chr(c))
        if text == chr(c) or c == DOTTED_CAPITAL_I:
            continue
        if len(text) != 1:
            sys.exit(f"U+{c:04X} has the lower case {text!r}")
        delta = ord(text) - c
        run = runs[-1] if runs else None
        step = c - run[1] if run else 0
        if run and run[3] == delta and step in (1, 2) and run[2] in (0, step):
            run[1], run[2] = c, step
        else:
            runs.append([c, c, 0, delta])
    return [[first, last, max(step, 1), delta] for first, last, step, delta in runs]


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


def wrapped(entries):
    lines, line = [], "   "
    for entry in entries:
        if len(line) + 1 + len(entry) > 118:
            lines.append(line)
            line = "   "
        line += " " + entry
    return [*lines, line]


def source(header, definition, entries, count):
    return "\n".join([
        f"// Made by tools/make_unicode_classes.py from Hugging Face tokenizers {PINNED}; not to be edited.",
        f'#include "tokenizer/{header}"', "", "namespace paceline {", "", "// clang-format off",
        f"const {definition}[] = {{", *wrapped(entries), "};", "// clang-format on",
        f"const size_t {count} = {len(entries)};", "", "}  // namespace paceline", ""])


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
    for flag, code_points in ((DECOMPOSES_LATER, decomposed_later()), (ACCENT, accents()),
                              (DIGIT, alone_in(pre_tokenizers.Digits(individual_digits=True))),
                              (PUNCTUATION_MARK, alone_in(pre_tokenizers.Punctuation("isolated")))):
        for c in code_points:
            classes[c] |= flag
    entries = ["{0x%X, 0x%X, 0x%X}," % tuple(run) for run in ranges_of(classes)]
    return source("unicode_ranges.h", "UnicodeRange kUnicodeRanges", entries, "kNumUnicodeRanges")


def render_lowercase():
    entries = ["{0x%X, 0x%X, %d, %d}," % tuple(run) for run in lowercase_runs()]
    return source("unicode_lowercase.h", "LowercaseRun kLowercaseRuns", entries, "kNumLowercaseRuns")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed file instead of writing it")
    options = parser.parse_args()
    if tokenizers.__version__ != PINNED:
        sys.exit(f"tokenizers {tokenizers.__version__} found, {PINNED} expected")
    for path, text in ((OUTPUT, render()), (LOWERCASE_OUTPUT, render_lowercase())):
        if not options.check:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"{path}: differs")


if __name__ == "__main__":
    main()
