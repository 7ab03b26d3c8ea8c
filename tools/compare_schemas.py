#!/usr/bin/env python3
"""Compares JSON Schemas as grammars with the package jsonschema, over random schemas and instances.

    python tools/compare_schemas.py [--count N] [--seed S] [--command "build/release/paceline grammar --jsonl ..."]

A valid instance must be accepted with its properties in some order, an invalid one in none. The command reads lines
{"json_schema": ..., "texts": [...]} and answers {"accepted": [...]} or {"error": ...}. Schemas that it refuses are
counted by message. Needs jsonschema[format].
"""

import argparse
import collections
import itertools
import json
import random
import re
import shlex
import subprocess
import sys

NAMES = ("a", "b", "c", "x1")
VALUES = (None, True, False, 0, 1, -1, 2, 3, 1.5, 10, 12, "", "a", "ab", "b1", "é", '"', "2024-02-30", "2024-02-29",
          "127.0.0.1", [], [1], [1, "a"], [1, 2, 3], ["a", "a"], {}, {"a": 1}, {"b": "a"}, {"a": None, "b": 2})
PATTERNS = ("^a", "b$", "^[a-c]+$", "1", "^x", "^$", "a.*b")
FORMATS = ("date", "ipv4", "made-up")
MAX_ORDERS = 200
KINDS = ("null", "boolean", "integer", "number", "string", "array", "object")


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def schema(self, depth=3):
        if depth == 0 or self.random.random() < 0.1:
            return self.leaf()
        schema = {}
        for _ in range(self.random.choice((1, 1, 2, 2, 3))):
            self.random.choice((self.add_leaf, self.add_leaf, self.add_object, self.add_object, self.add_array,
                                self.add_applicator, self.add_applicator))(schema, depth)
        return schema

    def leaf(self):
        schema = {}
        if self.random.random() < 0.15:
            return self.random.random() < 0.7
        self.add_leaf(schema, 0)
        return schema

    def add_leaf(self, schema, _depth):
        r = self.random
        choice = r.randrange(11)
        if choice <= 2:
            schema["type"] = r.choice(KINDS) if r.random() < 0.7 else r.sample(KINDS, 2)
        elif choice == 3:
            schema["enum"] = r.sample(VALUES, r.randrange(1, 5))
        elif choice == 4:
            schema["const"] = r.choice(VALUES)
        elif choice == 5:
            schema[r.choice(("minimum", "exclusiveMinimum"))] = r.choice((-1, 0, 1, 1.5, 2))
        elif choice == 6:
            schema[r.choice(("maximum", "exclusiveMaximum"))] = r.choice((0, 1, 1.5, 2, 10))
        elif choice == 7:
            schema["multipleOf"] = r.choice((1, 2, 3, 0.5))
        elif choice == 8:
            schema[r.choice(("minLength", "maxLength"))] = r.randrange(3)
        elif choice == 9:
            schema["pattern"] = r.choice(PATTERNS)
        else:
            schema["format"] = r.choice(FORMATS)

    def add_object(self, schema, depth):
        r = self.random
        choice = r.randrange(9)
        if choice <= 2:
            schema["properties"] = {name: self.schema(depth - 1) for name in r.sample(NAMES, r.randrange(1, 4))}
        elif choice == 3:
            schema["required"] = r.sample(NAMES, r.randrange(1, 3))
        elif choice == 4:
            schema["additionalProperties"] = self.schema(depth - 1)
        elif choice == 5:
            schema["patternProperties"] = {p: self.schema(depth - 1) for p in r.sample(PATTERNS, r.randrange(1, 3))}
        elif choice == 6:
            schema[r.choice(("minProperties", "maxProperties"))] = r.randrange(4)
        elif choice == 7:
            schema["propertyNames"] = self.schema(1)
        elif r.random() < 0.5:
            schema["dependentRequired"] = {r.choice(NAMES): r.sample(NAMES, r.randrange(1, 3))}
        else:
            schema["dependentSchemas"] = {r.choice(NAMES): self.schema(depth - 1)}

    def add_array(self, schema, depth):
        r = self.random
        choice = r.randrange(5)
        if choice == 0:
            schema["items"] = self.schema(depth - 1)
        elif choice == 1:
            schema["prefixItems"] = [self.schema(depth - 1) for _ in range(r.randrange(1, 3))]
        elif choice == 2:
            schema[r.choice(("minItems", "maxItems"))] = r.randrange(4)
        elif choice == 3:
            schema["contains"] = self.schema(depth - 1)
            if r.random() < 0.3:
                schema["minContains"] = r.randrange(3)
        else:
            schema["uniqueItems"] = r.random() < 0.3

    def add_applicator(self, schema, depth):
        r = self.random
        choice = r.randrange(6)
        if choice <= 2:
            keyword = ("allOf", "anyOf", "oneOf")[choice]
            schema[keyword] = [self.schema(depth - 1) for _ in range(r.randrange(1, 4))]
        elif choice == 3:
            schema["not"] = self.schema(depth - 1)
        elif choice == 4:
            schema["if"] = self.schema(depth - 1)
            for keyword in ("then", "else"):
                if r.random() < 0.8:
                    schema[keyword] = self.schema(depth - 1)
        else:
            schema["$ref"] = r.choice(("#/$defs/one", "#/$defs/two"))

    def document(self):
        schema = self.schema()
        if isinstance(schema, dict):
            schema["$defs"] = {"one": self.schema(2), "two": self.schema(1)}
            schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        return schema

    def instance(self, depth=2):
        r = self.random
        if depth == 0 or r.random() < 0.4:
            return r.choice(VALUES)
        if r.random() < 0.35:
            return [self.instance(depth - 1) for _ in range(r.randrange(4))]
        return {name: self.instance(depth - 1) for name in r.sample((*NAMES, "zz"), r.randrange(4))}


def references(schema):
    """The definitions that a schema needs for the same value."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield schema["$ref"].rsplit("/", 1)[1]
    for keyword in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(keyword, ()):
            yield from references(part)
    for keyword in ("not", "if", "then", "else"):
        yield from references(schema.get(keyword))
    for part in schema.get("dependentSchemas", {}).values():
        yield from references(part)


def leads_back_to_itself(schema):
    definitions = {} if isinstance(schema, bool) else schema["$defs"]
    direct = {name: set(references(part)) for name, part in definitions.items()}
    return any(name in direct[name] or any(name in direct[other] for other in direct[name]) for name in direct)


def orders(value):
    """The value's texts, one for each order of its properties."""
    if isinstance(value, list):
        for items in itertools.product(*(list(orders(item)) for item in value)):
            yield "[" + ", ".join(items) + "]"
    elif isinstance(value, dict):
        for names in itertools.permutations(value):
            for texts in itertools.product(*(list(orders(value[name])) for name in names)):
                yield "{" + ", ".join(f"{json.dumps(n)}: {text}" for n, text in zip(names, texts)) + "}"
    else:
        yield json.dumps(value, ensure_ascii=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000, help="schemas")
    parser.add_argument("--instances", type=int, default=20, help="instances of each schema")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--command", default="build/release/paceline grammar --jsonl")
    arguments = parser.parse_args()
    import jsonschema  # here, since others use orders() without it
    generator = Generator(arguments.seed)
    cases = []
    while len(cases) < arguments.count:
        schema = generator.document()
        if leads_back_to_itself(schema):
            continue
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
        instances = [generator.instance() for _ in range(arguments.instances)]
        instances = [i for i in instances if len(list(itertools.islice(orders(i), MAX_ORDERS + 1))) <= MAX_ORDERS]
        valid = [validator.is_valid(instance) for instance in instances]
        texts = [list(orders(instance)) for instance in instances]
        cases.append((schema, instances, valid, texts))
    lines = "".join(json.dumps({"json_schema": json.dumps(schema), "texts": sum(texts, [])}) + "\n"
                    for schema, _, _, texts in cases)
    answers = subprocess.run(shlex.split(arguments.command), input=lines, capture_output=True, text=True).stdout.splitlines()
    assert len(answers) == len(cases), f"{len(answers)} answers to {len(cases)} lines"
    counts = collections.Counter()
    refused = collections.Counter()
    for (schema, instances, valid, texts), line in zip(cases, answers):
        answer = json.loads(line)
        if "error" in answer:
            message = str(answer["error"])
            if "no value obeys" in message or "no text" in message:
                if any(valid):
                    counts["wrongly empty"] += 1
                    print("wrongly empty:", json.dumps(schema))
                continue
            refused[re.sub(r'#[^ ]*|"[^"]*"\.\.\.', "", message)[:90]] += 1
            continue
        accepted = iter(answer["accepted"])
        for instance, is_valid, orders_of_it in zip(instances, valid, texts):
            is_accepted = any([next(accepted) for _ in orders_of_it])
            counts["valid" if is_valid else "invalid"] += 1
            if is_accepted != is_valid:
                kind = "wrongly accepted" if is_accepted else "wrongly rejected"
                counts[kind] += 1
                if counts[kind] <= 10:
                    print(kind, json.dumps(instance), json.dumps(schema))
    print(dict(counts))
    print(f"refused: {sum(refused.values())} of {len(cases)}")
    for message, count in refused.most_common(20):
        print(f"{count:6} {message}")
    return 1 if any(key.startswith("wrongly") for key in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
