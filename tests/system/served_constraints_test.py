"""Structured output over HTTP and in files of requests: every name of a constraint, with the bundled model."""
import json
import re
import tempfile
import unittest
from pathlib import Path

from program import BUNDLED, IS_SANITIZED, ProgramTest, lines
from serving import Client, Server, ServerCase

TOOL_TEMPLATE = Path(__file__).resolve().parents[1] / "contract" / "tool_template.jinja"
MESSAGES = [{"role": "user", "content": "Who lives in the old house by the river?"}]
PROMPT = "It was a dark and stormy night"
# Against the long rows of blanks and the repetitions of a small model.
SAMPLING = {"seed": 7, "temperature": 0.8, "frequency_penalty": 1}
PERSON = {"type": "object", "required": ["name", "age", "likes"], "additionalProperties": False,
          "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 20},
                         "age": {"type": "integer", "minimum": 1, "maximum": 99},
                         "likes": {"type": "array", "items": {"enum": ["rain", "books", 7]}, "maxItems": 3}}}
GRAMMAR = 'root ::= "I " ("like" | "see") " the " [a-z]{3,9} "."'
LARK = 'start: "I " ("like" | "see") " the " /[a-z]{3,9}/ "."'
SENTENCE = re.compile(r"I (like|see) the [a-z]{3,9}\.")
DATE = r"[0-9]{4}-(0[1-9]|1[0-2])"
BACK_REFERENCE = r"(a)\1"


def is_person(text):
    value = json.loads(text)
    return (set(value) == {"name", "age", "likes"} and isinstance(value["name"], str) and 1 <= len(value["name"]) <= 20
            and isinstance(value["age"], int) and 1 <= value["age"] <= 99 and len(value["likes"]) <= 3
            and all(one in ("rain", "books", 7) and not isinstance(one, float) for one in value["likes"]))


def is_object(text):
    return isinstance(json.loads(text), dict) and not re.search(r"\s{44}|\n\s*\n", text)


# Any object may go on for long; this one ends as soon as it may.
CLOSE = {"logit_bias": {"92": 100}}  # the token }


def named_schema(schema, **members):
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, **members}}


# The fields of a request, and whether a text obeys them.
REQUESTS = [({"response_format": named_schema(PERSON)}, is_person),
            ({"response_format": named_schema(PERSON, strict=True)}, is_person),
            ({"response_format": {"type": "json_object"}, **CLOSE}, is_object),
            ({"response_format": {"type": "json_object", "schema": PERSON}}, is_person),
            ({"structured_outputs": {"json": PERSON}}, is_person),
            ({"structured_outputs": {"json": json.dumps(PERSON)}}, is_person),
            ({"structured_outputs": {"regex": DATE}}, re.compile(DATE).fullmatch),
            ({"structured_outputs": {"choice": ["yes", "no, thanks"]}}, {"yes", "no, thanks"}.__contains__),
            ({"structured_outputs": {"grammar": LARK}}, SENTENCE.fullmatch),
            ({"structured_outputs": {"json_object": True}, **CLOSE}, is_object),
            ({"guided_json": PERSON}, is_person),
            ({"guided_regex": DATE}, re.compile(DATE).fullmatch),
            ({"guided_choice": ["yes", "no, thanks"]}, {"yes", "no, thanks"}.__contains__),
            ({"guided_grammar": GRAMMAR}, SENTENCE.fullmatch),
            ({"json_schema": PERSON}, is_person),
            ({"grammar": GRAMMAR}, SENTENCE.fullmatch)]
# Fields that are refused before the engine has the request: the field at fault, its code, a part of the message.
REFUSED = [({"response_format": named_schema({"items": {"type": "strin"}})}, "response_format.json_schema.schema",
            "invalid_value", '#/items: "type": found "strin"'),
           ({"response_format": named_schema({"format": "iban"}, strict=True)}, "response_format.json_schema.schema",
            "unsupported_parameter", '"format"'),
           ({"structured_outputs": {"json": "{"}}, "structured_outputs.json", "invalid_value", ""),
           ({"structured_outputs": {"regex": BACK_REFERENCE}}, "structured_outputs.regex", "unsupported_parameter",
            "a back-reference"),
           ({"guided_regex": "("}, "guided_regex", "invalid_value", "character 1"),
           ({"guided_grammar": "root ::= x"}, "guided_grammar", "invalid_value", "the rule x is not defined"),
           ({"grammar": "root ::= " + "(" * 999}, "grammar", "limit_exceeded", "nested deeper than 64"),
           ({"json_schema": {"description": "x" * 300_000}}, "json_schema", "limit_exceeded", "bytes"),
           ({"json_schema": False}, "json_schema", "invalid_value", "no value obeys it"),
           ({"guided_regex": "a", "guided_choice": ["a"]}, "guided_choice", "invalid_value", "guided_regex")]


class ServedConstraintsTest(ServerCase):
    def ask(self, path, status=200, **fields):
        answer = self.client.post(path, fields)
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def chat(self, **fields):
        return self.ask("/v1/chat/completions", messages=MESSAGES, **{**SAMPLING, "max_tokens": 900, **fields})

    def complete(self, path="/v1/completions", **fields):
        return self.ask(path, prompt=PROMPT, **{**SAMPLING, "max_tokens": 900, **fields})

    def metrics(self):
        text = self.client.get("/metrics").body.decode()
        return {name: float(value) for name, value in re.findall(r"^paceline:(constraint\S+) (\S+)$", text, re.M)}

    def test_every_field_on_every_route(self):
        for fields, obeys in REQUESTS[::4] if IS_SANITIZED else REQUESTS:
            [choice] = self.chat(**fields)["choices"]
            self.assertEqual(choice["finish_reason"], "stop", fields)
            self.assertTrue(obeys(choice["message"]["content"]), (fields, choice))
            [choice] = self.complete(**fields)["choices"]
            self.assertEqual((choice["finish_reason"], bool(obeys(choice["text"]))), ("stop", True), (fields, choice))
            result = self.complete("/completion", **fields)
            self.assertEqual((result["stop_type"], bool(obeys(result["content"]))), ("eos", True), (fields, result))

    def test_streams_and_choices_are_constrained_too(self):
        for fields, obeys in (REQUESTS[6:8] if IS_SANITIZED else REQUESTS[:3] + REQUESTS[6:9]):
            body = {"messages": MESSAGES, "max_tokens": 900, "n": 3, **SAMPLING, **fields}
            events, done = self.client.stream("/v1/chat/completions", body)
            self.assertTrue(done)
            texts = [""] * 3
            for event in events:
                for choice in event["choices"]:
                    texts[choice["index"]] += choice["delta"].get("content") or ""
            whole = [choice["message"]["content"] for choice in self.ask("/v1/chat/completions", **body)["choices"]]
            self.assertEqual(texts, whole)
            self.assertTrue(all(obeys(text) for text in texts), texts)
            plain = {"prompt": PROMPT, "max_tokens": 900, **SAMPLING, **fields}
            events, _ = self.client.stream("/v1/completions", plain)
            self.assertTrue(obeys("".join(event["choices"][0]["text"] for event in events)))
            events, _ = self.client.stream("/completion", plain)
            self.assertTrue(obeys("".join(event["content"] for event in events)))

    def test_the_end_of_max_tokens_leaves_a_beginning(self):
        [choice] = self.chat(guided_regex="[a-z ]{200}", max_tokens=9)["choices"]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertRegex(choice["message"]["content"], r"^[a-z ]{1,199}$")

    def test_no_format_is_any_text(self):
        plain = self.chat(max_tokens=9)["choices"]
        for fields in ({"response_format": {"type": "text"}}, {"grammar": ""}, {"response_format": None}):
            self.assertEqual(self.chat(max_tokens=9, **fields)["choices"], plain)

    def test_what_cannot_be_enforced_is_refused_by_name(self):
        for fields, param, code, message in REFUSED:
            for error in (self.ask("/v1/chat/completions", 400, messages=MESSAGES, **fields),
                          self.ask("/v1/completions", 400, prompt=PROMPT, stream=True, **fields),
                          self.ask("/completion", 400, prompt=PROMPT, **fields)):
                self.assertEqual((error["error"]["param"], error["error"]["code"]), (param, code), error)
                self.assertEqual(error["error"]["type"], "invalid_request_error")
                self.assertIn(param + ": ", error["error"]["message"])
                self.assertIn(message, error["error"]["message"])
        error = self.ask("/v1/completions", 400, prompt=PROMPT, guided_regex="a", max_tokens=0)["error"]
        self.assertIn("max_tokens", error["message"])

    def test_integers_are_written_with_digits_only(self):
        for schema in ({"type": "integer"}, {"enum": [18, -7, 120]}, {"type": "number", "multipleOf": 3, "maximum": 999}):
            for seed in range(10 if IS_SANITIZED else 40):
                [choice] = self.chat(response_format=named_schema(schema), seed=seed, max_tokens=40)["choices"]
                self.assertRegex(choice["message"]["content"].strip(), r"^-?[0-9]+$", (schema, seed))

    def test_parts_of_a_schema_that_cannot_be_enforced_are_left_out_with_a_warning(self):
        schema = {**PERSON, "properties": {**PERSON["properties"], "name": {"type": "string", "pattern": r"\bx", "maxLength": 9},
                                           "likes": {"type": "array", "uniqueItems": True, "items": {"type": "integer"},
                                                     "maxItems": 2}}}
        before = self.metrics()
        fields = {**SAMPLING, "max_tokens": 300, "response_format": named_schema(schema)}
        answer = self.chat(**fields)
        person = json.loads(answer["choices"][0]["message"]["content"])
        self.assertLessEqual(len(person["name"]), 9)
        self.assertTrue(all(isinstance(one, int) for one in person["likes"]))
        for part, name in zip(sorted(answer["warnings"]), ('likes: "uniqueItems"', 'name: "pattern"'), strict=True):
            self.assertIn(f"schema: #/properties/{name} isn't enforced: ", part)
        for path, asked in (("/v1/chat/completions", {"messages": MESSAGES}), ("/v1/completions", {"prompt": PROMPT})):
            events, done = self.client.stream(path, {**fields, **asked})
            self.assertTrue(done)
            self.assertEqual([event.get("warnings") for event in events[:2]], [answer["warnings"], None])
        widened = 'constraints_widened_total{model_name="paceline-10m"}'
        self.assertEqual(self.metrics()[widened] - before[widened], 3)
        error = self.ask("/v1/chat/completions", 400, messages=MESSAGES,
                         response_format=named_schema(schema, strict=True))["error"]
        self.assertEqual((error["param"], error["code"]), ("response_format.json_schema.schema", "unsupported_parameter"))
        self.assertIn("warnings", self.chat(response_format=named_schema({"oneOf": [
            {"required": ["a"], "properties": {"a": {"const": i}}} for i in range(600)]}), max_tokens=1))
        self.ask("/v1/chat/completions", 400, messages=MESSAGES, guided_json=schema)

    def test_options_that_contradict_the_constraint_are_an_error(self):
        for fields in ({"allowed_token_ids": [300]}, {"min_tokens": 5}):
            error = self.ask("/v1/completions", 400, prompt=PROMPT, guided_choice=["yes"], **fields)["error"]
            self.assertIn("the constraint", error["message"])

    def test_classify_and_score_refuse_constraints(self):
        for path in ("/v1/classify", "/v1/score_tokens"):
            for fields, _ in REQUESTS:
                name = next(iter(fields))
                error = self.ask(path, 400, input=PROMPT, **fields)["error"]
                self.assertEqual(error["param"], name)

    def test_metrics(self):
        before = self.metrics()
        pattern = "[m-p]{3}"
        for _ in range(3):
            self.complete(guided_regex=pattern)
        self.complete(structured_outputs={"regex": pattern})
        self.ask("/v1/completions", 400, prompt=PROMPT, guided_regex="(m-p")
        self.ask("/v1/completions", 400, prompt=PROMPT, guided_regex=r"(m)-p\1")
        after = self.metrics()
        label = 'model_name="paceline-10m"'

        def grown(name):
            return after[name] - before[name]

        self.assertEqual(grown(f"constraints_compiled_total{{{label}}}"), 1)
        self.assertEqual(grown(f"constraint_cache_hits_total{{{label}}}"), 3)
        self.assertGreater(grown(f"constraint_cache_bytes{{{label}}}"), 0)
        for reason, count in [("invalid", 1), ("unsupported", 1), ("over_limit", 0), ("error", 0)]:
            self.assertEqual(grown(f'constraints_refused_total{{{label},reason="{reason}"}}'), count, reason)


class AutomaticCallsTest(unittest.TestCase):
    """A model that begins a call by itself: biases and bad words leave it no other way than to write the mark."""
    MARK = "<@>"

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        template = Path(directory.name) / "template.jinja"
        text = TOOL_TEMPLATE.read_text()
        template.write_text(text.replace("<tool_call>", cls.MARK).replace("</tool_call>", "</@>"))
        server = Server("--chat-template", template)
        cls.addClassCleanup(server.stop)
        cls.client = Client(server.port)
        tokens = cls.client.post("/tokenize", {"content": cls.MARK, "add_special": False}).json["tokens"]
        cls.writes_mark = {"bad_words": ["<<", "<>", "@<", "@@"], "temperature": 0}
        cls.biases = {str(token): bias for token, bias in zip(tokens, (100, 70, 40), strict=True)}

    def body(self, **fields):
        tool = {"type": "function", "function": {"name": "find", "parameters": {
            "type": "object", "required": ["street", "number"], "additionalProperties": False,
            "properties": {"street": {"type": "string", "maxLength": 9}, "number": {"type": "integer", "maximum": 9}}}}}
        breaks = self.client.post("/tokenize", {"content": "\n", "add_special": False}).json["tokens"]
        return {"messages": MESSAGES, "tools": [tool], "tool_choice": "auto", "max_tokens": 300, "seed": 5,
                "parallel_tool_calls": False, "reasoning_effort": "none", "frequency_penalty": 1,
                "logit_bias": {str(token): -100 for token in breaks}, **fields}

    def check_call(self, call):
        arguments = json.loads(call["function"]["arguments"])
        self.assertEqual((call["function"]["name"], set(arguments)), ("find", {"street", "number"}))
        self.assertLessEqual(len(arguments["street"]), 9)
        self.assertLessEqual(arguments["number"], 9)

    def ask(self, **fields):
        answer = self.client.post("/v1/chat/completions", self.body(**fields))
        self.assertEqual(answer.status, 200, answer.body)
        [choice] = answer.json["choices"]
        return choice

    def test_a_strict_tool_has_no_unknown_format(self):
        def body(is_strict):
            parameters = {"properties": {"to": {"type": "string", "format": "iban"}}}
            function = {"name": "pay", "parameters": parameters, "strict": is_strict}
            return self.body(max_tokens=2, tools=[{"type": "function", "function": function}])

        self.assertEqual(self.client.post("/v1/chat/completions", body(False)).status, 200)
        answer = self.client.post("/v1/chat/completions", body(True))
        self.assertEqual((answer.status, answer.json["error"]["param"]), (400, "tools"))
        self.assertIn('tool pay: schema: #/properties/to: "format": "iban"', answer.json["error"]["message"])

    def test_tools_that_cannot_be_enforced_are_no_obstacle(self):
        def parameters(**schema):
            return {"type": "object", "properties": {"a": schema}}

        def body(schema, is_strict=False):
            function = {"name": "odd", "parameters": schema, "strict": is_strict}
            return self.body(max_tokens=2, tools=[*self.body()["tools"], {"type": "function", "function": function}])

        cases = [(parameters(type="array", uniqueItems=True), "uniqueItems"), (parameters(pattern=r"\bx"), "pattern"),
                 (parameters(pattern="(?<=a)b"), "pattern"), (parameters(pattern=r"\p{Script=Greek}"), "pattern"),
                 (parameters(**{"$ref": "https://example.org/other.json"}), "$ref"),
                 (parameters(allOf=[{"anyOf": [{"minimum": i}, {"maximum": i}]} for i in range(10)]), "complex"),
                 (parameters(type="string", enum=[1]), None), ({"type": "object", "required": ["a"], **parameters(enum=[]),
                                                                 "minProperties": 1}, "no value")]
        for schema, keyword in cases:
            answer = self.client.post("/v1/chat/completions", body(schema))
            self.assertEqual(answer.status, 200, answer.body)
            warnings = answer.json.get("warnings", [])
            self.assertEqual(len(warnings), 0 if keyword is None else 1, (schema, warnings))
            for warning in warnings:
                self.assertIn(keyword, warning)
            if keyword not in (None, "no value"):
                error = self.client.post("/v1/chat/completions", body(schema, is_strict=True))
                self.assertEqual((error.status, error.json["error"]["param"]), (400, "tools"))
        for malformed in (parameters(type="OBJECT"), parameters(minLength="x"), {"type": "string"}):
            error = self.client.post("/v1/chat/completions", body(malformed))
            self.assertEqual((error.status, error.json["error"]["param"]), (400, "tools"), error.body)
        self.assertIn('"OBJECT"', self.client.post("/v1/chat/completions",
                                                   body(parameters(type="OBJECT"))).json["error"]["message"])

    def test_a_forced_call_that_is_cut_shows_no_marks(self):
        whole = self.ask(tool_choice="required", max_tokens=400)
        [call] = whole["message"]["tool_calls"]
        for max_tokens in range(1, 40):
            fields = {"tool_choice": "required", "max_tokens": max_tokens}
            choice = self.ask(**fields)
            if choice["finish_reason"] == "tool_calls":
                break
            self.assertEqual((choice["finish_reason"], choice["message"]["content"]), ("length", None), choice)
            [cut] = choice["message"].get("tool_calls") or [None]
            if cut is not None:
                self.assertEqual(cut["function"]["name"], "find")
                self.assertTrue(call["function"]["arguments"].startswith(cut["function"]["arguments"]), cut)
            events, _ = self.client.stream("/v1/chat/completions", self.body(**fields))
            deltas = [event["choices"][0]["delta"] for event in events if event["choices"]]
            self.assertFalse(any(delta.get("content") for delta in deltas), deltas)

    def test_arguments_that_were_cut_off_are_a_part_of_the_history(self):
        cut = '{"street": "Old Ro'
        history = [*MESSAGES, {"role": "assistant", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "find", "arguments": cut}}]},
                   {"role": "tool", "tool_call_id": "1", "content": "The arguments are no JSON."}]
        prompt = self.client.post("/apply-template", {"messages": history}).json["prompt"]
        self.assertIn(json.dumps({"invalid_arguments": cut}), prompt)
        answer = self.client.post("/v1/chat/completions", self.body(messages=history, max_tokens=2))
        self.assertEqual(answer.status, 200, answer.body)

    def test_a_call_that_the_model_begins_obeys_the_schema(self):
        text = self.ask(max_tokens=12)
        self.assertEqual((text["finish_reason"], text["message"].get("tool_calls")), ("length", None))
        self.assertGreater(len(text["message"]["content"]), 8)
        begins = {"logit_bias": {**self.body()["logit_bias"], **self.biases}, **self.writes_mark}
        choice = self.ask(**begins)
        self.assertEqual((choice["finish_reason"], choice["message"]["content"]), ("tool_calls", None))
        [call] = choice["message"]["tool_calls"]
        self.check_call(call)
        events, done = self.client.stream("/v1/chat/completions", self.body(**begins))
        self.assertTrue(done)
        deltas = [event["choices"][0]["delta"] for event in events if event["choices"]]
        pieces = [piece for delta in deltas for piece in delta.get("tool_calls") or []]
        self.assertEqual(pieces[0]["function"]["name"], "find")
        self.assertEqual("".join(piece["function"]["arguments"] for piece in pieces), call["function"]["arguments"])
        self.assertFalse(any(delta.get("content") for delta in deltas))


class ConstraintsOfFilesTest(ProgramTest):
    def test_files_of_requests(self):
        source, target = self.directory / "in.jsonl", self.directory / "out.jsonl"
        wrong = [fields for fields, _, _, _ in REFUSED]
        bodies = [{"messages": MESSAGES, "max_tokens": 900, **SAMPLING, **fields}
                  for fields in [fields for fields, _ in REQUESTS] + wrong]
        source.write_bytes(lines(*({"custom_id": str(i), "method": "POST", "url": "/v1/chat/completions", "body": body}
                                   for i, body in enumerate(bodies))))
        self.succeed("batch", "-m", BUNDLED, "-i", source, "-o", target)
        records = {int(r["custom_id"]): r["response"] for r in map(json.loads, target.read_text().splitlines())}
        for i, (fields, obeys) in enumerate(REQUESTS):
            [choice] = records[i]["body"]["choices"]
            self.assertTrue(obeys(choice["message"]["content"]), (fields, choice))
        for i, (_, param, code, _) in enumerate(REFUSED, len(REQUESTS)):
            error = records[i]["body"]["error"]
            self.assertEqual((records[i]["status_code"], error["param"], error["code"]), (400, param, code))

    def test_files_of_requests_with_tools(self):
        source, target = self.directory / "in.jsonl", self.directory / "out.jsonl"
        tool = {"type": "function", "function": {"name": "f", "parameters": {
            "type": "object", "required": ["x"], "additionalProperties": False, "properties": {"x": {"type": "boolean"}}}}}
        body = {"messages": MESSAGES, "max_tokens": 600, **SAMPLING, "tools": [tool], "tool_choice": "required",
                "parallel_tool_calls": False, "reasoning_effort": "none"}
        wrong = {**body, "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": 5}}}]}
        source.write_bytes(lines(*({"custom_id": str(i), "method": "POST", "url": "/v1/chat/completions", "body": one}
                                   for i, one in enumerate((body, wrong)))))
        self.succeed("batch", "-m", BUNDLED, "--chat-template", TOOL_TEMPLATE, "-i", source, "-o", target)
        records = {r["custom_id"]: r["response"] for r in map(json.loads, target.read_text().splitlines())}
        [choice] = records["0"]["body"]["choices"]
        [call] = choice["message"]["tool_calls"]
        self.assertEqual((choice["finish_reason"], call["function"]["name"]), ("tool_calls", "f"))
        self.assertIn(json.loads(call["function"]["arguments"]), ({"x": True}, {"x": False}))
        self.assertEqual((records["1"]["status_code"], records["1"]["body"]["error"]["param"]), (400, "tools"))


if __name__ == "__main__":
    unittest.main()
