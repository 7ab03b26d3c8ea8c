"""`paceline tokenize`, `detokenize`, `score` and `classify` with the bundled model."""
import json
import math
import shutil
import unittest

from program import BUNDLED, ProgramTest, lines

TEXT = "It was a dark and stormy night; — naïve café, 日本 😀\n\tend<|im_end|>"


class TokenizeTest(ProgramTest):
    def tokenize(self, *items, options=()):
        return self.answers("tokenize", "-m", BUNDLED, *options, stdin=lines(*items))

    def test_round_trip(self):
        answer, = self.tokenize({"text": TEXT})
        self.assertEqual(list(answer), ["ids", "decoded"])
        self.assertEqual(answer["decoded"], TEXT)
        back, = self.answers("detokenize", "-m", BUNDLED, stdin=lines({"ids": answer["ids"]}))
        self.assertEqual(back, {"text": TEXT})

    def test_text_mode_pipes_into_detokenize(self):
        done = self.succeed("tokenize", "-m", BUNDLED, "-p", TEXT, "-p", "two")
        first, second = done.stdout.splitlines()
        answer, = self.tokenize({"text": TEXT})
        self.assertEqual([int(i) for i in first.split()], answer["ids"])
        self.assertEqual(self.succeed("detokenize", "-m", BUNDLED, stdin=first + "\n").stdout, TEXT + "\n")
        self.assertEqual(self.succeed("detokenize", "-m", BUNDLED, "--ids", second.replace(" ", ",")).stdout, "two\n")

    def test_special_tokens_as_text(self):
        as_special, = self.tokenize({"text": "<|im_end|>"})
        as_text, = self.tokenize({"text": "<|im_end|>"}, options=["--specials-as-text"])
        self.assertEqual(as_special["ids"], [4098])
        self.assertGreater(len(as_text["ids"]), 1)
        self.assertEqual(as_text["decoded"], "<|im_end|>")

    def test_only_tokenizer_files_are_needed(self):
        folder = self.directory / "tokenizer"
        folder.mkdir()
        shutil.copy(BUNDLED / "tokenizer.json", folder)
        self.assertEqual(len(self.succeed("tokenize", "-m", folder, "-p", "a").stdout.split()), 1)

    def test_errors(self):
        answer, = self.answers("detokenize", "-m", BUNDLED, stdin=lines({"ids": [99999]}), code=1)
        self.assertIn("99999", answer["error"]["message"])
        answer, = self.answers("detokenize", "-m", BUNDLED, stdin=lines({"text": "x"}), code=1)
        self.assertIn("unknown field text", answer["error"]["message"])
        answer, = self.answers("tokenize", "-m", BUNDLED, stdin=lines({}), code=1)
        self.assertIn("text: missing", answer["error"]["message"])
        self.assertIn('ids: found "two"', self.fail_with(1, "detokenize", "-m", BUNDLED, stdin="1 two"))
        self.assertIn("tokenizer.json", self.fail_with(1, "tokenize", "-m", self.tiny_model(), "-p", "x"))


class ScoreTest(ProgramTest):
    def test_ids_and_logprobs(self):
        answer, = self.answers("score", "-m", BUNDLED, stdin=lines({"text": "It was a dark night"}))
        self.assertEqual(list(answer), ["ids", "logprobs"])
        self.assertEqual(len(answer["ids"]), len(answer["logprobs"]))
        self.assertIsNone(answer["logprobs"][0])
        self.assertTrue(all(value < 0 for value in answer["logprobs"][1:]))
        by_ids, = self.answers("score", "-m", BUNDLED, stdin=lines({"ids": answer["ids"]}))
        self.assertEqual(by_ids, answer)

    def test_agrees_with_the_log_probabilities_of_generate(self):
        item = {"prompt": "It was", "max_tokens": 8, "temperature": 0, "logprobs": 0, "ignore_eos": True}
        drawn, = self.answers("generate", "-m", BUNDLED, stdin=lines(item))
        prompt, = self.answers("tokenize", "-m", BUNDLED, stdin=lines({"text": "It was"}))
        scored, = self.answers("score", "-m", BUNDLED, stdin=lines({"ids": prompt["ids"] + drawn["token_ids"]}))
        self.assertEqual(scored["logprobs"][len(prompt["ids"]):], [e["logprob"] for e in drawn["logprobs"]])

    def test_text_mode_shows_a_table(self):
        done = self.succeed("score", "-m", BUNDLED, "-p", "It was a dark night")
        rows = done.stdout.splitlines()
        self.assertIn('"It"', rows[0])
        self.assertIn("perplexity", rows[-1])


class ClassifyTest(ProgramTest):
    PROMPT = "It was a dark and stormy"

    def classify(self, *options, **item):
        answer, = self.answers("classify", "-m", BUNDLED, *options, stdin=lines({"text": self.PROMPT, **item}))
        return answer

    def test_draws_the_next_token(self):
        answer = self.classify("--temp", "0")
        self.assertEqual(list(answer), ["token_id", "token", "label", "scores"])
        self.assertIsNone(answer["label"])
        self.assertIsNone(answer["scores"])
        drawn, = self.answers("generate", "-m", BUNDLED,
                              stdin=lines({"prompt": self.PROMPT, "max_tokens": 1, "temperature": 0}))
        self.assertEqual(answer["token_id"], drawn["token_ids"][0])
        self.assertEqual(answer["token"], drawn["text"])

    def test_labels_are_scored(self):
        labels = [" night", " table", " unlikely conclusion"]
        for chosen in (labels[:2], labels):
            answer = self.classify(labels=chosen)
            self.assertEqual(answer["label"], " night")
            self.assertIsNone(answer["token_id"])
            self.assertEqual(len(answer["scores"]), len(chosen))
            self.assertAlmostEqual(sum(answer["scores"]), 1, places=5)
            self.assertEqual(max(answer["scores"]), answer["scores"][0])

    def test_one_token_scores_are_the_softmax_of_their_logits(self):
        labels = [" a", " the", " and"]
        ids = [int(self.succeed("tokenize", "-m", BUNDLED, "-p", label).stdout) for label in labels]
        answer = self.classify("--with-logits", labels=labels)
        self.assertEqual(len(answer["logits"]), 4099)
        logits = [answer["logits"][i] for i in ids]
        total = sum(math.exp(x) for x in logits)
        for score, logit in zip(answer["scores"], logits):
            self.assertAlmostEqual(score, math.exp(logit) / total, places=5)

    def test_a_token_comes_with_labels_when_asked_for(self):
        self.assertIsNotNone(self.classify("--with-token-id", labels=["a"])["token_id"])

    def test_text_mode_puts_the_likeliest_first(self):
        done = self.succeed("classify", "-m", BUNDLED, "-p", self.PROMPT, "--label", " table", "--label", " night")
        self.assertTrue(done.stdout.splitlines()[0].endswith(" night"))
        self.assertEqual(json.loads(self.succeed("classify", "-m", BUNDLED, "-p", self.PROMPT, "--temp", "0").stdout),
                         self.classify("--temp", "0")["token"])

    def test_a_label_is_the_next_word(self):
        """Its tokens are those of encoding the whole text."""
        for prompt, label, text in [("The night was", "dark", " dark"), ("The night was", " dark", " dark"),
                                    ("It was a dark and stormy", "night", " night"), ("He said:", "no", " no"),
                                    ("(", "no", "no"), ("It was", ".", ".")]:
            others = [" xyzzy", " plugh"]
            scores = [self.classify(text=prompt, labels=[one, *others])["scores"] for one in (label, text)]
            self.assertEqual(*scores, (prompt, label))
        # Directly after a word the label would continue it.
        done = self.succeed("classify", "-m", BUNDLED, "-p", "What a lovely morning", "--label", "good", "--label", "bad")
        spaced = self.succeed("classify", "-m", BUNDLED, "-p", "What a lovely morning", "--label", " good", "--label", " bad")
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()],
                         [line.split()[0] for line in spaced.stdout.splitlines()])

    def test_labels_that_can_not_be_told_apart_are_refused(self):
        for labels, expected in [(["a", "b", "a"], "labels[2]: the same tokens as labels[0]"),
                                 (["good", " good"], "labels[1]: the same tokens as labels[0]"),
                                 ([], "labels: an empty array")]:
            answer, = self.answers("classify", "-m", BUNDLED, stdin=lines({"text": "It was", "labels": labels}), code=1)
            self.assertIn(expected, answer["error"]["message"])
        self.assertIn("repeat the option for each", self.fail_with(2, "classify", "-m", BUNDLED, "-p", "x", "--labels", "a,b"))
        # A comma may be part of a label.
        self.succeed("classify", "-m", BUNDLED, "-p", "It was", "--label", "a, b", "--label", "c")

    def test_labels_may_stand_in_the_environment_and_the_file(self):
        config = self.write("c.toml", 'model = "%s"\n[classify]\nlabel = ["good", "bad"]\n' % BUNDLED)
        expected = self.succeed("classify", "-m", BUNDLED, "-p", "It was", "--label", "good", "--label", "bad").stdout
        self.assertEqual(self.succeed("classify", "--config", config, "-p", "It was").stdout, expected)
        self.assertEqual(self.succeed("classify", "-m", BUNDLED, "-p", "It was",
                                      env={"PACELINE_LABEL": '["good", "bad"]'}).stdout, expected)

    def test_errors(self):
        for item, expected in [({"text": "x", "labels": [""]}, "labels[0]: empty"),
                               ({"text": "x", "labels": "a", "top_k": 5}, "unknown field top_k"),
                               ({"labels": ["a"]}, "text: missing"),
                               ({"text": ""}, "text: empty")]:
            answer, = self.answers("classify", "-m", BUNDLED, stdin=lines(item), code=1)
            self.assertIn(expected, answer["error"]["message"])


if __name__ == "__main__":
    unittest.main()
