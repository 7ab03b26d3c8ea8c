"""Which changes of a kernel tools/cuda_mutants.py tries."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import cuda_mutants  # noqa: E402
from mutations import mutants_of  # noqa: E402

KERNEL = """
PL_DEVICE static void run(const Params& p, Shared& shared) {
  if (row >= p.num_rows) return;
  for (int64_t i = 0; i < p.count; ++i) {
    copy_async(shared.x + i, p.x + i);
  }
  wait_copies<1>();
  sync_threads();
  const float most = a > b ? a : b;
  const bool is_last = i == p.count;
  out[row] = shared.x[0] + most;
}
"""


class Selection(unittest.TestCase):
    def setUp(self):
        self.mutants = mutants_of("kernel.h", KERNEL)

    def afters(self, chosen):
        return [mutant.after for mutant in self.mutants if chosen(mutant)]

    def test_barriers_and_waits_are_dropped(self):
        dropped = [mutant.before for mutant in self.mutants if cuda_mutants.is_sync(mutant)]
        self.assertEqual(dropped, ["wait_copies<1>();", "sync_threads();"])

    def test_bounds_are_off_by_one_or_missing(self):
        self.assertEqual(self.afters(cuda_mutants.is_bound), [
            ";",
            "if (row > p.num_rows) return;",
            "for (int64_t i = 0; i <= p.count; ++i) {",
        ])

    def test_the_kernels_have_both(self):
        syncs, bounds = cuda_mutants.mutants_of_kernels(ROOT)
        self.assertTrue(syncs)
        self.assertGreater(len(bounds), 30)

    def test_one_text_has_them_all_and_its_lines_stay(self):
        chosen = [mutant for mutant in self.mutants if cuda_mutants.is_sync(mutant) or cuda_mutants.is_bound(mutant)]
        text = cuda_mutants.with_switches(KERNEL, list(enumerate(chosen)))
        self.assertEqual(text.splitlines()[2], "  { if (::mutants::chosen != 0) { if (row <::mutants::Relation<1, "
                         "std::greater_equal<>, std::greater<>>{}> p.num_rows) return; } }")
        self.assertIn("  { if (::mutants::chosen != 4) { sync_threads(); } }", text)
        self.assertEqual(len(text.splitlines()), len(KERNEL.splitlines()))


class Switches(unittest.TestCase):
    def test_a_process_has_the_mutant_that_its_variable_names(self):
        source = "int main(int count, char**) {\n  int sum = 0;\n  for (int i = 0; i < count; ++i) {\n    ++sum;\n  }\n" \
                 "  return sum;\n}\n"
        found = [mutant for mutant in mutants_of("a.cc", source) if mutant.operator in ("relational", "drop_statement")]
        self.assertEqual([mutant.operator for mutant in found], ["relational", "drop_statement"])
        with tempfile.TemporaryDirectory() as directory:
            program = Path(directory) / "a"
            text = cuda_mutants.SWITCH.replace("#pragma once", "") + cuda_mutants.with_switches(source, list(enumerate(found)))
            subprocess.run(["c++", "-std=c++20", "-x", "c++", "-", "-o", program], input=text, text=True, check=True)
            codes = [subprocess.run([program], env=variables, check=False).returncode
                     for variables in ({}, {cuda_mutants.CHOSEN: "0"}, {cuda_mutants.CHOSEN: "1"})]
        self.assertEqual(codes, [1, 2, 0])


if __name__ == "__main__":
    unittest.main()
