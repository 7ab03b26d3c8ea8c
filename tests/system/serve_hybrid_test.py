"""`paceline serve` of a model whose layers have states: sleep and the filling of gaps change no bit of an answer."""
import json
import re
import shutil
import tempfile
import unittest
from pathlib import Path

from program import BUNDLED, ROOT
from serving import Client, Server, until

SMALL = ("--load-format", "dummy", "--max-model-len", "1024", "--max-num-seqs", "4")
WORDS = "The rain came down on the old town, and nobody had an umbrella. "


def make_hybrid(directory):
    """A golden's shape with the bundled model's tokens, three of which have the names of a gap's; dummy weights."""
    config = (ROOT / "tests/goldens/hybrids/qwen3_5_text/config.json").read_text()
    config = re.sub(r'(vocab_size": )256', r"\g<1>4099", config)
    (directory / "config.json").write_text(re.sub(r'(embeddings": )256', r"\g<1>4096", config))
    tokenizer = json.loads((BUNDLED / "tokenizer.json").read_text())
    for token, name in zip(tokenizer["added_tokens"], ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]):
        token["content"] = name
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))


class HybridServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.model)
        make_hybrid(cls.model)

    def client(self, *options):
        server = Server(*SMALL, *options, model=self.model)
        self.addCleanup(server.stop)
        return Client(server.port)

    def answer(self, client, path, **body):
        found = client.post(path, body)
        self.assertEqual(found.status, 200, found.body)
        return found.json

    def complete(self, client, prompt):
        answer = self.answer(client, "/v1/completions", prompt=prompt, max_tokens=40, seed=5, logprobs=2, ignore_eos=True)
        return answer["choices"], answer["usage"].get("prompt_tokens_details", {}).get("cached_tokens", 0)

    def test_a_model_that_slept_answers_alike(self):
        client = self.client("--sleep-idle-seconds", "0.3")
        expected, _ = self.complete(client, 8 * WORDS)
        for _ in range(2):
            self.assertTrue(until(lambda: client.get("/models").json["data"][0]["status"]["value"] == "unloaded"))
            found, cached = self.complete(client, 8 * WORDS)
            self.assertEqual((found, cached), (expected, 0), "its states went with it")
        found, cached = self.complete(client, 8 * WORDS)
        self.assertEqual(found, expected)
        self.assertGreater(cached, 0)

    def test_gaps_are_filled_alike_from_states_that_were_found(self):
        cached, fresh = self.client(), self.client("--no-prefix-caching")
        gap = {"input_suffix": " stood.", "n_predict": 30, "seed": 3, "return_tokens": True, "ignore_eos": True}
        prefix = 8 * WORDS
        for number, more in enumerate(["", "", "And then", "And then it stopped. The house"]):
            body = {**gap, "input_prefix": prefix + more}
            found, expected = (self.answer(client, "/infill", **body) for client in (cached, fresh))
            self.assertEqual((found["content"], found["tokens"]), (expected["content"], expected["tokens"]))
            self.assertEqual(expected["tokens_cached"], 0)
            if number > 0:
                self.assertGreater(found["tokens_cached"], 0, "the beginning was found")


if __name__ == "__main__":
    unittest.main()
