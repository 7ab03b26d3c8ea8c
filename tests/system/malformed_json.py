"""Bodies of requests that are malformed in a known way, made from the server's own /openapi.json and a seed."""
import json
import random

SEED = 20261121
DEEP = 5000

# The smallest valid body of each route.
SMALLEST = {"/v1/completions": {"prompt": "x", "max_tokens": 1}, "/generate": {"prompt": "x", "max_tokens": 1},
            "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1},
            "/v1/decisions": {"input": "x", "questions": [{"type": "predicate", "instructions": "x"}]},
            "/v1/systemone": {"state": "x", "questions": {"q": {"type": "noul", "instructions": "x"}}},
            "/v1/classify": {"input": "x"}, "/v1/score_tokens": {"input": "x"}, "/v1/embeddings": {"input": "x"}, "/tokenize": {"prompt": "x"},
            "/detokenize": {"tokens": [5]}, "/apply-template": {"messages": [{"role": "user", "content": "x"}]}}

VALUES = {
    "wrong type": [True, False, 0, 1, 2.5, "", "x", "1", [], {}, [1], [None], [[1]], [["x"]], [{}], {"a": 1}, [True], [1, "x"],
                   ["x", 1], {"type": "text"}, {"1": "x"}, [[1, 2, 3]], [[1, 0.5], 3]],
    "huge": [2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, 1e300, "x" * 300, "x" * 100000, ["x"] * 3000,
             [1] * 5000, [[1]] * 3000, {str(i): 1 for i in range(2000)}, [{}] * 2000, [""] * 20],
    "negative": [-1, -2, -0.0, -0.5, -101, -2**31, -2**63, -2**63 - 1, -10**30, -1e300, [-1], [[-1]], {"-1": 1}],
    "NaN-like": ["NaN", "nan", "Infinity", "-inf", "null", "undefined"],
}
# Invalid JSON in the place of a value.
RAW = {
    "NaN-like": [b"NaN", b"nan", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"0x10", b"1.", b".5", b"+1", b"01", b"1e",
                 b"--1", b"1_000", b"NULL", b"True", b"undefined"],
    "deep": [b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP, b"[" * DEEP, b"[" * 100 + b"]" * 100,
             b'[{"a":' * 60 + b"1" + b"}]" * 60],
    "lone surrogate": [b'"\\ud800"', b'"\\udc00x"', b'"x\\ud83d"', b'"\\ud800\\ud800"', b'["\\udfff"]', b'{"\\ud800": 1}'],
    "invalid UTF-8": [b'"\xff\xfe"', b'"\xc3"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'["\x80"]',
                      b'"x\xe2\x82"', b'{"\xff": 1}'],
    "broken": [b'"x', b'"x\\q"', b'"\\u12"', b'"a\nb"', b'"a\x00b"', b"'x'", b"[1,]", b'{"a":1,}', b"[1 2]", b"", b"]", b"{]",
               b'{"a" 1}', b"/* */ 1", b"1 // x", b'"\t"'],
}


class Case:
    def __init__(self, path, kind, field, body, is_good, param):
        self.path, self.kind, self.field, self.body = path, kind, field, body
        self.is_good = is_good  # as the document says
        self.param = param  # what an error must name: a field; None: nothing

    def __repr__(self):
        return f"{self.kind} in {self.field} of {self.path}: {self.body[:200]!r}"


def fits(schema, value):
    """Whether a value matches the document; supports the part of JSON Schema that it uses."""
    if "anyOf" in schema:
        return any(fits(part, value) for part in schema["anyOf"])
    types = schema.get("type")
    types = [types] if isinstance(types, str) else types
    if types and not any(is_a(kind, value) for kind in types):
        return False
    if value is None:
        return True
    if "enum" in schema and not any(value is one or (value == one and type(value) is type(one)) for one in schema["enum"]):
        return False
    if is_a("number", value):
        return in_range(schema, value)
    if isinstance(value, str):
        return schema.get("minLength", 0) <= len(value.encode()) <= schema.get("x-max-bytes", 1 << 40)
    if isinstance(value, list):
        parts = schema.get("prefixItems") or [schema.get("items", {})] * len(value)
        return schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 1 << 40) and all(
            fits(part, item) for part, item in zip(parts, value))
    if isinstance(value, dict):
        return object_fits(schema, value)
    return True


def is_a(kind, value):
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {"null": value is None, "boolean": isinstance(value, bool), "string": isinstance(value, str),
            "number": is_number, "integer": is_number and (isinstance(value, int) or value.is_integer()),
            "array": isinstance(value, list), "object": isinstance(value, dict)}[kind]


def in_range(schema, value):
    above = value > schema["exclusiveMinimum"] if "exclusiveMinimum" in schema else True
    return above and schema.get("minimum", value) <= value <= schema.get("maximum", value)


def object_fits(schema, value):
    if len(value) > schema.get("maxProperties", 1 << 40):
        return False
    if "propertyNames" in schema and not all(key.isdigit() and len(key) < 10 for key in value):
        return False
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    if any(name not in value or value[name] is None for name in schema.get("required", [])):
        return False
    return all(fits(properties[key], item) if key in properties else
               fits(others, item) if isinstance(others, dict) else others for key, item in value.items())


def with_value(path, field, raw):
    """The route's smallest body with this value, as bytes, in it."""
    others = {name: value for name, value in SMALLEST[path].items() if name != field}
    if field in ("max_completion_tokens", "content"):  # other names of what the smallest body has
        others.pop("max_tokens", None)
    members = [json.dumps(name).encode() + b": " + json.dumps(value).encode() for name, value in others.items()]
    return b"{" + b", ".join(members + [json.dumps(field).encode() + b": " + raw]) + b"}"


def field_case(choices, path, name, schema, required):
    kind = choices.choice(["null", "wrong type", "wrong type", "huge", "negative", "NaN-like", "deep", "duplicate",
                           "lone surrogate", "invalid UTF-8", "broken"])
    if kind == "null":
        return Case(path, kind, name, with_value(path, name, b"null"), name not in required, name)
    if kind == "duplicate":
        value = json.dumps(choices.choice(VALUES["wrong type"])).encode()
        return Case(path, kind, name, with_value(path, name, value + b", " + json.dumps(name).encode() + b": " + value),
                    False, None)
    if kind in RAW and (kind not in VALUES or choices.random() < 0.7):
        return Case(path, kind, name, with_value(path, name, choices.choice(RAW[kind])), False, None)
    value = choices.choice(VALUES[kind])
    return Case(path, kind, name, with_value(path, name, json.dumps(value).encode()), fits(schema, value), name)


def body_case(choices, path):
    """A valid body, damaged as a whole."""
    good = json.dumps(SMALLEST[path]).encode()
    kind = choices.choice(["cut", "flipped", "behind", "before", "another document", "unknown field"])
    if kind == "cut":
        return Case(path, kind, "", good[:choices.randrange(len(good) - 1)], False, None)
    if kind == "flipped":  # may be good again
        damaged = bytearray(good)
        damaged[choices.randrange(len(good))] ^= 1 << choices.randrange(8)
        return Case(path, kind, "", bytes(damaged), None, "")
    if kind == "behind":
        return Case(path, kind, "", good + choices.choice([b"x", b"{}", b"\x00", b",", b"]"]), False, None)
    if kind == "before":
        return Case(path, kind, "", choices.choice([b"\x00", b"x", b"[", b"//\n", b"\xff"]) + good, False, None)
    if kind == "another document":
        return Case(path, kind, "", choices.choice([b"[]", b"null", b"1", b'"x"', b"true", b"[" + good + b"]"]), False, None)
    name = choices.choice(["nope", "Prompt", "", "__proto__", "a" * 5000, "promt", "\u2028"])
    return Case(path, kind, name, with_value(path, name, b"1"), False, name)


def cases(api, count):
    choices = random.Random(SEED)
    fields = []
    for path in SMALLEST:
        schema = api["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        fields += [(path, name, field, schema.get("required", [])) for name, field in schema["properties"].items()]
    for index in range(count):
        if index % 8 == 7:
            yield body_case(choices, choices.choice(list(SMALLEST)))
        else:  # each field in turn
            yield field_case(choices, *fields[(index - index // 8) % len(fields)])
