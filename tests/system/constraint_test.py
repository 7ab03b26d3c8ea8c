"""Constraints of `paceline generate` and `chat` with the bundled model: options, lines of JSON, errors."""
import json
import re
import unittest
from pathlib import Path

from program import BUNDLED, ProgramTest, lines

PROMPT = "It was a dark and stormy night"
TOOL_TEMPLATE = Path(__file__).resolve().parents[1] / "contract" / "tool_template.jinja"
PERSON = {"type": "object",
          "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 120},
                         "kind": {"enum": ["cat", "dog"]}},
          "required": ["name", "age", "kind"], "additionalProperties": False}
GRAMMAR = 'root ::= ("left" | "right") " turn" "s"?'
OPTIONS = ["--json-schema", "--regex", "--grammar", "--choice"]


class ConstraintTest(ProgramTest):
    def generate(self, *arguments, **options):
        return self.succeed("generate", "-m", BUNDLED, "-p", PROMPT, "-n", "400", "-q", *arguments, **options).stdout

    def lines_of(self, *items, options=(), code=0):
        items = [{"prompt": PROMPT, "max_tokens": 400, **item} for item in items]
        return self.answers("generate", "-m", BUNDLED, *options, stdin=lines(*items), code=code)

    def refusal(self, code, *arguments, **options):
        return self.fail_with(code, "generate", "-m", BUNDLED, "-p", PROMPT, *arguments, **options)

    def check_person(self, text):
        person = json.loads(text)
        self.assertEqual(sorted(person), ["age", "kind", "name"])
        self.assertLessEqual(len(person["name"]), 8)
        self.assertIn(person["age"], range(121))
        self.assertIn(person["kind"], ["cat", "dog"])

    def test_a_schema(self):
        answers = self.lines_of(*({"json_schema": PERSON, "seed": seed, "temperature": temperature}
                                  for seed in range(3) for temperature in (1, 2)))
        ended = [answer for answer in answers if answer["finish_reason"] == "stop"]  # not in a long run of blanks
        self.assertGreater(len(ended), 1)
        for answer in ended:
            self.check_person(answer["text"])
        schema = self.write("person.json", json.dumps(PERSON))
        text = self.generate("--json-schema", schema, "-s", ended[0]["seed"], "--temp", "2")
        self.assertIn(text.rstrip("\n"), [answer["text"].rstrip("\n") for answer in answers])

    def test_an_expression_a_grammar_and_texts(self):
        grammar = self.write("turn.gbnf", GRAMMAR)
        seen = set()
        for seed in range(4):
            options = ["-s", seed, "--temp", "1.5"]
            self.assertRegex(self.generate("--regex", "[0-9]{4}-[0-9]{2}", *options), r"^[0-9]{4}-[0-9]{2}\n$")
            self.assertRegex(self.generate("--grammar", grammar, *options), r"^(left|right) turns?\n$")
            seen.add(self.generate("--choice", "yes,no", *options))
            text = self.generate("--choice", "well, no", "--choice", "well, yes", *options)
            self.assertIn(text, ["well, no\n", "well, yes\n"])
        self.assertLessEqual(seen, {"yes\n", "no\n"})

    def test_chat_with_tools(self):
        chat = ["chat", "-m", BUNDLED, "-q", "-n", "300", "-s", "1", "--frequency-penalty", "1", "--chat-template",
                TOOL_TEMPLATE]
        tool = {"type": "function", "function": {"name": "wait", "parameters": {
            "type": "object", "required": ["long"], "additionalProperties": False,
            "properties": {"long": {"type": "boolean"}}}}}
        line = {"messages": [{"role": "user", "content": "Wait."}], "tools": [tool], "tool_choice": "required",
                "parallel_tool_calls": False, "reasoning_effort": "none"}
        one, named, wrong, unknown, none = self.answers(*chat, stdin=lines(
            line, {**line, "tool_choice": {"type": "function", "function": {"name": "wait"}}},
            {**line, "tool_choice": "always"}, {**line, "tool_choice": {"type": "function", "function": {"name": "go"}}},
            {**line, "tool_choice": "none", "max_tokens": 4}), code=1)
        for answer in (one, named):
            [call] = answer["message"]["tool_calls"]
            self.assertEqual((call["id"], call["type"], call["function"]["name"]), ("call_0", "function", "wait"))
            self.assertIn(json.loads(call["function"]["arguments"]), ({"long": True}, {"long": False}))
            self.assertIsNone(answer["message"]["content"])
        for answer, part in ((wrong, '"always"'), (unknown, '"go"')):
            self.assertIn("tool_choice: found " + part, answer["error"]["message"])
        self.assertNotIn("tool_calls", none["message"])

    def test_chat(self):
        chat = ["chat", "-m", BUNDLED, "-q", "-n", "400", "-s", "1"]
        schema = self.write("flag.json", '{"type": "boolean"}')
        self.assertIn(self.succeed(*chat, "-p", "Is it?", "--json-schema", schema).stdout.strip(), ["true", "false"])
        self.assertIn(self.succeed(*chat, "--choice", "yes,no", stdin="Is it?\nIs it not?\n").stdout.split(),
                      [[a, b] for a in ("yes", "no") for b in ("yes", "no")])
        messages = [{"role": "user", "content": "Who?"}]
        four, wrong = self.answers(*chat, stdin=lines({"messages": messages, "regex": "[a-z]{4}"},
                                                      {"messages": messages, "grammar": "root ::= x"}), code=1)
        self.assertRegex(four["message"]["content"], "^[a-z]{4}$")
        self.assertTrue(wrong["error"]["message"].startswith("grammar: line 1, column 10"), wrong)

    def test_lines(self):
        answers = self.lines_of({"json_schema": {"const": 7}}, {"json_schema": '{"const": 8}', "strict": True},
                                {"regex": "[a-c]{3}"}, {"grammar": GRAMMAR}, {"choice": ["a, b", "c"]},
                                {"json_object": True, "temperature": 0, "max_tokens": 60},
                                {"json_object": False, "regex": None, "temperature": 0, "max_tokens": 5}, {"prompt": PROMPT})
        texts = [answer["text"] for answer in answers]
        self.assertEqual([json.loads(text) for text in texts[:2]], [7, 8])
        self.assertRegex(texts[2], "^[a-c]{3}$")
        self.assertRegex(texts[3], "^(left|right) turns?$")
        self.assertIn(texts[4], ["a, b", "c"])
        self.assertRegex(texts[5], r"^\s*(\{|$)")
        self.assertEqual(texts[6], self.lines_of({"temperature": 0, "max_tokens": 5})[0]["text"])
        self.assertEqual({answer["finish_reason"] for answer in answers[2:5]}, {"stop"})

    def test_a_line_overrides_the_option(self):
        ours, theirs = self.lines_of({}, {"choice": ["seven"]}, options=["--regex", "[0-9]{3}"])
        self.assertRegex(ours["text"], "^[0-9]{3}$")
        self.assertEqual(theirs["text"], "seven")

    def test_the_same_seed_has_the_same_text(self):
        regex = "[a-z]{12}"
        text = self.generate("--regex", regex, "-s", "5")
        self.assertEqual(self.lines_of({"regex": regex, "seed": 5})[0]["text"] + "\n", text)
        self.assertEqual(self.generate("--regex", regex, "-s", "5", "--speculative-method", "ngram"), text)

    def test_variables_and_files(self):
        self.assertEqual(self.generate(env={"PACELINE_CHOICE": '["only"]'}), "only\n")
        config = self.write("c.toml", '[generate]\nregex = "x{7}"\n')
        self.assertEqual(self.generate("--config", config), "xxxxxxx\n")

    def test_what_is_wrong_is_said_before_the_model_is_loaded(self):
        grammar = self.write("wrong.gbnf", "root ::= x")
        for command in ["generate", "chat"]:
            for code, options, message in [
                    (2, ["--regex", "a("], "--regex: the pattern 'a(', character 2: the group is not closed, expected )"),
                    (2, ["--choice", ","], "--choice: an empty list, expected at least one text"),
                    (2, ["--regex", "a", "--choice", "b"], "found --regex and --choice, expected one constraint only"),
                    (1, ["--grammar", grammar], f"--grammar {grammar}: line 1, column 10: the rule x is not defined"),
                    (1, ["--json-schema", self.write("a.json", '{"type": 3}')], 'a.json: schema: #: "type": found 3'),
                    (1, ["--json-schema", "nowhere.json"], "nowhere.json: No such file"),
                    (1, ["--strict", "--json-schema", self.write("b.json", '{"type": "string", "format": "zzz"}')],
                     'b.json: schema: #: "format": "zzz"')]:
                self.assertIn(message, self.fail_with(code, command, "-m", "nowhere", "-p", "x", *options), options)

    def test_a_wrong_line_is_answered_by_an_error(self):
        wrong = [({"regex": "a("}, "invalid", "regex: the pattern 'a(', character 2: the group is not closed, expected )"),
                 ({"choice": []}, "invalid", "choice: an empty list"),
                 ({"choice": ["a", 1]}, "invalid", "choice[1]: found 1"),
                 ({"grammar": "root ::= x"}, "invalid", "grammar: line 1, column 10: the rule x is not defined"),
                 ({"grammar": "start: <|eot|>"}, "unsupported", "grammar: line 1, column 8"),
                 ({"json_schema": {"type": 3}}, "invalid", 'json_schema: schema: #: "type": found 3'),
                 ({"json_schema": 5}, "invalid", "json_schema: schema: #: found 5"),
                 ({"json_object": 1}, "invalid", "json_object: found 1"),
                 ({"regex": "a", "choice": ["b"]}, "invalid", "found regex and choice, expected one constraint only"),
                 ({"strict": True}, "invalid", "strict: found without json_schema")]
        answers = self.lines_of(*(item for item, _, _ in wrong), {"choice": ["fine"]}, code=1)
        for (item, code, message), answer in zip(wrong, answers):
            self.assertEqual(list(answer), ["error"], item)
            self.assertEqual(answer["error"]["code"], code, item)
            self.assertTrue(answer["error"]["message"].startswith(message), answer)
        self.assertEqual(answers[-1]["text"], "fine")

    def test_without_a_tokenizer(self):
        error = self.fail_with(1, "generate", "-m", self.tiny_model(), "--load-format", "dummy", "--prompt-ids", "1",
                               "--regex", "a", "-q")
        self.assertIn("--regex: ", error)
        self.assertIn("has no tokenizer.json, so its text can't be constrained", error)

    def test_only_what_writes_has_constraints(self):
        for command in ["classify", "score"]:
            for option in OPTIONS:
                self.assertIn(f"unknown option {option}",
                              self.fail_with(2, command, "-m", BUNDLED, "-p", "x", option, "x"))
            fields = ["json_schema", "regex", "grammar", "choice", "json_object"]
            answers = self.answers(command, "-m", BUNDLED, stdin=lines(*({"text": "x", f: "x"} for f in fields)), code=1)
            for field, answer in zip(fields, answers):
                self.assertRegex(answer["error"]["message"], f"^unknown field {field}\\b")

    def test_the_help_lists_them(self):
        text = self.succeed("generate", "--help").stdout
        for option in OPTIONS:
            self.assertRegex(text, re.compile(f"^ +{option} [A-Z]", re.MULTILINE))
        for command in ["generate", "chat", "grammar"]:
            everything = self.succeed(command, "--help-all").stdout
            self.assertIn("\nConstraint:\n", everything)
            self.assertIn("--strict", everything)


if __name__ == "__main__":
    unittest.main()
