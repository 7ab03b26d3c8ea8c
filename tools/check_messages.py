#!/usr/bin/env python3
"""Checks that no source finds out what happened by reading an error's message: an error has a code, a reason and a field.

A message is what() of an exception, `message` of an error (of any variable that is called error, failure, fault, ...),
a text that is called message, and every variable that is one of these. Found are comparisons (==, starts_with, strcmp)
and searches (find, contains, regex_search), also those of a part of it.

Usage: check_messages.py [src]
"""
import os
import re
import sys
from functools import lru_cache
from pathlib import Path

SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
ERROR = r"\w*(?:[eE]rror|failure|fault|refusal|problem|ending|raised)\w*(?:\(\))?"
# Whose text is a message, wherever it stands.
MESSAGE = rf"(?:[\w.>()-]*\bwhat\(\)|\b(?:{ERROR}(?:\.|->))+message\b)"
# `message` is a text in these: a parameter or a variable.
TEXT = re.compile(r"\bstd::string(?:_view)?&?\s+(?:const\s+)?(message)\s*(?:[,){;=]|$)")
TAKEN = re.compile(rf"\b(?:std::string(?:_view)?|auto|char)\s*[&*]?\s*(?:const\s+)?(\w+)\s*"
                   rf"(?:=|\{{|\()\s*(?:std::string(?:_view)?[({{])?\s*{MESSAGE}")
SEARCHES = r"(?:r?find|find_(?:first|last)_(?:not_)?of|starts_with|ends_with|contains|substr|compare)"
FUNCTIONS = r"(?:str(?:n?case)?n?cmp|strstr|strcasestr|regex_(?:search|match)|contains|starts_with|ends_with)"


@lru_cache
def searches_of(text):
    """A pattern of comparisons and searches of `text`, itself a pattern."""
    wrapped = rf"(?:std::string(?:_view)?[({{]\s*)?{text}\s*[)}}]?"
    return re.compile(rf"{wrapped}\s*\.\s*{SEARCHES}\s*\(|{wrapped}\s*[!=]=|[!=]=\s*{wrapped}\s*(?:[);,&|?:]|$)"
                      rf"|\b{FUNCTIONS}\([^;]*{text}\s*[),]")


DIRECT = searches_of(MESSAGE)


def without_comments(text):
    """The code alone, line for line; texts in quotes are empty, so that words in them are no code."""
    def blank(match):
        token = match[0]
        if token.startswith("/"):
            return "\n" * token.count("\n")
        return '""' + "\n" * token.count("\n") if token.startswith(('"', "R")) else token
    return re.sub(r"//[^\n]*|/\*.*?\*/|R\"\(.*?\)\"|\"(?:\\.|[^\"\\\n])*\"", blank, text, flags=re.S)


def statements(text):
    """Yields (number of its first line, statement), each on one line; a block's `{` or `}` ends one too."""
    begin = 0
    for match in re.finditer(r";|\{[ ]*$|^[ ]*\}", text, re.M):
        piece = text[begin:match.end()].rstrip()
        line = 1 + text.count("\n", 0, begin + len(piece) - len(piece.lstrip()))
        yield line, " ".join(piece.split())
        begin = match.end()


def check_text(code):
    """Yields (line number, statement) for each that reads a message."""
    taken = {}  # name: its searches; until the function ends
    depth = 0
    for line, statement in statements(without_comments(code)):
        depth += statement.endswith("{") - statement.endswith("}")
        if DIRECT.search(statement) or any(one.search(statement) for one in taken.values()):
            yield line, statement
        for match in list(TEXT.finditer(statement)) + list(TAKEN.finditer(statement)):
            # A declaration's parameter isn't read.
            if not (match.re is TEXT and statement.endswith(");")):
                taken[match[1]] = searches_of(rf"(?<![\w.>])\b{match[1]}\b(?!\()")
        if statement.endswith("}") and depth <= 1:
            taken = {}


def check(src):
    """Returns every violation under src/, as `file:line: message`."""
    errors = []
    for file in sorted(p for p in src.rglob("*") if p.is_file() and p.suffix in SUFFIXES):
        code = file.read_text(encoding="utf-8")
        for line, statement in check_text(code) if re.search(r"what\(\)|message", code) else ():
            errors.append(f"{file}:{line}: `{statement[:100]}` reads an error's message; give the error a code, a reason "
                          "or a field (base/request_error.h) and ask for that")
    return errors


def main(arguments):
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    src = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent / "src"
    errors = check(Path(os.path.relpath(src)))
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
