"""--jsonl: one answer a line, in order; an item that fails fails alone."""
import json
import unittest

from program import BUNDLED, ProgramTest, lines, run, run_on_terminal


class ItemsTest(ProgramTest):
    def generate(self, *items, code=0, options=()):
        return self.answers("generate", "-m", BUNDLED, *options, stdin=lines(*items), code=code)

    def error_of(self, item):
        answer, = self.generate(item, code=1)
        self.assertEqual(list(answer), ["error"])
        self.assertEqual(list(answer["error"]), ["code", "message"])
        return answer["error"]

    def test_order_is_kept_and_failures_are_their_own(self):
        good = {"prompt": "The sea", "max_tokens": 3, "temperature": 0}
        answers = self.generate(good, {"prompt": ""}, "not json", good, {"prompt": "x", "max_tokens": -1},
                                "", {**good, "prompt": "A house"}, b'{"prompt": "\xff"}', [1], good, code=1)
        kinds = ["error" if "error" in a else a["usage"]["completion_tokens"] for a in answers]
        self.assertEqual(kinds, [3, "error", "error", 3, "error", 3, "error", "error", 3])
        alone, = self.generate(good)
        for index in (0, 3, 8):
            self.assertEqual({**answers[index], "seed": 0}, {**alone, "seed": 0})

    def test_no_items_are_no_answers(self):
        self.assertEqual(self.generate(), [])
        self.assertEqual(self.generate("", "  "), [])

    def test_unknown_fields_get_suggestions(self):
        error = self.error_of({"prompt": "x", "max_token": 5})
        self.assertEqual(error, {"code": "invalid", "message": "unknown field max_token; did you mean max_tokens?"})

    def test_wrong_values_name_the_field(self):
        for field, value, expected in [
                ("max_tokens", "5", 'max_tokens: found "5", expected an integer'),
                ("max_tokens", 1.5, "max_tokens: found 1.5, expected an integer"),
                ("temperature", 3, "temperature: found 3, expected a number from 0 to 2"),
                ("top_p", 1.5, "top_p: found 1.5, expected a number from 0 to 1"),
                ("top_k", -2, "top_k: found -2"),
                ("min_p", 2, "min_p: found 2"),
                ("repetition_penalty", 0, "repetition_penalty: found 0"),
                ("frequency_penalty", 5, "frequency_penalty: found 5"),
                ("presence_penalty", "x", 'presence_penalty: found "x"'),
                ("logit_bias", {"x": 1}, "logit_bias"),
                ("logit_bias", {"99999": 1}, "99999"),
                ("logit_bias", [1], "logit_bias[0]: found 1, expected [token id, bias]"),
                ("seed", -1, "seed: found -1, expected an integer from 0 on"),
                ("seed", 2 ** 70, "expected an integer below 2^64"),
                ("stop", 5, "stop: found 5"),
                ("stop", ["a", 5], "stop[1]"),
                ("stop", [""], 'stop[0]: found "", expected some text'),
                ("stop", ["a"] * 129, "stop: 129 strings, expected at most 128"),
                ("stop", "x" * 300, "stop[0]: 300 bytes, expected at most 256"),
                ("stop_token_ids", [99999], "stop_token_ids[0]: the token id 99999"),
                ("stop_token_ids", 5, "stop_token_ids: found 5"),
                ("ignore_eos", 1, "ignore_eos: found 1, expected true or false"),
                ("logprobs", 21, "logprobs: found 21, expected an integer from 0 to 20"),
                ("prompt", 5, "prompt: found 5, expected a string"),
                ("prompt_ids", [1], "both prompt and prompt_ids")]:
            with self.subTest(field=field, value=value):
                error = self.error_of({"prompt": "x", "max_tokens": 1, field: value})
                self.assertEqual(error["code"], "invalid")
                self.assertIn(expected, error["message"])

    def test_prompts_that_can_not_be(self):
        self.assertIn("neither prompt nor prompt_ids", self.error_of({})["message"])
        self.assertIn("prompt: empty", self.error_of({"prompt": ""})["message"])
        self.assertIn("empty", self.error_of({"prompt_ids": []})["message"])
        self.assertIn("prompt_ids[1]: the token id 4099 is outside the vocabulary (0..4098)",
                      self.error_of({"prompt_ids": [1, 4099]})["message"])
        self.assertIn("prompt_ids[0]: found -1", self.error_of({"prompt_ids": [-1]})["message"])
        self.assertIn("prompt_ids[0]", self.error_of({"prompt_ids": ["a"]})["message"])
        message = self.error_of({"prompt_ids": [1] * 1025})["message"]
        self.assertIn("1025", message)
        self.assertIn("1024", message)

    def test_messages_name_the_prompt_as_the_input_does(self):
        outside, too_long = [1, 4099], [1] * 1025
        for command, item, expected in [
                ("generate", {"prompt_ids": too_long}, "field: prompt_ids;"),
                ("generate", {"prompt": "x" * 5000}, "field: prompt;"),
                ("score", {"ids": outside}, "ids[1]: the token id 4099 is outside"),
                ("score", {"text": ""}, "text: empty"),
                ("classify", {"text": ""}, "text: empty")]:
            with self.subTest(command=command, item=item):
                answer, = self.answers(command, "-m", BUNDLED, stdin=lines(item), code=1)
                self.assertIn(expected, answer["error"]["message"])
        for command in ["generate", "score"]:
            message = self.fail_with(1, command, "-m", BUNDLED, "-q", "--prompt-ids", "1,4099")
            self.assertIn("prompt_ids[1]: the token id 4099 is outside the vocabulary (0..4098)", message)
        for command in ["generate", "score", "classify"]:
            self.assertIn("prompt: empty", self.fail_with(1, command, "-m", BUNDLED, "-q", "-p", ""))

    def test_options_are_the_defaults_of_lines(self):
        answers = self.generate({"prompt": "The sea"}, {"prompt": "The sea", "max_tokens": 2},
                                options=["-n", "4", "--temp", "0", "--ignore-eos", "--seed", "5"])
        self.assertEqual([a["usage"]["completion_tokens"] for a in answers], [4, 2])
        self.assertEqual([a["seed"] for a in answers], [5, 5])

    def test_answers_come_from_options_too(self):
        answers = self.answers("generate", "-m", BUNDLED, "-p", "The sea", "-p", "A", "-n", "2", "--ignore-eos")
        self.assertEqual([a["usage"]["completion_tokens"] for a in answers], [2, 2])

    def test_lines_are_bounded(self):
        long_line = json.dumps({"text": "x" * (8 << 20)})
        answers = self.answers("tokenize", "-m", BUNDLED, stdin=lines({"text": "a"}, long_line, {"text": "b"}), code=1)
        self.assertEqual(["error" in a for a in answers], [False, True, False])
        self.assertIn("line 2: longer than 8388608 bytes", answers[1]["error"]["message"])

    def test_lines_of_a_file(self):
        path = self.write("items.jsonl", lines({"text": "a"}, {"text": "b"}))
        self.assertEqual([a["decoded"] for a in self.answers("tokenize", "-m", BUNDLED, "-f", path)], ["a", "b"])
        self.assertIn("nowhere.jsonl", self.fail_with(1, "tokenize", "-m", BUNDLED, "--jsonl", "-f", "nowhere.jsonl"))

    def test_progress_is_for_terminals(self):
        path = self.write("items.jsonl", lines(*[{"text": "a night"}] * 4000))
        code, output, shown = run_on_terminal("score", "-m", BUNDLED, "--jsonl", "-f", path)
        self.assertEqual(code, 0)
        self.assertEqual(len(output.splitlines()), 4000)
        self.assertIn(" items/s ", shown)
        self.assertIn(" left", shown)

    def test_text_mode_goes_on_after_a_failure(self):
        done = run("generate", "-m", BUNDLED, "-q", "-p", "", "-p", "The sea", "-n", "2", "--ignore-eos")
        self.assertEqual(done.returncode, 1)
        self.assertIn("paceline: prompt 1: prompt: empty", done.stderr)
        self.assertNotEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
