"""--backend with transformers and mlx-lm themselves, where a Python has them: the bundled model's tokens are Paceline's own."""
import json
import unittest

import backend_model
import program
from program import BUNDLED, ProgramTest
from serving import Client, Server

PROMPTS = ["The old man went down to the", "In 1969, 3 people", "Once upon a time there was a", "water"]
MODULES = {"transformers": "torch, transformers", "mlx_lm": "mlx_lm"}


class BackendPackagesTest(ProgramTest):
    def each(self):
        """A backend and the options that choose it; those that no Python has are skipped."""
        for backend, modules in MODULES.items():
            with self.subTest(backend):
                python = backend_model.python_with(modules)
                if python is None:
                    self.skipTest(f"no Python has {modules}; name one by PACELINE_BACKENDS_PYTHON")
                yield backend, ["--backend", backend, "--python", python, "--dtype", "float32"]

    def items(self, command, items, *options):
        return self.answers(command, "-m", BUNDLED, *options, stdin=program.lines(*items))

    def test_greedy_tokens_are_those_of_paceline(self):
        prompts = [{"prompt": prompt, "max_tokens": 48, "temperature": 0} for prompt in PROMPTS]
        native = self.items("generate", prompts, "--dtype", "float32")
        for _, options in self.each():
            found = self.items("generate", prompts, *options)
            self.assertEqual([answer["token_ids"] for answer in found], [answer["token_ids"] for answer in native])
            self.assertEqual([answer["text"] for answer in found], [answer["text"] for answer in native])

    def test_log_probabilities_and_labels_are_close(self):
        scored, labelled = [{"text": PROMPTS[0]}], [{"text": PROMPTS[0], "labels": ["sea", "old harbour"]}]
        native_scores = self.items("score", scored, "--dtype", "float32")[0]["logprobs"]
        native_labels = self.items("classify", labelled, "--dtype", "float32")[0]["scores"]
        for _, options in self.each():
            for ours, theirs in zip(native_scores[1:], self.items("score", scored, *options)[0]["logprobs"][1:]):
                self.assertAlmostEqual(ours, theirs, delta=1e-3)
            for ours, theirs in zip(native_labels, self.items("classify", labelled, *options)[0]["scores"]):
                self.assertAlmostEqual(ours, theirs, delta=1e-3)

    def test_a_seed_repeats_and_options_are_obeyed(self):
        sampled = {"prompt": PROMPTS[1], "max_tokens": 16, "temperature": 0.9, "top_p": 0.9, "top_k": 50, "min_p": 0.01,
                   "repetition_penalty": 1.1, "logit_bias": {"5": -2}, "min_tokens": 4}
        for _, options in self.each():
            first, again, other = self.items("generate", [{**sampled, "seed": seed} for seed in (1, 1, 2)], *options)
            self.assertEqual(first["token_ids"], again["token_ids"])
            self.assertNotEqual(first["token_ids"], other["token_ids"])

    def test_it_is_served(self):
        for _, options in self.each():
            server = Server(*options)
            self.addCleanup(server.stop)
            client = Client(server.port)
            body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8, "temperature": 0}
            first = client.post("/v1/chat/completions", body).json
            self.assertEqual(first["usage"]["completion_tokens"], 8, json.dumps(first))
            metrics = client.get("/metrics").body.decode()
            self.assertRegex(metrics, r'backend_info\{.*backend="' + options[1])
            self.assertRegex(metrics, r"(?m)^paceline:backend_memory_bytes\S* [1-9]")
            server.stop()


if __name__ == "__main__":
    unittest.main()
