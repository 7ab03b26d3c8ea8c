"""`paceline perplexity` against the log-probabilities of `score`, window by window."""
import array
import json
import math
import unittest

from program import BUNDLED, ProgramTest, lines, run_on_terminal

TEXT = ("It was a dark and stormy night; the rain fell in torrents, except at occasional intervals, when it was "
        "checked by a violent gust of wind which swept up the streets.<|endoftext|>It is in London that our scene "
        "lies, — rattling along the housetops.\n")
CONTEXT = 16
SEPARATOR = 4096  # <|endoftext|>


class PerplexityTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.path = self.write("text.txt", TEXT)
        ids = self.succeed("tokenize", "-m", BUNDLED, "-p", TEXT).stdout.split()
        self.ids = [int(i) for i in ids]
        self.windows = [[SEPARATOR] + self.ids[i:i + CONTEXT - 1] for i in range(0, len(self.ids), CONTEXT - 1)]

    def perplexity(self, *options, **run_options):
        done = self.succeed("perplexity", "-m", BUNDLED, "-c", CONTEXT, "--json", *options, **run_options)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def test_is_defined_by_windows(self):
        self.assertIn(SEPARATOR, self.ids)  # special tokens in the text are recognised
        scored = self.answers("score", "-m", BUNDLED, stdin=lines(*[{"ids": w} for w in self.windows]))
        nats = -sum(sum(answer["logprobs"][1:]) for answer in scored)
        result = self.perplexity("-f", self.path)
        self.assertEqual(list(result), ["tokens", "perplexity", "bits_per_byte"])
        self.assertEqual(result["tokens"], len(self.ids))
        self.assertAlmostEqual(result["perplexity"], math.exp(nats / len(self.ids)), places=3)
        self.assertAlmostEqual(result["bits_per_byte"], nats / math.log(2) / len(TEXT.encode()), places=5)
        self.assertEqual(self.perplexity(stdin=TEXT), result)
        self.assertEqual(self.perplexity("-f", self.path, "-b", "5", "-t", "1"), result)

    def test_an_int8_cache_costs_little_and_no_batch_shows_in_it(self):
        plain, codes = self.perplexity("-f", self.path), self.perplexity("-f", self.path, "--kv-cache-dtype", "int8")
        self.assertNotEqual(codes["perplexity"], plain["perplexity"])
        self.assertAlmostEqual(codes["perplexity"] / plain["perplexity"], 1, delta=0.02)
        self.assertEqual(self.perplexity("-f", self.path, "--kv-cache-dtype", "int8", "-b", "5", "-t", "1"), codes)
        self.assertIn("int8", self.fail_with(2, "perplexity", "-m", BUNDLED, "--kv-cache-dtype", "int4"))

    def test_dumped_logits_are_those_that_score(self):
        dump = self.directory / "logits"
        result = self.perplexity("-f", self.path, "--dump-logits", dump, "--max-positions", "20")
        rows = array.array("f", dump.read_bytes())
        vocabulary = 4099
        self.assertEqual(len(rows), 20 * vocabulary)
        nats = 0
        for i, token in enumerate(self.ids[:20]):
            row = rows[i * vocabulary:(i + 1) * vocabulary]
            top = max(row)
            nats += math.log(sum(math.exp(x - top) for x in row)) + top - row[token]
        self.assertAlmostEqual(result["perplexity"], math.exp(nats / 20), places=3)

    def test_dumped_logits_of_a_stretched_rope_are_those_that_score(self):
        folder = self.bundled_copy(without=["config.json"])
        config = json.loads((BUNDLED / "config.json").read_text())
        config |= {"max_position_embeddings": 8, "rope_parameters": {"rope_type": "dynamic", "factor": 4.0,
                                                                     "rope_theta": 10000.0}}
        (folder / "config.json").write_text(json.dumps(config))
        measure = ("perplexity", "-m", folder, "-f", self.path, "-c", "32", "--json")
        plain = json.loads(self.succeed(*measure).stdout)
        dumped = json.loads(self.succeed(*measure, "--dump-logits", self.directory / "logits").stdout)
        self.assertEqual(dumped, plain)

    def test_text_for_people(self):
        done = self.succeed("perplexity", "-m", BUNDLED, "-f", self.path)
        self.assertRegex(done.stdout, r"^\d+ tokens, perplexity [\d.]+, [\d.]+ bits per byte\n$")

    def test_progress_is_for_terminals(self):
        long_text = self.write("long.txt", TEXT * 40)
        code, output, shown = run_on_terminal("perplexity", "-m", BUNDLED, "-c", CONTEXT, "-f", long_text)
        self.assertEqual(code, 0)
        self.assertIn("bits per byte", output)
        self.assertIn("tok/s", shown)
        self.assertIn(" left", shown)
        self.assertTrue(shown.endswith("\x1b[K"), shown[-80:])  # wiped at the end

    def test_errors(self):
        self.assertIn("nowhere.txt", self.fail_with(1, "perplexity", "-m", BUNDLED, "-f", "nowhere.txt"))
        self.assertIn("empty", self.fail_with(1, "perplexity", "-m", BUNDLED, "-f", self.write("e", "")))
        self.assertIn("expected 2 or more", self.fail_with(1, "perplexity", "-m", BUNDLED, "-f", self.path, "-c", "1"))
        self.assertIn("/nowhere/x", self.fail_with(1, "perplexity", "-m", BUNDLED, "-f", self.path, "--dump-logits",
                                                   "/nowhere/x"))


if __name__ == "__main__":
    unittest.main()
