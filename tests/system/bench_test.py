"""`paceline bench`: its reports, independent of speed."""
import json
import re
import subprocess
import sys
import unittest
from xml.etree import ElementTree

from program import IS_SANITIZED, ROOT, ProgramTest

EMULATION = {"PACELINE_CUDA_EMULATION": "1"}
# 2 layers: attention 32 x (2 x 64 + 2 x 32), MLP 3 x 32 x 64; the embedding is the head, too.
BLOCK_WEIGHTS = 2 * (32 * 192 + 3 * 32 * 64)
EMBEDDING = 300 * 32
KV = 2 * 2 * 2 * 16 * 4  # bytes of a token: layers, keys and values, heads, head_dim, float32


class BenchTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.tiny = ["-m", self.tiny_model(), "--load-format", "dummy", "--repetitions", "1"]

    def bench(self, *arguments):
        return json.loads(self.succeed("bench", "--json", "--quiet", *self.tiny, *arguments).stdout)

    def test_prefill_and_decode_are_measured_against_their_limits(self):
        report = self.bench("--prompt-tokens", "64", "--output-tokens", "8")
        self.assertEqual([r["test"] for r in report["results"]], ["prefill", "decode"])
        prefill, decode = report["results"]
        self.assertEqual((prefill["tokens"], prefill["prompt_tokens"]), (64, 64))
        self.assertEqual((decode["tokens"], decode["context"], decode["output_tokens"]), (8, 1, 8))
        self.assertAlmostEqual(prefill["flops_per_second"] / prefill["tokens_per_second"], 2 * BLOCK_WEIGHTS, delta=1)
        # Rows 1 to 8 see 2 to 9 positions.
        seen = sum(range(2, 10)) / 8
        self.assertAlmostEqual(decode["bytes_per_second"] / decode["tokens_per_second"],
                               4 * (BLOCK_WEIGHTS + EMBEDDING) + seen * KV, delta=1)
        self.assertAlmostEqual(decode["kv_bytes_per_second"] / decode["tokens_per_second"], seen * KV, delta=1)
        self.assertEqual(decode["limit"], "read bandwidth")
        self.assertIn("fp32", prefill["limit"])
        for row, rate in [(prefill, "flops_per_second"), (decode, "bytes_per_second")]:
            self.assertEqual((row["model"], row["weight_format"], row["runs"]), ("tiny", "float32", 1))
            self.assertGreater(row["tokens_per_second"], 0)
            self.assertAlmostEqual(row["fraction"], row[rate] / row["roofline_" + rate], places=3)
        self.assertAlmostEqual(prefill["seconds"] * prefill["tokens_per_second"], 64, places=3)
        self.assertAlmostEqual(decode["seconds"] * decode["tokens_per_second"], 1, places=3)

    def test_a_gpu_is_measured_against_its_own_limits(self):
        arguments = ["bench", "--quiet", *self.tiny, "--device", "cuda", "--prompt-tokens", "20", "--output-tokens", "3"]
        report = json.loads(self.succeed(*arguments, "--json", env=EMULATION).stdout)
        self.assertEqual([r["test"] for r in report["results"]], ["prefill", "decode"])
        for row, limit, rate in zip(report["results"], ["mma.sync", "read bandwidth"], ["flops", "bytes"]):
            self.assertEqual((row["device"], row["limit"], row["runs"]), ("emulation", limit, 1))
            self.assertGreater(row["tokens_per_second"], 0)
            self.assertGreater(row[f"roofline_{rate}_per_second"], 0)
        self.assertEqual(report["variants"][0]["device"], "emulation")
        self.assertIn("tiny, float32, emulation:", self.succeed(*arguments, env=EMULATION).stdout)
        error = self.fail_with(2, *arguments, "--roofline", env=EMULATION)
        self.assertIn("--roofline: measures the CPU; leave it out with --device cuda", error)

    def test_every_test_has_its_own_figures(self):
        report = self.bench("--tests", "batch,mixed,classify,cached,memory", "--prompt-tokens", "40", "--sequences", "1,3",
                            "--output-tokens", "6")
        rows = [(r["test"], r["sequences"]) for r in report["results"]]
        self.assertEqual(rows, [("batch", 1), ("batch", 3), ("mixed", 1), ("mixed", 3), ("classify", 1), ("classify", 3),
                                ("cached", 1), ("memory", 128)])
        own = {"batch": ["total_tokens_per_second"], "classify": ["prompts_per_second"], "cached": ["cold_seconds"],
               "mixed": ["alone_seconds", "unloaded_step_seconds", "longest_gap_seconds"],
               "memory": ["kv_bytes_per_token"]}
        for row in report["results"]:
            for key in own[row["test"]]:
                self.assertGreater(row[key], 0, key)
            self.assertEqual("tokens_per_second" in row, row["test"] != "memory")
        if not IS_SANITIZED:  # their heaps don't say how full they are
            self.assertGreater(report["results"][-1]["bytes_per_waiting_sequence"], 0)
        self.assertEqual(report["results"][-1]["kv_bytes_per_token"], KV)

    def test_what_decode_reads_grows_with_the_context(self):
        near, far = self.bench("--tests", "decode", "--contexts", "1,100", "--output-tokens", "8")["results"]
        for row in near, far:
            read = (row["bytes_per_second"] - row["kv_bytes_per_second"]) / row["tokens_per_second"]
            self.assertAlmostEqual(read, 4 * (BLOCK_WEIGHTS + EMBEDDING), delta=1)
        more = far["kv_bytes_per_second"] / far["tokens_per_second"] - near["kv_bytes_per_second"] / near["tokens_per_second"]
        self.assertAlmostEqual(more, 99 * KV, delta=1)

    def test_speculate_replays_answers_with_errors(self):
        asked = ["--tests", "speculate", "--prompt-tokens", "10", "--output-tokens", "40", "--sequences", "1,2", "--acceptance",
                 "0,1", "--draft-lengths", "1,4"]
        report = self.bench(*asked)
        rows = report["results"]
        self.assertEqual([(r["sequences"], r["acceptance"], r["drafter"]) for r in rows],
                         [(s, a, "replay") for s in (1, 2) for a in (0, 1)])
        for row in rows:
            lengths = [(d["draft_length"], d["adaptive"]) for d in row["drafts"]]
            self.assertEqual(lengths, [(1, False), (4, False), (8, True)])
            for drafted in row["drafts"]:
                self.assertGreater(drafted["tokens_per_second"], 0)
                self.assertAlmostEqual(drafted["speedup"], drafted["tokens_per_second"] / row["tokens_per_second"], places=6)
                self.assertGreaterEqual(drafted["drafted_tokens"], drafted["accepted_tokens"])
        self.assertEqual([d["accepted_tokens"] for d in rows[0]["drafts"]], [0, 0, 0])
        self.assertEqual(rows[1]["drafts"][1]["accepted_shares"][0], 1)
        self.assertGreater(rows[1]["drafts"][1]["tokens_per_step"], 4)
        text = self.succeed("bench", *self.tiny, *asked).stdout
        self.assertRegex(text, r"speed-up with drafts +plain +k 1 +k 4 +adaptive\n +speculate 1 x 10 \+ 40 at 0 ")

    def test_speculate_measures_the_drafter_of_the_options(self):
        tiny = ["--tests", "speculate", "--prompt-tokens", "20", "--output-tokens", "40", "--sequences", "2"]
        for drafter, name in ((["--speculative-method", "ngram"], "ngram"), (["-md", self.tiny[1]], "model")):
            row, warmer = self.bench(*tiny, *drafter, "--temperatures", "0,1")["results"]
            self.assertEqual((row["drafter"], row["prompts"], row["temperature"], warmer["temperature"]), (name, "random", 0, 1))
            self.assertEqual([d["adaptive"] for d in row["drafts"]], [True])
            self.assertEqual(row["drafts"][0]["failures"], 0)
        # The model drafts for itself, so greedy drafts are right.
        fixed = self.bench(*tiny, "-md", self.tiny[1], "--draft-lengths", "3")["results"][0]["drafts"][0]
        self.assertEqual(fixed["accepted_tokens"], fixed["drafted_tokens"])
        self.assertGreater(fixed["tokens_per_step"], 3)
        text = self.succeed("bench", *self.tiny, *tiny, "-md", self.tiny[1], "--draft-lengths", "3").stdout
        self.assertRegex(text, r"k 3: \S+ tok/s, \S+ tokens a step, \d+ of \d+ drafted tokens accepted \(100%\), by position")

    def test_speculate_writes_text_with_a_model_that_has_a_tokenizer(self):
        pair = ["bench", "-m", ROOT / "models/paceline-10m", "--tests", "speculate", "--sequences", "4", "--output-tokens", "16",
                "--repetitions", "1", "--json", "--quiet"]
        for drafter, prompts in ((["--speculative-method", "ngram"], "repeating"),
                                 (["-md", ROOT / "models/paceline-draft-1m"], "stories")):
            row = json.loads(self.succeed(*pair, *drafter, "--draft-lengths", "2").stdout)["results"][0]
            self.assertEqual(row["prompts"], prompts)
            self.assertGreater(row["drafts"][0]["accepted_tokens"], 0)

    def test_formats_and_threads_are_loaded_one_after_another(self):
        model = self.tiny_model("wide", hidden_size=64, intermediate_size=128)
        report = self.bench("-m", model, "--tests", "decode", "--output-tokens", "2", "--formats", "f32,bf16,q8,q4", "--threads",
                            "1,2")
        variants = [(v["weight_format"], v["threads"]) for v in report["variants"]]
        self.assertEqual(variants, [(f, t) for f in ["float32", "bfloat16", "q8x64", "q4x64"] for t in [1, 2]])
        self.assertEqual([(r["weight_format"], r["threads"]) for r in report["results"]], variants)
        sizes = [v["decode_bytes"] for v in report["variants"]]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        for variant in report["variants"]:
            self.assertGreater(variant["load_seconds"], 0)
            self.assertIn("resident_bytes", variant)
            self.assertGreaterEqual(variant["weight_bytes"], variant["decode_bytes"])
            self.assertTrue(variant["dummy_weights"])

    def test_prompts_are_computed_every_time(self):
        trace = self.directory / "trace.jsonl"
        # In blocks of one token many prompts of this vocabulary begin alike.
        self.bench("--tests", "prefill,batch", "--prompt-tokens", "64", "--sequences", "2", "--output-tokens", "4",
                   "--repetitions", "3", "--block-size", "1", "--trace", trace)
        totals = json.loads(self.succeed("trace", trace, "--json").stdout)
        self.assertEqual(totals["cached_tokens"], 0)
        self.assertGreaterEqual(totals["computed_tokens"], 3 * 64 + 3 * 2 * 64)

    def test_what_exceeds_the_context_is_shortened_and_said(self):
        options = ["--prompt-tokens", "64,500,600", "--contexts", "1,100", "--output-tokens", "40", "--plan"]
        done = self.succeed("bench", *self.tiny, *options)
        self.assertEqual(done.stdout.split("\n")[1:-1], ["  prefill 64", "  prefill 127", "  decode 40 behind 1",
                                                         "  decode 40 behind 87"])
        self.assertIn("prefill 500 is measured as prefill 127: the context holds 128 tokens", done.stderr)
        done = self.succeed("bench", *self.tiny, "-c", "32", *options)
        self.assertIn("prefill 64 is measured as prefill 31: the context holds 32 tokens", done.stderr)
        report = self.bench("--tests", "prefill", "--prompt-tokens", "500")
        self.assertEqual(report["results"][0]["tokens"], 127)
        self.assertEqual(report["variants"][0]["notes"],
                         ["prefill 500 is measured as prefill 127: the context holds 128 tokens"])

    def test_the_table_is_for_people(self):
        text = self.succeed("bench", *self.tiny, "--tests", "prefill,decode,memory", "--prompt-tokens", "64", "--output-tokens",
                            "8", "--roofline").stdout
        for part in ["read bandwidth", "bfloat16 products", "8-bit products", "tiny, float32", "resident", "tok/s", "prefill 64",
                     "decode 8 behind 1", "FLOP/s", "B/s", "%", "a waiting sequence"]:
            self.assertIn(part, text)
        self.assertIsNone(re.search(r"\de[+-]?\d|nan|inf\b", text), text)
        self.assertNotRegex(text, r"(?m) $")

    def test_the_roofline_names_the_instructions_in_use(self):
        report = self.bench("--roofline", "--tests", "memory", "--threads", "1")
        roofline = report["roofline"]
        for key in ["read_bytes_per_second", "bf16_flops_per_second", "f32_flops_per_second", "int8_operations_per_second"]:
            self.assertGreater(roofline[key], 0)
        with_vnni = report["instruction_set"] in ("avxvnni", "avx512vnni", "avx512bf16", "amx")
        self.assertEqual(roofline["int8_instruction"] == "pmaddwd", not with_vnni)
        self.assertRegex(roofline["fastest_read"], r"^\d+-bit loads, \d streams?$")
        self.assertNotIn("roofline", self.bench("--tests", "memory"))

    def test_the_roofline_says_how_decoding_was_tuned(self):
        asked = ["bench", "--shape", "small", "--formats", "q8", "--tests", "decode", "--output-tokens", "16", "--json"]
        choices = [json.loads(self.succeed(*asked, *more).stdout)["variants"][0]["choices"] for more in (["--roofline"], [])]
        self.assertEqual(choices[1], [])
        self.assertTrue(choices[0])
        for choice in choices[0]:
            self.assertRegex(choice, r"^\S+ \d+ x \d+, 1 row: (still being measured|\d panels? at a time, prefetch \d+ bytes ahead; .*)$")

    def test_the_plots_have_every_size_and_acceptance(self):
        sizes = self.write("sizes.json", self.succeed("bench", *self.tiny, "--json", "--tests", "prefill,batch", "--prompt-tokens",
                                                      "8,64", "--sequences", "1,2", "--output-tokens", "4").stdout)
        losses = self.write("metrics.jsonl", '{"step":0,"validation_loss":4.1}\n{"step":5,"loss":3}\n{"step":9,"loss":2}\n')
        for path, texts in (sizes, ["prefill: seconds", "batch: seconds", "prompt_tokens", "sequences"]), \
                           (losses, ["losses", "steps", "training", "validation"]):
            done = subprocess.run([sys.executable, ROOT / "tools/plot.py", path], capture_output=True, text=True, check=True)
            found = [element.text for element in ElementTree.fromstring(done.stdout).iter("{http://www.w3.org/2000/svg}text")]
            for text in texts:
                self.assertIn(text, found)

    def test_wrong_options_say_what_was_expected(self):
        for options, expected in [
                (["--tests", "prefill,prefil"], '--tests: found "prefil", expected one of prefill, decode, batch'),
                (["--formats", "q5"], '--formats: found "q5", expected one of f32, f16, bf16, q8, q4'),
                (["--prompt-tokens", "128,"], '--prompt-tokens: found "", expected integers from 1 to 1000000, separated'),
                (["--sequences", "0"], '--sequences: found "0", expected integers from 1 to 1024'),
                (["--threads", "two"], '--threads: found "two", expected integers from 0 to 1024'),
                (["--shape", "llama"], '--shape: found "llama", expected one of small, llama-3.2-1b'),
                (["--trace", "x", "--threads", "1,2"], "--trace: 2 variants are to be measured, expected one")]:
            self.assertIn(expected, self.fail_with(2, "bench", "-m", self.tiny[1], "--load-format", "dummy", *options))

    def test_lists_come_from_a_config_file_and_the_environment(self):
        config = self.write("paceline.toml", 'threads = 1\n[bench]\ntests = ["prefill"]\nprompt_tokens = [8, 16]\n')
        done = self.succeed("bench", *self.tiny, "--plan", "--config", config, env={"PACELINE_FORMATS": "q8"})
        self.assertEqual(done.stdout, "tiny, q8, threads: 1\n  prefill 8\n  prefill 16\n")

    def test_the_tour_is_what_is_documented(self):
        plan = self.succeed("bench", "--plan").stdout
        documented = (ROOT / "docs/performance.md").read_text()
        self.assertIn("".join(f"    {line}\n" for line in plan.splitlines()), documented)
        as_json = json.loads(self.succeed("bench", "--plan", "--json").stdout)["plan"]
        self.assertEqual([v["model"] for v in as_json], ["paceline-10m", "small", "small", "small"])


if __name__ == "__main__":
    unittest.main()
