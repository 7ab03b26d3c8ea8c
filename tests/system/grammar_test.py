"""`paceline grammar` with the bundled model's vocabulary."""
import json
import unittest

import program
from program import BUNDLED, ProgramTest, lines

ARITHMETIC = r"""
root ::= expr
expr ::= expr [-+*/] expr | "(" expr ")" | [0-9]+ ("." [0-9]+)?
"""
LIST = """
%import common (INT, WS)
%ignore WS
start: "[" [INT ("," INT)*] "]"
"""


class GrammarTest(ProgramTest):
    def check(self, *items, options=(), code=0):
        return self.answers("grammar", "-m", BUNDLED, *options, stdin=lines(*items), code=code)

    def test_every_kind_of_constraint(self):
        schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}
        texts = ['{"age": 7}', '{"age": -7}', '{"name": "x"}', '{"age": 7', "7"]
        accepted = [True, False, False, False, False]
        answers = self.check({"json_schema": schema, "texts": texts}, {"json_schema": json.dumps(schema), "texts": texts},
                             {"json_schema": schema, "strict": True, "texts": texts},
                             {"json_object": True, "texts": texts},
                             {"regex": "[a-z]+é?", "texts": ["cafe", "café", "caféé", ""]},
                             {"grammar": ARITHMETIC, "texts": ["1+2*(3.5-4)", "1+", "(1", ""]},
                             {"grammar": LIST, "texts": ["[1, 22]", " [ ]", "[1 2]"]},
                             {"choice": ["yes", "no, thanks"], "texts": ["yes", "no, thanks", "no", "yesno"]},
                             {"choice": ["a"], "texts": []})
        self.assertEqual([answer["accepted"] for answer in answers],
                         [accepted, accepted, accepted, [True, True, True, False, False], [True, True, False, False],
                          [True, False, False, False], [True, True, False], [True, True, False, False], []])
        self.assertTrue(all(list(answer) == ["accepted"] for answer in answers))

    def test_times_of_masks(self):
        answer, = self.check({"regex": "[a-z ]{1,40}", "texts": ["it was a dark night", "It"]}, options=["--masks"])
        self.assertEqual(list(answer), ["accepted", "compile_us", "first_mask_us", "mask_us"])
        self.assertEqual(answer["accepted"], [True, False])
        self.assertLess(answer["compile_us"], answer["first_mask_us"])
        times = answer["mask_us"]
        self.assertEqual(list(times), ["mean", "p50", "p99", "max", "count", "all"])
        self.assertEqual(times["count"], len(times["all"]))
        self.assertEqual(times["max"], max(times["all"]))
        # One for each token, and one for the end of the text that got there.
        tokens = self.succeed("tokenize", "-m", BUNDLED, "-p", "it was a dark night").stdout.split()
        self.assertEqual(times["count"], len(tokens) + 1 + 1)

    def test_a_wrong_line_is_answered_by_an_error(self):
        wrong = [({"choice": [], "texts": []}, "invalid", "choice: an empty list"),
                 ({"texts": ["a"]}, "invalid", "found no constraint"),
                 ({"regex": "a", "choice": ["a"], "texts": ["a"]}, "invalid", "found regex and choice"),
                 ({"regex": "a"}, "invalid", "texts: missing"),
                 ({"regex": "a", "text": ["a"]}, "invalid", "unknown field text"),
                 ({"regex": "(", "texts": []}, "invalid", "regex: the pattern '(', character 1"),
                 ({"regex": 5, "texts": []}, "invalid", "regex: found 5"),
                 ({"json_schema": "{", "texts": []}, "invalid", "json_schema: schema: not valid JSON"),
                 ({"grammar": "root ::= x", "texts": []}, "invalid", "line 1, column 10: the rule x is not defined"),
                 ({"grammar": "start: <|eot|>", "texts": []}, "unsupported", "line 1, column 8"),
                 ({"grammar": "root ::= " + "(" * 60000, "texts": []}, "exhausted", "nested deeper than 64")]
        last = {"regex": "a", "texts": ["a"]}
        answers = self.check(*(item for item, _, _ in wrong), last, code=1)
        for (item, code, message), answer in zip(wrong, answers):
            self.assertEqual(list(answer), ["error"], item)
            self.assertEqual(answer["error"]["code"], code, item)
            self.assertIn(message, answer["error"]["message"])
        self.assertEqual(answers[-1], {"accepted": [True]})
        answers = self.check("no JSON", last, code=1)
        self.assertIn("line 1: not valid JSON: column 1: found 'n'", answers[0]["error"]["message"])
        self.assertEqual(answers[1], {"accepted": [True]})

    def rejects(self, *arguments):
        """A run that rejects a text exits with 1 and says nothing else."""
        done = program.run("grammar", "-m", BUNDLED, *arguments)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        return done

    def test_text_mode_says_where_a_text_went_wrong(self):
        done = self.rejects("--regex", "[a-z]+!", "night!", "night", "--", "nigHt!", "-")
        self.assertEqual(done.stdout.splitlines(), ['accepted  "night!"', 'rejected  "night" at byte 5, where it ends too early',
                                                    'rejected  "nigHt!" at byte 3', 'rejected  "-" at byte 0'])
        grammar = self.write("a.gbnf", ARITHMETIC)
        text = self.write("a.txt", "(1+2)*3\n")
        self.assertEqual(self.succeed("grammar", "-m", BUNDLED, "--grammar", grammar, "-f", text).stdout,
                         'accepted  "(1+2)*3"\n')
        schema = self.write("a.json", '{"enum": ["a", 1]}')
        self.assertEqual(self.rejects("--json-schema", schema, '"a"', "2").stdout,
                         'accepted  "\\"a\\""\nrejected  "2" at byte 0\n')

    def test_choices_are_listed_or_repeated(self):
        listed = self.rejects("--choice", "a,b", "a", "b", "a,b").stdout
        self.assertEqual([line.split()[0] for line in listed.splitlines()], ["accepted", "accepted", "rejected"])
        repeated = self.rejects("--choice", "a,b", "--choice", "c", "a,b", "c", "a").stdout
        self.assertEqual([line.split()[0] for line in repeated.splitlines()], ["accepted", "accepted", "rejected"])

    def test_usage_errors(self):
        for arguments, message in [(["x"], "found no constraint"),
                                   (["--regex", "a", "--choice", "b", "x"], "found --regex and --choice"),
                                   (["--jsonl", "x"], "--jsonl reads constraints and texts"),
                                   (["--jsonl", "--regex", "a"], "--jsonl reads constraints and texts")]:
            self.assertIn(message, self.fail_with(2, "grammar", "-m", BUNDLED, *arguments))
        self.assertIn("--regex: the pattern '('", self.fail_with(2, "grammar", "-m", BUNDLED, "--regex", "(", "x"))
        self.assertIn("found \"+\"", self.fail_with(1, "grammar", "-m", BUNDLED, "--grammar",
                                                    self.write("b.gbnf", "root ::= +"), "x"))


if __name__ == "__main__":
    unittest.main()
