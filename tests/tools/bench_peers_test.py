"""bench_peers.py: its decisions, and a whole run of it with two fake programs."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
from peers import children, environment  # noqa: E402
from peers.bars import Bar, bar_of, judge, judge_memory, mixture_bar_of  # noqa: E402
from peers.best_setting import CHOICES, Remembered, choices_for, search, shorter, words  # noqa: E402
from peers.comparison import agree, correlation, rate_row  # noqa: E402
from peers.llama_bench import rate_in  # noqa: E402
from peers.paceline_side import rates_of  # noqa: E402
from peers.shapes import SHAPES, tensors_of, type_of  # noqa: E402
from peers.table import Row, figure, table  # noqa: E402

BINARY = os.environ.get("PACELINE_BINARY")

# Answers like llama_side.py: faster with flash attention off, and with one cache for all.
PEER = """#!{python}
import json, sys
request = json.load(sys.stdin)
if request["do"] == "describe":
    answer = {{"package": "1.2", "version": None, "system": "CPU : AVX2 = 1 | FMA = 0 | REPACK = 1 | "}}
elif request["do"] == "score":
    answer = {{"logprobs": [-float(i * i % 7) for i in request["ids"][1:]]}}
else:
    rate = 100 - 10 * request["settings"]["flash"] + 5 * request["settings"].get("unified", False)
    answer = {{"rates": {{"prefill": rate, "decode": rate, "total": rate, "embed": rate}},
              "peak_bytes": 200 * 2 ** 20 - 2 ** 20 * request["settings"].get("mapped", False)}}
print(json.dumps(answer))
"""
# Answers like a build of llama-bench without -rtr that is faster with flash attention.
LLAMA_BENCH = """#!{python}
import json, sys
option = lambda name: int(sys.argv[sys.argv.index(name) + 1])
if "-rtr" in sys.argv:
    sys.exit("error: invalid parameter for argument: -rtr")
rate = {rate} + 10 * ("-fa" in sys.argv)
print("main: a line before the report")
print(json.dumps([{{"n_prompt": option("-p"), "n_gen": option("-n"), "avg_ts": rate if option("-p") else rate + 1}}]))
"""
EMBEDDINGS = """#!/bin/sh
echo "200 texts of 20 tokens: 180.0 a second (180.0 to 180.0), 3600 tokens a second; 2 threads, amx"
"""
PACELINE = """#!{python}
import json, sys, time
command, option = sys.argv[1], lambda name: sys.argv[sys.argv.index(name) + 1]
if command == "--version":
    print("paceline 9")
elif command == "score":
    ids = [int(one) for one in option("--prompt-ids").split(",")]
    print(json.dumps({{"logprobs": [None] + [{slope} * (i * i % 7) for i in ids[1:]]}}))
elif command == "generate":
    time.sleep(0.1)
else:
    results = {{"prefill": {{"tokens_per_second": 150, "fraction": 0.6}},
               "decode": {{"tokens_per_second": 101, "bytes_per_second": 93, "roofline_bytes_per_second": 100}},
               "batch": {{"tokens_per_second": int(option("--sequences")) * 5, "total_tokens_per_second": 420,
                         "fraction": 0.5}} if "--sequences" in sys.argv else None}}
    print(json.dumps({{"instruction_set": "abc", "results": [{{"test": test, **results[test]}}
                                                           for test in option("--tests").split(",")]}}))
"""


class Bars(unittest.TestCase):
    def test_each_is_asked_of_what_it_is_for(self):
        # A file of plain weights leaves less to gain than one of quantised ones.
        self.assertLess(bar_of("prefill", "BF16").ratio, bar_of("prefill", "Q4_0").ratio)
        self.assertEqual(bar_of("prefill", "Q8_0"), bar_of("prefill", "Q4_0"))
        for wanted in ("BF16", "Q8_0", "Q4_0", "Q4_K_M"):
            # One sequence reads every weight for every token: the bandwidth is a bar too, and only there.
            self.assertGreater(bar_of("decode", wanted).ratio, 1)
            self.assertLess(bar_of("decode", wanted).share, 1)
            self.assertIsNone(bar_of("prefill", wanted).share)
            self.assertEqual(bar_of("decode", wanted, 32), Bar())
            self.assertGreater(bar_of("embed", wanted).ratio, 1)
            # The fewer bits a weight has, the more is computed for a byte that is read.
            self.assertLessEqual(bar_of("decode", wanted).share, bar_of("decode", "BF16").share)
        self.assertGreater(bar_of("total", "Q8_0", 32).ratio, bar_of("prefill", "Q8_0").ratio)
        self.assertEqual(bar_of("total", "Q4_0", 8), Bar())
        self.assertEqual([mixture_bar_of("prefill"), mixture_bar_of("decode"), mixture_bar_of("decode", 8),
                          mixture_bar_of("total", 8)], [Bar(1.3), Bar(1.1), Bar(), Bar(1.5)])

    def test_medians_count(self):
        judged = judge(Bar(1.5), [100, 300, 1], [50, 60, 1000])
        self.assertAlmostEqual(judged.ratio, 100 / 60)
        self.assertTrue(judged.passes)
        self.assertFalse(judge(Bar(1.7), [100, 300, 1], [50, 60, 1000]).passes)

    def test_the_bandwidth_is_enough(self):
        bar = Bar(1.15, 0.92)
        self.assertEqual(judge(bar, [114], [100], 0.919).text, "MISS")
        self.assertEqual(judge(bar, [114], [100], 0.92).text, "pass (bandwidth)")
        self.assertEqual(judge(bar, [115], [100], 0.1).text, "pass")
        self.assertEqual(judge(bar, [114], [100]).text, "MISS")

    def test_memory_may_be_the_same(self):
        self.assertTrue(judge_memory(100, 100).passes)
        self.assertFalse(judge_memory(101, 100).passes)


class Search(unittest.TestCase):
    def test_the_best_is_found_one_thing_after_the_other(self):
        worth = {"flash": {True: 1.0, False: 1.1}, "unified": {False: 1.0, True: 1.2}, "ubatch": {512: 1.0, 2048: 0.9},
                 "repacked": {True: 1.0, False: 0.4}, "cache": {"f16": 1.0, "bf16": 0.99}}
        tried = []

        def rate_of(settings):
            tried.append(settings)
            rate = 100.0
            for name, value in settings.items():
                rate *= worth[name][value]
            return rate
        best = search(CHOICES["batch"], rate_of)
        self.assertEqual(best, {"flash": False, "unified": True, "ubatch": 512, "repacked": True, "cache": "f16"})
        self.assertEqual(sum(not one["repacked"] for one in tried), 1, "what is hopeless is tried once")

    def test_one_slow_run_decides_nothing(self):
        rates = iter([100, 97, 10, 99])  # turns: the best so far, the other
        self.assertEqual(search({"flash": (True, False)}, lambda _: next(rates)), {"flash": True})

    def test_plain_weights_are_never_repacked(self):
        self.assertEqual(choices_for("decode", "BF16")["repacked"], (False,))
        self.assertEqual(choices_for("decode", "Q4_K_M")["repacked"], (True, False))

    def test_shorter_tests_keep_their_sequences(self):
        self.assertEqual(shorter({"kind": "batch", "sequences": 32, "prompt": 128, "output": 64}),
                         {"kind": "batch", "sequences": 32, "prompt": 64, "output": 16})
        self.assertEqual(shorter({"kind": "decode", "output": 8}), {"kind": "decode", "output": 8})
        self.assertEqual(shorter({"kind": "embed", "texts": 200, "tokens": 20}),
                         {"kind": "embed", "texts": 64, "tokens": 20})

    def test_settings_are_remembered(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "settings.json"
            Remembered(path).keep("a", {"flash": True})
            self.assertEqual(Remembered(path).get("a"), {"flash": True})
            self.assertIsNone(Remembered(path).get("b"))

    def test_words_name_the_cache(self):
        settings = {name: values[0] for name, values in CHOICES["batch"].items()}
        self.assertEqual(words(settings),
                         "flash attention on, f16 cache, a cache for each sequence, ubatch 512, weights repacked")


class Shapes(unittest.TestCase):
    def weights(self, name):
        total = 0
        for _, size in tensors_of(SHAPES[name]):
            product = 1
            for extent in size:
                product *= extent
            total += product
        return total

    def test_sizes_are_those_of_the_published_models(self):
        self.assertEqual(self.weights("llama-3.2-1b"), 1235814400 + 32)  # the file's divisors of frequencies
        self.assertEqual(self.weights("qwen3-0.6b"), 596049920)
        self.assertEqual(self.weights("qwen3.5-0.8b"), 752393024)
        self.assertEqual(self.weights("olmoe-1b-7b"), 6919161856)

    def test_mixtures(self):
        def kinds(wanted, part, shape="llama-3.2-1b"):
            return [type_of(name, size, wanted, SHAPES[shape]) for name, size in tensors_of(SHAPES[shape]) if part in name]
        wide = [layer in (0, 1, 4, 7, 10, 13, 14, 15) for layer in range(16)]
        self.assertEqual(kinds("Q4_K_M", "ffn_down"), ["Q6_K" if more else "Q4_K" for more in wide])
        self.assertEqual(kinds("Q4_K_M", "attn_v"), kinds("Q4_K_M", "ffn_down"))
        self.assertEqual(set(kinds("Q4_K_M", "ffn_up")), {"Q4_K"})
        self.assertEqual(kinds("Q4_0", "token_embd"), ["Q6_K"])
        self.assertEqual(kinds("Q8_0", "token_embd"), ["Q8_0"])
        self.assertEqual(set(kinds("Q8_0", "norm")), {"F32"})
        self.assertEqual(kinds("Q4_K_M", "ffn_down", "olmoe-1b-7b"), kinds("Q4_K_M", "ffn_down"))
        self.assertEqual([kinds("Q4_K_M", part, "olmoe-1b-7b")[0] for part in ("output.w", "token_embd", "gate_inp")],
                         ["Q6_K", "Q4_K", "F32"])


class Readings(unittest.TestCase):
    def test_rates_and_rooflines(self):
        decode = {"test": "decode", "tokens_per_second": 50.0, "fraction": 0.9, "bytes_per_second": 3.0,
                  "roofline_bytes_per_second": 6.0}
        prefill = {"test": "prefill", "tokens_per_second": 80.0, "fraction": 0.8}
        self.assertEqual(rates_of({"results": [prefill, decode]}), {"prefill": (80.0, 100.0), "decode": (50.0, 100.0)})
        batch = {"test": "batch", "tokens_per_second": 50.0, "total_tokens_per_second": 120.0, "fraction": 0.5}
        self.assertEqual(rates_of({"results": [batch]}), {"total": (120.0, None), "decode": (50.0, 100.0)})

    def test_what_is_missing_is_named(self):
        with self.assertRaisesRegex(children.Failed, 'prefill has no "fraction", only .*tokens_per_second'):
            rates_of({"results": [{"test": "prefill", "tokens_per_second": 50.0}]})
        with self.assertRaisesRegex(children.Failed, 'batch has no "total_tokens_per_second"'):
            rates_of({"results": [{"test": "batch", "tokens_per_second": 50.0}]})

    def test_shares_are_of_the_same_run(self):
        row = rate_row("f", "t", bar_of("decode", "BF16"), [((90, 100), 89), ((45, 50), 40), ((200, 210), 400)])
        self.assertEqual((row.ours, row.theirs, row.roofline), (90, 89, 100))
        self.assertEqual(row.judged.text, "MISS")  # 90 %, and 1.01 times the peer

    def test_reports_of_llama_bench(self):
        report = [{"n_prompt": 512, "n_gen": 0, "avg_ts": 300.5}, {"n_prompt": 0, "n_gen": 128, "avg_ts": 20.5}]
        self.assertEqual(rate_in("ggml: x\n" + json.dumps(report), "prefill"), 300.5)
        self.assertEqual(rate_in(json.dumps(report), "decode"), 20.5)
        for broken in ("", "[]", "{}", '[{"n_gen": 1}]'):
            with self.assertRaises(children.Failed):
                rate_in(broken, "decode")

    def test_correlation(self):
        self.assertAlmostEqual(correlation([1, 2, 3], [5, 7, 9]), 1)
        self.assertAlmostEqual(correlation([1, 2, 3], [9, 7, 5]), -1)
        self.assertEqual(correlation([1, 1], [1, 2]), 0)


class Table(unittest.TestCase):
    def test_three_digits_count(self):
        self.assertEqual([figure(x) for x in (1234.5, 99.96, 12.34, 1.234, None)],
                         ["1,234", "100", "12.3", "1.23", "-"])

    def test_columns_stand_below_each_other(self):
        rows = [Row("a Q8_0", "prefill 512, tok/s", 200, 100, 400, judge(Bar(1.8), [200], [100]), "1.80"),
                Row("a Q8_0", "memory, MiB", 3000, 2999, None, judge_memory(3000, 2999), "1.00")]
        lines = table(rows).splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1)
        self.assertEqual([cell.strip() for cell in lines[2].split("|")],
                         ["", "a Q8_0", "prefill 512, tok/s", "200", "100", "400", "50 %", "25 %", "2.00", "1.80",
                          "pass", ""])
        self.assertIn("MISS", lines[3])


class Children(unittest.TestCase):
    def test_the_peak_is_seen(self):
        program = "import time; x = bytearray(2 ** 26); print(len(x)); time.sleep(0.2)"
        done = children.run([sys.executable, "-c", program])
        self.assertEqual(done.output, "67108864\n")
        self.assertGreater(done.peak_bytes, 2 ** 26)

    def test_failures_carry_the_last_words(self):
        with self.assertRaisesRegex(children.Failed, "exited with 3:\nalas"):
            children.run([sys.executable, "-c", "import sys; sys.stderr.write('alas'); sys.exit(3)"])
        with self.assertRaisesRegex(children.Failed, "killed by signal 4"):
            children.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 4)"])


class Environment(unittest.TestCase):
    def test_amx_can_be_left_out(self):
        self.assertNotIn("amx", environment.flags(True))
        self.assertIn("'-DCMAKE_CXX_FLAGS=-mno-amx-tile", environment.flags(False))

    def test_other_folders_are_left_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            mine = Path(folder) / "mine"
            mine.touch()
            with self.assertRaisesRegex(environment.Missing, "made by somebody else"):
                environment.make(Path(folder), True)
            self.assertTrue(mine.exists())


class WholeRun(unittest.TestCase):
    """Of bench_peers.py between two scripts."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "venv" / "bin").mkdir(parents=True)
        (self.folder / "venv" / "made-of").write_text(f"{environment.PEER} {environment.flags(True)} {sys.version}")
        self.peer = self.script("venv/bin/python", PEER)
        (self.folder / "tiny-Q8_0.gguf").touch()

    def script(self, name, text, **values):
        path = self.folder / name
        path.write_text(text.format(python=sys.executable, **values))
        path.chmod(0o755)
        return path

    def run_it(self, slope, *options):
        paceline = self.script("paceline", PACELINE, slope=slope)
        (self.folder / "bench").mkdir(exist_ok=True)
        self.script("bench/paceline_bench_embeddings", EMBEDDINGS)
        command = [sys.executable, TOOLS / "bench_peers.py", "--shape", "tiny", "--format", "Q8_0", "--runs", "2",
                   "--work", self.folder, "--venv", self.folder / "venv", "--paceline", paceline, *options]
        return subprocess.run(command, capture_output=True, text=True)

    def test_one_table(self):
        done = self.run_it(-1.5, "--json", self.folder / "all.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [[cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines() if "tiny" in line]
        rows = {cells[2].split(",")[0]: cells[3:11] for cells in lines if len(cells) > 10}
        bars = [str(bar_of(test, "Q8_0", sequences)) for test, sequences in (("prefill", 1), ("decode", 1), ("total", 32))]
        self.assertEqual(rows["prefill 512"], ["150", "100", "250", "60 %", "40 %", "1.50", bars[0], "MISS"])
        self.assertEqual(rows["decode 128"],
                         ["101", "100", "109", "93 %", "92 %", "1.01", bars[1], "pass (bandwidth)"])
        self.assertEqual(rows["32 x (128 + 64) total"], ["420", "105", "-", "-", "-", "4.00", bars[2], "pass"])
        self.assertEqual(rows["32 x (128 + 64) decode"], ["160", "105", "320", "50 %", "33 %", "1.52", "-", "-"])
        self.assertEqual(rows["embed 200 texts of 20 tokens"],
                         ["180", "105", "-", "-", "-", "1.71", str(bar_of("embed", "Q8_0")), "pass"])
        self.assertEqual(rows["memory of 1 x (512 + 128)"][1], "199", "the peer's smaller peak")
        self.assertIn("paceline 9, abc; llama.cpp (llama-cpp-python 1.2), compiled here with AVX2, REPACK; ",
                      done.stdout)
        self.assertIn("flash attention off, f16 cache, one cache for all", done.stdout)
        written = json.loads((self.folder / "all.json").read_text())
        self.assertEqual([row["passes"] for row in written["rows"]][:4], [True, False, True, True])

    def test_the_faster_of_two_peers_counts(self):
        second = self.script("llama-bench", LLAMA_BENCH, rate=89.5)
        done = self.run_it(-1.5, "--llama-bench", second, "--no-batches", "--json", self.folder / "all.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        written = {row["test"]: row for row in json.loads((self.folder / "all.json").read_text())["rows"]}
        self.assertEqual(written["prefill 512, tok/s"]["llama_cpp"], 100, "the library's")
        self.assertEqual(written["prefill 512, tok/s"]["peer"], "")
        self.assertEqual(written["decode 128, tok/s"]["llama_cpp"], 100.5)
        self.assertEqual(written["decode 128, tok/s"]["peer"], "llama-bench")
        self.assertIn("pass (bandwidth), beside llama-bench", done.stdout)
        self.assertIn(f"{second} -fa 1 reaches 99.5 tok/s, the library 100.0", done.stdout)

    def test_a_second_peer_that_fails_is_told(self):
        second = self.script("llama-bench", "#!/bin/sh\necho alas >&2; exit 3\n")
        done = self.run_it(-1.5, "--llama-bench", second, "--no-batches")
        self.assertEqual(done.returncode, 1)
        self.assertIn("llama-bench measures nothing:", done.stderr)
        self.assertIn("alas", done.stderr)

    def test_models_that_differ_are_not_compared(self):
        done = self.run_it(1.5)
        self.assertEqual(done.returncode, 1)
        self.assertIn("correlate by -1.0000, expected 0.995 or more", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_agreement_of_sides(self):
        paceline = SimpleNamespace(logprobs=lambda file, ids: [-2.0 * (i * i % 7) for i in ids[1:]])
        sides = SimpleNamespace(paceline=paceline, python=self.peer, threads=1)
        self.assertAlmostEqual(agree(sides, self.folder / "tiny-Q8_0.gguf"), 1)


class Files(unittest.TestCase):
    """They need the packages gguf and numpy."""

    def setUp(self):
        try:
            import gguf  # noqa: F401
        except ImportError:
            self.skipTest("the package gguf isn't there")

    def test_each_format_is_a_model(self):
        from gguf import GGUFReader
        from gguf.quants import dequantize
        for wanted in ("F32", "BF16", "F16", "Q8_0", "Q4_0", "Q4_K_M"):
            with self.subTest(wanted), tempfile.TemporaryDirectory() as folder:
                path = children.make_file(sys.executable, "tiny", wanted, Path(folder))
                tensors = {tensor.name: tensor for tensor in GGUFReader(path).tensors}
                self.assertEqual(list(tensors), [name for name, _ in tensors_of(SHAPES["tiny"])])
                for name, size in tensors_of(SHAPES["tiny"]):
                    found = tensors[name]
                    self.assertEqual(found.tensor_type.name, type_of(name, size, wanted, SHAPES["tiny"]))
                    values = dequantize(found.data, found.tensor_type)
                    self.assertEqual(values.shape, size)
                    if len(size) == 2:
                        self.assertAlmostEqual(float(values.std()) * size[1] ** 0.5, 1, delta=0.05, msg=name)
                        self.assertLess(abs(float(values.mean())), 0.15 * size[1] ** -0.5, name)
                if BINARY:
                    done = children.run([BINARY, "score", "-m", path, "--jsonl", "--prompt-ids", "1,2,3"])
                    self.assertEqual(len(json.loads(done.output)["logprobs"]), 3)


if __name__ == "__main__":
    unittest.main()
