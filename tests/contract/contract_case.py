"""A test case with a server of its own, whose answers are checked against what its /openapi.json describes."""
import sys
from pathlib import Path

import jsonschema

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

from serving import ServerCase, until  # noqa: E402

PROMPT = "It was a dark and stormy night"
MESSAGES = [{"role": "system", "content": "You tell stories."},
            {"role": "user", "content": "Tell me about the old house by the river."}]


class Document:
    """The description of a server's answers, closed: a member that it doesn't name is an error."""

    def __init__(self, api):
        self.paths = api["paths"]
        self.schemas = {name: closed(schema) for name, schema in api["components"]["schemas"].items()}
        self.responses = api["components"]["responses"]
        self.validator = jsonschema.Draft202012Validator({"components": {"schemas": self.schemas}})

    def check(self, name, answer):
        """Raises AssertionError unless `answer` is as the schema says."""
        problem = jsonschema.exceptions.best_match(self.problems(reference(name), answer))
        if problem is not None:
            raise AssertionError(f"{name}: {problem.json_path}: {problem.message[:500]}")
        return answer

    def problems(self, schema, value):
        return self.validator.evolve(schema={**schema, "components": {"schemas": self.schemas}}).iter_errors(value)

    def members_in(self, name, answer):
        """(schema, member) for each member in an answer."""
        self.seen = set()
        self.visit(name, self.schemas[name], answer)
        return self.seen

    def visit(self, name, schema, value):
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            return self.visit(name, self.schemas[name], value)
        for branch in schema.get("anyOf", []):
            if next(self.problems(branch, value), None) is None:
                self.visit(name, branch, value)
        if isinstance(value, dict):
            for key, member in value.items():
                inner = schema.get("properties", {}).get(key)
                if inner is not None:
                    self.seen.add((name, key))
                    self.visit(name, inner, member)
        for item in value if isinstance(value, list) else []:
            self.visit(name, schema.get("items", {}), item)

    def responses_of(self, method, path):
        """By status."""
        return self.paths[self.row_of(path.split("?")[0])][method.lower()]["responses"]

    def row_of(self, path):
        """The described path, where one part may stand for any."""
        parts = path.split("/")
        rows = [path, *("/".join([*parts[:i], "{name}", *parts[i + 1:]]) for i in (len(parts) - 1, len(parts) - 2))]
        return next(row for row in rows if row in self.paths)

    def schema_of(self, method, path, status=200, media="application/json"):
        described = self.responses_of(method, path)[str(status)]
        if "$ref" in described:
            described = self.responses[described["$ref"].rsplit("/", 1)[1]]
        schema = described["content"][media]["schema"]
        return schema.get("anyOf", [schema])[0]["$ref"].rsplit("/", 1)[1]  # of events, those that aren't errors

    def members(self):
        """All of (schema, member)."""
        found = set()

        def walk(name, schema):
            for key, inner in schema.get("properties", {}).items():
                found.add((name, key))
                walk(name, inner)
            for inner in [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]:
                walk(name, inner)
        for name, schema in self.schemas.items():
            walk(name, schema)
        return found


def reference(name):
    return {"$ref": f"#/components/schemas/{name}"}


def closed(schema):
    if not isinstance(schema, dict):
        return schema
    assert "allOf" not in schema, "a closed schema has all members in one place"
    made = {key: closed(value) if key in ("items", "additionalProperties") else value for key, value in schema.items()}
    if "anyOf" in schema:
        made["anyOf"] = [closed(branch) for branch in schema["anyOf"]]
    if "properties" in schema:
        made["properties"] = {name: closed(value) for name, value in schema["properties"].items()}
        made.setdefault("additionalProperties", False)
    return made


class ContractCase(ServerCase):
    maxDiff = 4000
    documents = {}

    def tearDown(self):
        self.assertTrue(until(self.is_idle), "sequences are left")

    def is_idle(self):
        return self.client.get("/v1/requests").json["data"] == []

    @property
    def document(self):
        if self.server not in self.documents:
            self.documents[self.server] = Document(self.client.get("/openapi.json").json)
        return self.documents[self.server]

    def check(self, name, answer):
        return self.document.check(name, answer)

    def ask(self, path, body, status=200):
        answer = self.client.post(path, body)
        self.assertEqual(answer.status, status, answer.body)
        return self.check(self.document.schema_of("POST", path, status), answer.json)

    def stream(self, path, body, has_end=True):
        """The events, each checked; the stream must be complete."""
        events, done = self.client.stream(path, body)
        self.assertEqual(done, has_end)
        schema = self.document.schema_of("POST", path, media="text/event-stream")
        for event in events:
            self.check(schema, event)
        return events
