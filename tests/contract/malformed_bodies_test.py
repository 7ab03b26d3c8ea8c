"""Malformed requests of every API: each gets a 4xx that says what is wrong, in the shape of its API's errors.

Bodies that are no JSON, lack what is required, or have a value of another type at any field that /openapi.json describes.
"""
import json
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

from serving import Client, Server, until  # noqa: E402

KEY = "sk-one"
NUM_BODIES = 100  # of each API, at least
TALK = [{"role": "user", "content": "Who is there?"}]
TOOL = {"name": "find", "parameters": {"type": "object"}}
# A body that would be accepted, for each route.
APIS = {
    "openai": {"/v1/chat/completions": {"messages": TALK, "max_tokens": 1}, "/v1/completions": {"prompt": "a", "max_tokens": 1},
               "/v1/embeddings": {"input": "a"}},
    "responses": {"/v1/responses": {"input": "a", "max_output_tokens": 1}, "/v1/responses/input_tokens": {"input": "a"},
                  "/v1/responses/compact": {"model": "paceline-10m", "input": "a"}},
    "decisions": {"/v1/decisions": {"input": "a", "questions": [{"type": "predicate", "instructions": "b"}]}},
    "systemone": {"/v1/systemone": {"state": "a", "questions": {"b": {"type": "noul", "instructions": "c"}}}},
    "messages": {"/v1/messages": {"messages": TALK, "max_tokens": 1}, "/v1/messages/count_tokens": {"messages": TALK}},
    "ollama": {"/api/chat": {"messages": TALK, "stream": False, "options": {"num_predict": 1}},
               "/api/generate": {"prompt": "a", "stream": False, "options": {"num_predict": 1}}, "/api/embed": {"input": "a"},
               "/api/embeddings": {"prompt": "a"}, "/api/show": {"model": "paceline-10m"}},
    "llama.cpp": {"/completion": {"prompt": "a", "n_predict": 1}, "/tokenize": {"content": "a"}},
}
NO_OBJECTS = ["", "{", "[]", "7", "true", '"a"', "null", b"\xff", b"\xef\xbb\xbf{", "{'a': 1}", '{"model": }', '{"model": "a",}',
              '{"model": "a"} b', '{"model": "a" "b"}', '{"model": "\\x"}', '{"model": "\\ud800"}', '{"model": "a\x01"}', "[" * 5000,
              '{"a":' * 5000, '{"model": 1e999}', '{"model": 01}', '{"model": nul}', '{"model": NaN}', '{"model": "a', "\x00"]
WRONG_VALUES = [True, 7, -7.5, "wrong\u0000", [[]], {"wrong": 1}, 10 ** 40]
KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
MAX_DEPTH = 6


class Schemas:
    def __init__(self, api):
        self.api = api

    def whole(self, schema):
        """Less references."""
        while "$ref" in schema:
            schema = self.api["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def branches(self, schema):
        schema = self.whole(schema)
        found = [branch for name in ("anyOf", "oneOf") for inner in schema.get(name, []) for branch in self.branches(inner)]
        return found or [schema]

    def refuses(self, schema, value):
        """Whether no branch has the value's type or the value itself."""
        for branch in self.branches(schema):
            if "const" in branch or "enum" in branch:
                if value in branch.get("enum", [branch.get("const")]):
                    return False
                continue
            kinds = branch.get("type", list(KINDS.values()))
            kinds = [kinds] if isinstance(kinds, str) else kinds
            kind = KINDS[type(value)]
            if kind in kinds or (kind == "integer" and "number" in kinds):
                return False
        return True

    def wrong_bodies(self, schema, good, depth=0):
        """Values like `good`, each with one member of a wrong type."""
        for value in WRONG_VALUES:
            if depth > 0 and self.refuses(schema, value):
                yield value
        if depth == MAX_DEPTH:
            return
        for branch in self.branches(schema):
            for name, inner in branch.get("properties", {}).items():
                known = good.get(name) if isinstance(good, dict) else None
                for value in self.wrong_bodies(inner, known, depth + 1):
                    yield {**(good if isinstance(good, dict) else {}), name: value}
            if isinstance(branch.get("additionalProperties"), dict):
                name, known = next(iter(good.items())) if isinstance(good, dict) and good else ("a", None)
                for value in self.wrong_bodies(branch["additionalProperties"], known, depth + 1):
                    yield {name: value}
        items = [branch["items"] for branch in self.branches(schema) if branch.get("type") == "array" and "items" in branch]
        if items:
            first = good[0] if isinstance(good, list) and good else None
            for value in self.wrong_bodies({"anyOf": items}, first, depth + 1):
                yield [value]


class MalformedBodiesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--api-key", KEY, "--max-num-seqs", "8", "--max-body-size", "64K")
        cls.addClassCleanup(cls.server.stop)
        cls.client = Client(cls.server.port, KEY)
        cls.api = cls.client.get("/openapi.json").json
        cls.schemas = Schemas(cls.api)

    def check_error(self, api, answer, statuses=range(400, 500)):
        self.assertIn(answer.status, statuses, answer.body[:300])
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        error = answer.json
        if api == "messages":
            self.assertEqual(set(error) - {"request_id"}, {"type", "error"})  # what the wire itself refuses has no id
            self.assertEqual((error["type"], set(error["error"])), ("error", {"type", "message"}))
            message = error["error"]["message"]
        elif api == "ollama":
            self.assertEqual(set(error), {"error"})
            message = error["error"]
            self.assertIsInstance(message, str)
        else:
            self.assertEqual(set(error["error"]), {"message", "type", "param", "code"})
            self.assertIsInstance(error["error"]["code"], str)
            message = error["error"]["message"]
        self.assertGreater(len(message), 5)
        return message

    def served(self):
        for api, routes in APIS.items():
            here = {path: good for path, good in routes.items() if path in self.api["paths"]}
            if here:
                yield api, here

    def ask(self, path, body, **options):
        return self.client.post(path, body, **options)

    def body_schema(self, path):
        return self.api["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]

    def test_bodies_of_wrong_types(self):
        for api, routes in self.served():
            num_bodies = 0
            for path, good in routes.items():
                self.assertEqual(self.ask(path, good).status, 200, self.ask(path, good).body)
                wrong = [*NO_OBJECTS, *self.schemas.wrong_bodies(self.body_schema(path), good), {**good, "no_such_field": 1}]
                for name in good:
                    wrong.append({**good, name.upper(): good[name]})
                num_bodies += len(wrong)
                for body in wrong:
                    with self.subTest(path=path, body=body if isinstance(body, bytes) else json.dumps(body)[:300]):
                        self.check_error(api, self.ask(path, body))
            self.assertGreaterEqual(num_bodies, NUM_BODIES, api)
        self.assertTrue(until(lambda: self.client.get("/v1/requests").json["data"] == []), "sequences are left")

    def test_a_message_names_the_field(self):
        for api, routes in self.served():
            for path, good in routes.items():
                for name, schema in self.schemas.whole(self.body_schema(path))["properties"].items():
                    if name in good and self.schemas.refuses(schema, [[[]]]):
                        message = self.check_error(api, self.ask(path, {**good, name: [[[]]]}))
                        self.assertIn(name, message)

    def test_requests_that_are_refused_before_their_body_is_read(self):
        for api, routes in self.served():
            for path, good in routes.items():
                with self.subTest(path=path):
                    self.check_error(api, self.ask(path, good, headers={"Content-Type": "text/plain"}), [415])
                    self.check_error(api, self.ask(path, good, headers={"Authorization": "Bearer no"}), [401])
                    self.check_error(api, self.ask(path, good, headers={"Content-Encoding": "br"}), [415])
                    self.check_error(api, self.ask(path, b"{" + b" " * (65 << 10)), [413])


if __name__ == "__main__":
    unittest.main()
