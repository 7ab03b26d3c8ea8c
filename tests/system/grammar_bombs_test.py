"""Constraints made to do harm: refused or served at once, in bounded memory, by a server that goes on."""
import json
import os
import unittest
from pathlib import Path

from program import IS_SANITIZED
from serving import CpuClock, ServerCase

MESSAGES = [{"role": "user", "content": "Who lives in the old house by the river?"}]


def property_chain(depth):
    schema = {"type": "boolean"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


def doubling(depth):
    """Definitions that each refer twice to the next: 2^depth paths."""
    definitions = {f"d{i}": {"type": "object", "properties": {"l": {"$ref": f"#/$defs/d{i + 1}"},
                                                             "r": {"$ref": f"#/$defs/d{i + 1}"}}} for i in range(depth)}
    return {"$defs": {**definitions, f"d{depth}": {"type": "null"}}, "$ref": "#/$defs/d0"}


REGEXES = {"nested groups": "(" * 60_000 + ")" * 60_000,
           "open groups": "(" * 60_000,
           "repeated anchor": "^+",
           "anchor with a count": "^{2}",
           "count of a count": "(a{1000}){1000}",
           "count of counts of counts": "((a{0,9999}){0,9999}){0,9999}",
           "nested stars": "((((a*)*)*)*)*b",
           "optionals in a row": "(a?){5000}" + "a" * 5000,
           "optional letters": "a?" * 20_000,
           "far choice": "(a|b)*a(a|b){400}",
           "words": r"(\S+\s+){0,1000}\S+",
           "classes": r"(\p{L}\p{N}){1,5000}",
           "alternatives": "|".join(f"w{i:05d}x" for i in range(20_000)),
           "dots": ".*a" * 2000}
SCHEMAS = {"maxLength 10^9": {"type": "string", "maxLength": 10 ** 9},
           "minLength 10^9": {"type": "string", "minLength": 10 ** 9},
           "minItems 10^9": {"type": "array", "items": {"type": "null"}, "minItems": 10 ** 9},
           "maxItems 10^6 in maxItems": {"type": "array", "maxItems": 10 ** 6,
                                         "items": {"type": "array", "maxItems": 10 ** 6, "items": {"type": "integer"}}},
           "recursive $ref": {"$ref": "#"},
           "recursive allOf": {"allOf": [{"$ref": "#"}, {"type": "object"}]},
           "recursive list": {"type": "array", "items": {"$ref": "#"}},
           "100,000 enum values": {"enum": list(range(100_000))},
           "12,000 enum texts": {"enum": [f"value {i}" for i in range(12_000)]},
           "anyOf of 2,500": {"anyOf": [{"type": "object", "properties": {f"p{i}": {"type": "string"}},
                                         "required": [f"p{i}"]} for i in range(2500)]},
           "oneOf of 400": {"oneOf": [{"type": "object", "properties": {f"p{i}": {"type": "string"}}} for i in range(400)]},
           "allOf of patterns": {"type": "string", "allOf": [{"pattern": f"a{{{i}}}|b.*c{i}"} for i in range(100)]},
           "not of patterns": {"type": "string", "not": {"anyOf": [{"pattern": f".*{i}.*"} for i in range(200)]}},
           "nested 25 deep": property_chain(25),
           "2^40 paths": doubling(40),
           "5,000 optional properties": {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(5000)},
                                         "additionalProperties": False},
           "multipleOf": {"type": "number", "multipleOf": 1e-300},
           "bounds": {"type": "number", "minimum": -1e300, "maximum": 1e300, "multipleOf": 0.0000001}}
GRAMMARS = {"nested": "root ::= " + "(" * 60_000,
            "left recursion": 'root ::= root "a" | "a"',
            "hidden left recursion": 'root ::= e root "a" | "b"\ne ::= ""',
            "ambiguous": 'root ::= root root | "a" | ""',
            "count of a count": 'root ::= (("a"{1,9999}){1,9999}){1,9999}',
            "9,000 rules": "root ::= r0\n" + "\n".join(f'r{i} ::= "x" r{i + 1} | "y"' for i in range(9000)) + '\nr9000 ::= "z"'}
BOMBS = ([(f"regex: {name}", {"structured_outputs": {"regex": one}}) for name, one in REGEXES.items()] +
         [(f"schema: {name}", {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": one}}})
          for name, one in SCHEMAS.items()] +
         [(f"grammar: {name}", {"structured_outputs": {"grammar": one}}) for name, one in GRAMMARS.items()])


class GrammarBombsTest(ServerCase):
    options = ("--max-num-seqs", "4")

    def resident_bytes(self):
        for line in Path(f"/proc/{self.server.child.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return self.fail("no VmRSS")

    def ask(self, fields):
        """The answer, and the server's CPU seconds for it, which other programs on the machine don't add to."""
        cpu = CpuClock(self.server.child.pid)
        body = json.dumps({"messages": MESSAGES, "max_tokens": 8, "seed": 1, **fields}).encode()
        begin = cpu.now()
        answer = self.client.post("/v1/chat/completions", body)
        return answer, cpu.now() - begin

    def test_each_is_refused_or_served_at_once(self):
        self.ask({"structured_outputs": {"regex": "[a-z]+"}})
        slowest, before = (0.0, ""), self.resident_bytes()
        for name, fields in BOMBS:
            answer, seconds = self.ask(fields)
            with self.subTest(name):
                self.assertIn(answer.status, (200, 400), answer.body[:300])
                if answer.status == 400:
                    self.assertEqual(answer.json["error"]["type"], "invalid_request_error")
                    self.assertTrue(answer.json["error"]["param"], answer.json)
                self.assertLess(seconds, 30 if IS_SANITIZED else 1.5, answer.body[:300])
            slowest = max(slowest, (seconds, name))
            if "PACELINE_PRINT_BOMBS" in os.environ:
                print(f"{seconds * 1e3:8.1f} ms  {answer.status}  {name}  "
                      f"{answer.json['error']['message'][:100] if answer.status == 400 else ''}")
        grown = self.resident_bytes() - before
        print(f"slowest of {len(BOMBS)}: {slowest[0] * 1e3:.0f} ms ({slowest[1]}); memory grew by {grown / 2**20:.0f} MiB")
        if not IS_SANITIZED:
            self.assertLess(grown, 700 << 20)
        answer, _ = self.ask({})
        self.assertEqual(answer.status, 200)

    def test_a_request_nested_too_deep_is_refused(self):
        answer, _ = self.ask({"response_format": {"type": "json_schema", "json_schema": {
            "name": "a", "schema": property_chain(300)}}})
        self.assertEqual(answer.status, 400)
        self.assertIn("nested deeper than 64", answer.json["error"]["message"])

    def test_a_flood_of_schemas_stays_in_bounded_memory(self):
        before = self.resident_bytes()
        for i in range(60 if IS_SANITIZED else 600):
            schema = {"type": "object", "properties": {f"p{i}_{k}": {"type": "string", "maxLength": i + 1} for k in range(40)}}
            answer, _ = self.ask({"structured_outputs": {"json": schema}, "max_tokens": 1})
            self.assertEqual(answer.status, 200, answer.body[:300])
        if not IS_SANITIZED:
            self.assertLess(self.resident_bytes() - before, 500 << 20)


if __name__ == "__main__":
    unittest.main()
