"""Which changes of a kernel tools/cuda_mutants.py tries."""
import sys
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


if __name__ == "__main__":
    unittest.main()
