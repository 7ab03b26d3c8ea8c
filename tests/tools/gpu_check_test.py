"""gpu_check.py: a whole dry run with the emulation in the GPU's place, and what it says of programs that fail."""
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from gpu import children, peers, programs, shapes, step_times  # noqa: E402
from gpu.device_checks import read_lines  # noqa: E402
from gpu.outcome import Outcome  # noqa: E402
from gpu.table import figures_of, table  # noqa: E402

BUILD = Path(os.environ.get("PACELINE_BINARY", ROOT / "build/release/paceline")).resolve().parent
PACELINE = """#!/bin/sh
[ "$1" = --version ] && echo paceline 9
exit 0
"""
# Of the part `ops` it passes one check, fails one, and ends in the middle of a line; of `rows` it never ends.
CHECK = r"""#!/bin/sh
case "$1" in
  device) echo '{"part":"device","name":"GPU 9","capability":"9.0","multiprocessors":1,"total_bytes":1,'\
               '"driver":"13.0","kernels_for":"90a"}' ;;
  ops) echo '{"part":"ops","name":"add","passed":true}'; echo '{"part":"ops","name":"scale","passed":false}'
       printf '{"part":"ops","na'; exit 1 ;;
  arithmetic) echo boom >&2; exit 139 ;;
  kernels) echo '{"part":"kernels","name":"qkv","microseconds":20,"share_of_ceiling":0.5}' ;;
  *) sleep 100 ;;
esac
"""


# A Python whose torch measures products, fails at prompts, never ends decoding, and has no attention.
PYTHON = r"""#!/bin/sh
case "$2" in
  products) echo '{"name":"qkv","microseconds":10}' ;;
  prompts) echo '{"name":"prefill 512","tokens_per_second":7}'; echo boom >&2; exit 134 ;;
  decode) echo '{"name":"decode 1","tokens_per_second":8}'; sleep 100 ;;
  attention) echo no torch >&2; exit 1 ;;
esac
"""


def run_script(*arguments):
    done = subprocess.run([sys.executable, ROOT / "tools/gpu_check.py", *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.directory = Path(made.name)

    def write_program(self, name, text):
        path = self.directory / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    @unittest.skipUnless(os.environ.get("PACELINE_TEST_SCALE") == "full", "half a minute: make nightly runs it")
    def test_a_dry_run_passes_on_the_emulation(self):
        figures = self.directory / "all.json"
        code, output, errors = run_script("--emulated", "--build-directory", BUILD, "--json", figures)
        self.assertEqual(code, 0, output + errors)
        found = json.loads(figures.read_text())
        parts = {part["part"]: part for part in found["parts"]}
        for name, least in [("arithmetic", 10), ("ops", 25), ("rows", 10), ("states", 12), ("draws", 2), ("kernels", 2)]:
            self.assertEqual(parts[name]["status"], "passed", name)
            self.assertGreaterEqual(sum(row.get("passed", False) for row in parts[name]["rows"]), least, name)
        for name in ["sanitizer", "torch_products", "torch_attention", "torch_prompts", "torch_decode", "torch_kernels"]:
            self.assertEqual(parts[name]["status"], "skipped")
        help_text = subprocess.run([BUILD / "paceline", "generate", "--help-all"], capture_output=True, text=True).stdout
        expected = "passed" if "--device" in help_text else "skipped"
        for name in ["models", "batches", "train", "serve", "decode", "prompts", "hybrids", "quantised", "sentences", "http", "others"]:
            self.assertEqual(parts[name]["status"], expected, parts[name]["summary"])
        units = {figure["name"]: figure["unit"] for figure in found["figures"]}
        self.assertEqual(units["small attention, a prompt of 40"], "TFLOP/s")
        self.assertEqual(units["small attention, a prompt of 40, by mma.sync"], "TFLOP/s")
        if expected == "passed":
            self.assertEqual(units["http, 2 streams of 6 in, 3 out"], "tok/s")

    def test_layers_with_states_are_checked_and_measured_on_the_emulation(self):
        figures = self.directory / "all.json"
        code, output, errors = run_script("--emulated", "--build-directory", BUILD, "--parts", "device,states,hybrids",
                                          "--json", figures)
        self.assertEqual(code, 0, output + errors)
        found = json.loads(figures.read_text())
        parts = {part["part"]: part for part in found["parts"]}
        self.assertEqual(parts["states"]["status"], "passed")
        self.assertEqual(len([row for row in parts["states"]["rows"] if row.get("passed")]), 12)
        if parts["hybrids"]["status"] == "skipped":
            return  # without --device
        units = {figure["name"]: figure["unit"] for figure in found["figures"]}
        self.assertEqual(units["tiny-hybrid decode 3 behind 20"], "tok/s")
        self.assertEqual(units["tiny-hybrid decode 3 behind 20, moved"], "GB/s")
        self.assertEqual(units["tiny-hybrid prefill 20, moved"], "GB/s")

    def test_bytes_of_a_hybrid(self):
        self.assertAlmostEqual(shapes.weight_bytes("qwen3.5-0.8b") / 2, 752393024, delta=1e6)  # norms and convolutions
        self.assertEqual(shapes.state_bytes("qwen3.5-0.8b"), 18 * 2 ** 20)
        self.assertEqual(shapes.decode_bytes("qwen3.5-0.8b", 16) - shapes.weight_bytes("qwen3.5-0.8b"), 17 * 18 * 2 ** 20)

    def test_packed_programs_run_and_are_small(self):
        archive = self.directory / "packed.tar.xz"
        code, output, errors = run_script("--pack", archive, "--no-build", "--build-directory", BUILD)
        self.assertEqual(code, 0, output + errors)
        code, output, errors = run_script("--emulated", "--binaries", archive, "--parts", "device,arithmetic",
                                          "--json", self.directory / "all.json")
        self.assertEqual(code, 0, output + errors)
        self.assertIn("kernels for", output)

    def test_packed_programs_run_with_the_glibc_that_came_with_them(self):
        programs.collect(self.directory, BUILD)
        paths = {name: self.directory / name for name in programs.NAMES}
        carried = programs.Programs(paths, self.directory / "lib", has_old_glibc=True)
        self.assertEqual(carried.fault(), "")
        self.assertIn("ld-linux", str(carried.command("paceline")[0]))

    def test_a_failed_part_stops_no_other_and_fails_the_run(self):
        self.write_program("paceline", PACELINE)
        self.write_program("paceline_gpu_check", CHECK)
        figures = self.directory / "all.json"
        code, output, _ = run_script("--binaries", self.directory, "--parts", "device,arithmetic,ops,models,kernels",
                                     "--json", figures)
        self.assertEqual(code, 1)
        parts = {part["part"]: part for part in json.loads(figures.read_text())["parts"]}
        self.assertEqual({name: part["status"] for name, part in parts.items()},
                         {"device": "passed", "arithmetic": "FAILED", "ops": "FAILED", "models": "FAILED",
                          "kernels": "passed"})
        self.assertIn("exit code 139: boom", parts["arithmetic"]["summary"])
        self.assertIn("failed: scale", parts["ops"]["summary"])
        self.assertIn("this paceline has no --device", output)
        self.assertRegex(output, r"qkv +20 us +50 %")

    def test_a_failure_of_torch_leaves_its_other_figures(self):
        self.write_program("python", PYTHON)
        setting = SimpleNamespace(emulated=False, python=self.directory / "python")
        found = {part: peers.run(f"torch_{part}", setting, 2) for part in ("products", "prompts", "decode", "attention")}
        self.assertEqual({part: one.status for part, one in found.items()},
                         {"products": "passed", "prompts": "passed", "decode": "passed", "attention": "skipped"})
        self.assertEqual([(row["name"], row.get("left_out", "")) for row in found["prompts"].rows],
                         [("prefill 512", ""), ("torch prompts", "exit code 134: boom")])
        self.assertIn("ended by the time limit", found["decode"].summary)
        self.assertIn("gave no result (--python): exit code 1: no torch", found["attention"].summary)

    def test_a_missing_program_and_an_unknown_part_are_errors(self):
        code, output, _ = run_script("--binaries", self.directory, "--parts", "ops", "--json", self.directory / "all.json")
        self.assertEqual(code, 1)
        self.assertIn("is missing", output)
        code, _, errors = run_script("--parts", "opps")
        self.assertEqual(code, 2)
        self.assertIn("no part opps; there are build, machine", errors)

    def test_a_time_limit_ends_a_child_with_its_children_and_keeps_its_output(self):
        begin = time.monotonic()
        done = children.run(["sh", "-c", "echo so far; sleep 50 & sleep 50"], 1)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertIsNone(done.code)
        self.assertEqual(done.output, "so far\n")
        self.assertIn("the time limit ended it", done.fault())

    def test_lines_that_were_cut_off_are_left_out(self):
        self.assertEqual(read_lines('{"name": "a"}\nnoise\n{"name": "b'), [{"name": "a"}])

    def test_rates_come_from_steps_of_one_kind(self):
        steps = [{"type": "step", "at_us": at, "total_us": 500_000,
                  "slices": [[1 + i, 0, rows] for i, rows in enumerate(all_rows)]}
                 for at, all_rows in [(0, [30, 30]), (2_000_000, [30, 30]), (3_000_000, [30, 1]), (5_000_000, [1, 1]),
                                      (5_100_000, [1, 1]), (5_300_000, [1, 1]), (6_000_000, [1])]]
        text = "\n".join(json.dumps(record) for record in [{"type": "start"}, *steps])
        times = step_times.steps_of(text)
        self.assertAlmostEqual(step_times.decode_rate(times, 1), 1 / 0.5)
        self.assertAlmostEqual(step_times.decode_rate(times, 2), 2 / 0.2)
        self.assertIsNone(step_times.decode_rate(times, 3))
        self.assertAlmostEqual(step_times.prompt_rate(times, 30), 2 / 1.0)
        self.assertIsNone(step_times.prompt_rate(times, 30, least=3))
        self.assertIsNone(step_times.prompt_rate([], 30))

    def test_nothing_found_is_a_failure(self):
        self.assertEqual(Outcome("ops").judge().status, "FAILED")
        broken = Outcome("engine", rows=[{"name": "x", "fault": "exit code 1"}, {"name": "y", "seconds": 1}])
        self.assertEqual(broken.judge().status, "FAILED")

    def test_speeds_stand_beside_torch_and_their_bars(self):
        decode = "llama-3.2-1b decode 1 behind 64"
        outcomes = [Outcome("kernels", rows=[{"name": "qkv", "microseconds": 20.0, "flops_per_second": 3e12,
                                              "share_of_ceiling": 0.5}]),
                    Outcome("products", rows=[{"name": "copies", "passed": True, "bytes_per_second": 1e12},
                                              {"name": "qkv x 2048", "microseconds": 20.0, "flops_per_second": 3e14}]),
                    Outcome("decode", rows=[{"name": decode, "tokens_per_second": 3000.0},
                                            {"name": "late", "left_out": "no time was left"}]),
                    Outcome("torch_products", rows=[{"name": "qkv x 2048", "microseconds": 10.0, "flops_per_second": 6e14}]),
                    Outcome("torch_kernels", rows=[{"name": "qkv", "microseconds": 10.0}]),
                    Outcome("torch_decode", rows=[{"name": decode, "tokens_per_second": 1000.0, "how": "CUDA graph"}])]
        text = table(outcomes)
        self.assertRegex(text, r"qkv +20 us +50 % +10 +0.50")
        self.assertRegex(text, r"qkv x 2048 +300 TFLOP/s +600 +0.50")
        self.assertRegex(text, r"behind 64 +3,000 tok/s +1,000 +3.00 +1,200 +2.50 +torch: CUDA graph")
        self.assertRegex(text, r"late +no time was left")
        self.assertNotIn("copies", text)
        figure = next(one for one in figures_of(outcomes) if one["name"] == decode)
        self.assertEqual((figure["value"], figure["unit"], figure["bar"], figure["ratio"]), (3000, "tok/s", 1200, 3))


if __name__ == "__main__":
    unittest.main()
