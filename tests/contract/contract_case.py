"""A test case with a server of its own, whose answers are checked against the schemas of schemas/."""
import json
import sys
from pathlib import Path

import jsonschema
import referencing

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

from serving import ServerCase, until  # noqa: E402

PROMPT = "It was a dark and stormy night"
MESSAGES = [{"role": "system", "content": "You tell stories."},
            {"role": "user", "content": "Tell me about the old house by the river."}]


def load_schemas():
    schemas = {path.name: json.loads(path.read_text()) for path in (HERE / "schemas").glob("*.json")}
    registry = referencing.Registry().with_resources(
        (name, referencing.Resource.from_contents(schema)) for name, schema in schemas.items())
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    return {name.removesuffix(".json"): jsonschema.Draft202012Validator(schema, registry=registry)
            for name, schema in schemas.items()}


SCHEMAS = load_schemas()


class ContractCase(ServerCase):
    maxDiff = 4000

    def tearDown(self):
        self.assertTrue(until(self.is_idle), "sequences are left")

    def is_idle(self):
        return self.client.get("/v1/requests").json["data"] == []

    def check(self, name, answer):
        problems = sorted(SCHEMAS[name].iter_errors(answer), key=str)
        if problems:
            self.fail(f"{name}: {problems[0].json_path}: {problems[0].message[:500]}")
        return answer

    def ask(self, path, schema, body, status=200):
        answer = self.client.post(path, body)
        self.assertEqual(answer.status, status, answer.body)
        return self.check(schema, answer.json)

    def stream(self, path, schema, body):
        """The events, each checked against the schema; the stream must be complete."""
        events, done = self.client.stream(path, body)
        self.assertTrue(done)
        for event in events:
            self.check(schema, event)
        return events
