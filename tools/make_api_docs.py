#!/usr/bin/env python3
"""Writes docs/api.md from the /openapi.json of a server that it starts.

Usage: make_api_docs.py [--check] BINARY      (--check: only compare, exit code 1 when the file is out of date)
"""
import argparse
import json
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "api.md"
MODEL = ROOT / "models" / "paceline-10m"
LISTENING = "listening on "

INTRODUCTION = """\
# The HTTP API

Made by `tools/make_api_docs.py` from the server's own `/openapi.json`, which is made from the tables that read
requests: what stands here is what is checked.

`paceline serve` answers at `http://127.0.0.1:8080`; OpenAI's clients take `http://127.0.0.1:8080/v1` as their base URL.
With `--api-key` every route but those marked *open* wants `Authorization: Bearer KEY`. Bodies are JSON.

- **Fields** are *implemented*, *partly* so (the values named; others are refused), *ignored* (accepted because they
  can't change the answer; their values are checked), or *refused* with 400 `unsupported_parameter` and their name in
  `param`. What clients of other servers send is among them. Unknown ones are refused with a suggestion; `--ignore-unknown-fields` counts them instead
  (`paceline:unknown_fields_total`). A null counts as absent.
- **"The model's"** is what its `generation_config.json`, or the metadata of its GGUF file, says.
- **Streams** (`"stream": true`) are server-sent events: `data: {...}` each, `data: [DONE]` at the end, `: ping` while
  no token is ready. The head comes with the first event, with the first ping once the prompt is being computed, or after
  `--queue-timeout` (at most 45 s): a request that waits too long for its turn has a status. An event has one token, or as many as the request's `stream_interval` says.
  It has more where a character takes several tokens, where text is held back because it may become a stop string, while the
  client has more than 256 KiB to read, and while the server itself is 100 ms late.
  A stream that breaks off ends with an error object and without `[DONE]`. Streams of
  `/completion`, `/completions` and `/infill` end with their last result, as llama.cpp's do, and have no `[DONE]`.
- **The same request with the same seed** has the same answer, bit for bit, alone or among others, streamed or whole,
  with a cold or a warm cache. `system_fingerprint` changes with whatever may change the bits.
- **Log-probabilities** are those of the model before sampling options change them; -9999 stands for "very unlikely".
- Every answer has `x-request-id`, the client's own if it sent one.
"""


def read_api(binary):
    child = subprocess.Popen([binary, "serve", "-m", MODEL, "--port", "0", "--threads", "1"],
                             stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        lines = []
        for line in child.stderr:
            lines.append(line)
            if LISTENING in line:
                url = line.split(LISTENING)[1].strip()
                with urllib.request.urlopen(url + "/openapi.json", timeout=60) as answer:
                    return json.load(answer)
        raise SystemExit("".join(lines))
    finally:
        child.terminate()
        child.communicate()


def shown(value):
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def number_words(schema):
    low, high = schema.get("minimum"), schema.get("maximum")
    if low == high and low is not None:
        return f"{low:g} only"
    if low is not None and low <= -1e30:
        return "any"
    if "exclusiveMinimum" in schema:
        return f"above {schema['exclusiveMinimum']:g}, at most {high:g}"
    if high is not None and high >= 2**63 and low > -1e30:
        return "64 bits"
    return f"{low:g} to {high:g}" if high < 2**31 - 1 else f"{low:g} or more" if high < 1e30 else f"above {low:g}"


def count_words(schema, noun, least, most):
    if most not in schema:
        return ""
    if schema.get(least) == schema[most]:
        return f" of {schema[most]} {noun}"
    return f", at most {schema[most]} {noun}"


def type_words(schema):
    """The type of a field in a few words."""
    if "anyOf" in schema:
        return " or ".join(type_words(part) for part in schema["anyOf"] if part != {"type": "null"})
    names = schema.get("type", [])
    [name] = [one for one in ([names] if isinstance(names, str) else names) if one != "null"] or ["any"]
    if "enum" in schema:
        return " or ".join(shown(value) for value in schema["enum"] if value is not None)
    if name in ("integer", "number"):
        return f"{name}, {number_words(schema)}"
    if name == "string":
        return name + count_words(schema, "bytes", "minLength", "maxLength")
    if name == "array":
        items = schema.get("items")
        of = f" of {plural(items)}" if items else ""
        return name + of + count_words(schema, "items", "minItems", "maxItems")
    if name == "object":
        return name + count_words(schema, "members", "minProperties", "maxProperties")
    return name


def plural(schema):
    if "anyOf" in schema:
        return " or ".join(plural(part) for part in schema["anyOf"])
    name = schema.get("type", "any")
    return {"string": "strings", "integer": "integers", "number": "numbers", "object": "objects",
            "array": "arrays"}[name] + (f" of {plural(schema['items'])}" if "items" in schema else "")


def members_of(schema):
    """The fields of a nested object, and the path to them: "[]" for an array's items."""
    if "properties" in schema:
        return "", schema
    if "properties" in schema.get("items", {}):
        return "[]", schema["items"]
    for part in schema.get("anyOf", []):
        path, found = members_of(part)
        if found:
            return path, found
    return "", None


def field_rows(schema, path=""):
    required = schema.get("required", [])
    for name, field in schema["properties"].items():
        use = field["x-use"]
        text = field.get("description", "")
        if use == "refused":
            yield f"| `{path}{name}` | refused | | | {text} |"
            continue
        if "x-alias-of" in field:
            text = f"Another name of `{field['x-alias-of']}`. {text}"
        unset = "required" if name in required else field.get("x-when-unset", "")
        default = shown(field["default"]) if "default" in field else unset
        types = type_words(field).replace("|", "\\|")
        yield f"| `{path}{name}` | {use} | {types} | {default} | {text.replace('|', chr(92) + '|')} |"
        inner_path, inner = members_of(field)
        if inner:
            yield from field_rows(inner, f"{path}{name}{inner_path}.")


def route_lines(path, method, operation):
    mark = " (open)" if operation.get("security") == [] else ""
    yield f"### {method.upper()} {path}{mark}"
    yield ""
    answers = []
    for media, answer in operation["responses"]["200"].get("content", {}).items():
        answers.append(f"{answer_type(answer['schema'])} as `{media}`" if "schema" in answer else f"`{media}`")
    yield f"{operation['summary']} Answers {' or '.join(answers)}."
    yield ""
    body = operation.get("requestBody")
    if body and not operation["summary"].startswith("The same as"):
        schema = body["content"]["application/json"]["schema"]
        yield "| field | kind | type | default | meaning |"
        yield "| --- | --- | --- | --- | --- |"
        yield from field_rows(schema)
        yield ""


def answer_lines(name, schema):
    yield f"### {name}"
    yield ""
    if "properties" not in schema:
        yield f"{answer_type(schema)}. {schema.get('description', '')}".strip()
        yield ""
        return
    if "description" in schema:
        yield schema["description"]
        yield ""
    yield "| member | type | meaning |"
    yield "| --- | --- | --- |"
    for member, part in schema["properties"].items():
        sure = "" if member in schema.get("required", []) else ", not always there"
        yield f"| `{member}` | {answer_type(part)}{sure} | {part.get('description', '')} |"
    yield ""


def answer_type(schema):
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return shown(schema["const"])
    if "enum" in schema:
        return " or ".join(shown(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(answer_type(part) for part in schema["anyOf"])
    names = schema.get("type", "any")
    words = names if isinstance(names, str) else " or ".join(names)
    if "items" in schema:
        words = words.replace("array", f"array of {answer_type(schema['items'])}")
    if "properties" in schema:
        words += " of " + ", ".join(f"`{name}`" for name in schema["properties"])
    return words


def page(api):
    lines = [INTRODUCTION, "## Routes", ""]
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            lines += route_lines(path, method, operation)
    lines += ["## Answers", ""]
    for name, schema in api["components"]["schemas"].items():
        lines += answer_lines(name, schema)
    lines += ["## Errors and limits", "",
              'An error is `{"error": {"message", "type", "param", "code"}}`; `param` is the path of the field at fault.',
              "", "| status | when |", "| --- | --- |"]
    for status, response in api["components"]["responses"].items():
        lines.append(f"| {status} | {response['description']} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("binary", type=Path)
    arguments = parser.parse_args()
    text = page(read_api(arguments.binary.resolve()))
    if not arguments.check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit(f"{PAGE.relative_to(ROOT)} is not what tools/make_api_docs.py makes: run it with the new binary")


if __name__ == "__main__":
    main()
