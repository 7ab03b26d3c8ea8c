#!/usr/bin/env python3
"""Compares our chat templates with Jinja over random templates: the text must be equal, or both must fail.

    python tools/compare_templates.py [--count N] [--seed S] [--binary build/release/paceline]
    python tools/compare_templates.py --write-goldens tests/goldens/chat/random_templates.jsonl --count 800 --seed 5

Jinja is configured like in transformers (the packages of tools/goldens/requirements.txt). Not compared, because
templates don't need them or Python's result is accidental: integers beyond 64 bits; % and str.format of texts;
printed Python objects (generators, methods, views of dicts); our budgets; unknown filters and tests, and words such as
`if` after a test, which Jinja refuses when it parses the template and we when we run them. template_generator.py lists
what is never generated.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import jinja2
from transformers.utils.chat_template_utils import _compile_jinja_template

sys.path.insert(0, str(Path(__file__).resolve().parent))
from template_generator import VARIABLES, Generator  # noqa: E402

PINNED = "3.1.6"
ROOT = Path(__file__).resolve().parent.parent
BATCH = 2000
PYTHON_OBJECTS = ("generator object", "built-in method", "bound method", "<function", "<Macro", "dict_", "object at 0x", "reversed",
                  "<filter", "Undefined", "range(", "LoopContext", "<class", "<method")
READ_EARLIER = ("expected token", "No filter named", "No test named", "dict_")
REFUSED = ("64 bits", "isn't supported", 'found "not"', 'found "in"', 'found "is"')


def render_in_python(template):
    """("ok", text) or ("error", message); a fresh copy of the variables, since some filters change lists."""
    variables = json.loads(json.dumps(VARIABLES))
    try:
        return "ok", _compile_jinja_template(template).render(**variables, messages=[], tools=None, documents=None,
                                                              add_generation_prompt=False)
    except Exception as error:  # whatever Python raises, the template fails
        return "error", str(error)


def render_in_ours(templates, binary):
    lines = (json.dumps({"template": t, "messages": [], "kwargs": VARIABLES}) for t in templates)
    done = subprocess.run([binary, "render", "--jsonl", "-q"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(templates):
        sys.exit(f"the program ended with {done.returncode} at {templates[len(answers)]!r}\n{done.stderr}")
    return answers


def prints_an_object(text):
    return any(part.lower() in text.lower() for part in PYTHON_OBJECTS)  # a filter may have changed the case


def is_excluded(outcome, expected, answer):
    if outcome == "ok" and prints_an_object(expected):
        return True
    if outcome == "error" and any(text in expected for text in READ_EARLIER):
        return True
    error = answer.get("error")
    return error is not None and (error["code"] == "exhausted" or any(text in error["message"] for text in REFUSED))


def compare(arguments):
    generator = Generator(arguments.seed)
    counts = {"compared": 0, "failing in both": 0, "left out": 0, "different": 0}
    while counts["compared"] < arguments.count:
        templates = [generator.template() for _ in range(min(BATCH, arguments.count - counts["compared"]))]
        for template, answer in zip(templates, render_in_ours(templates, arguments.binary)):
            outcome, expected = render_in_python(template)
            counts["compared"] += 1
            if outcome == "error" and "error" in answer:
                counts["failing in both"] += 1
            elif answer.get("rendered") == expected and outcome == "ok":
                continue
            elif is_excluded(outcome, expected, answer):
                counts["left out"] += 1
            else:
                counts["different"] += 1
                print(f"{template!r}\n  Jinja: {outcome} {expected!r:.400}\n  ours:  {answer!s:.400}")
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts["different"] else 0


def write_goldens(arguments):
    generator = Generator(arguments.seed)
    with open(arguments.write_goldens, "w", encoding="utf-8") as file:
        file.write(json.dumps({"variables": VARIABLES}) + "\n")
        written = 0
        while written < arguments.count:
            template = generator.template()
            outcome, expected = render_in_python(template)
            is_beyond_64_bits = re.search(r"\d{19}", expected)
            unfit = is_beyond_64_bits or prints_an_object(expected) or any(text in expected for text in READ_EARLIER)
            if unfit or len(template) > 400 or len(expected) > 400 or (outcome == "error" and written % 5 != 0):
                continue
            row = {"template": template, "rendered": expected} if outcome == "ok" else {"template": template, "fails": True}
            file.write(json.dumps(row) + "\n")
            written += 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binary", default=str(ROOT / "build/release/paceline"))
    parser.add_argument("--write-goldens", metavar="FILE")
    arguments = parser.parse_args()
    if jinja2.__version__ != PINNED:
        sys.exit(f"jinja2 {jinja2.__version__} is installed, expected {PINNED}")
    return write_goldens(arguments) if arguments.write_goldens else compare(arguments)


if __name__ == "__main__":
    sys.exit(main())
