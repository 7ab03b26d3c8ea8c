"""time_budget.py: sums by module and by test, and when it fails."""
import contextlib
import io
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import time_budget  # noqa: E402

LOG = """# ninja log v5
0\t1000\t7\tCMakeFiles/paceline_kv.dir/Unity/unity_0_cxx.cxx.o\ta
0\t9000\t7\tCMakeFiles/paceline_kernels_avx2.dir/src/kernels/cpu/isa_matmul.cc.o\tb
9000\t11000\t8\tCMakeFiles/paceline_kernels_avx2.dir/src/kernels/cpu/isa_matmul.cc.o\tb
0\t3000\t7\tCMakeFiles/paceline_kernels_amx.dir/src/kernels/cpu/isa_matmul.cc.o\tc
0\t4000\t7\ttests/CMakeFiles/test_state.dir/Unity/unity_0_cxx.cxx.o\td
0\t500\t7\ttests/test_state\te
0\t250\t7\tpaceline\tf
0\t60000\t7\tgenerated/version.h\tg
"""
TESTS = """<?xml version="1.0"?>
<testsuite tests="2" time="30"><testcase name="unit.state" time="1.5" status="run"/>
<testcase name="system.serve" time="30" status="run"/></testsuite>"""


class TimeBudget(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.directory = Path(held.name)
        (self.directory / ".ninja_log").write_text(LOG)
        (self.directory / "tests.xml").write_text(TESTS)

    def run_tool(self, *options):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = time_budget.main([*options, str(self.directory)])
        return code, out.getvalue(), err.getvalue()

    def test_the_newest_build_of_each_output_is_added_up_by_module(self):
        self.assertEqual(time_budget.build_seconds(self.directory),
                         {"kv": 1.0, "kernels": 5.0, "test_state": 4.5, "link": 0.25})

    def test_every_test_has_its_seconds(self):
        self.assertEqual(time_budget.test_seconds(self.directory), ({"unit.state": 1.5, "system.serve": 30.0}, 30.0))

    def test_a_directory_that_was_never_built_has_none(self):
        self.assertEqual(time_budget.build_seconds(self.directory / "none"), {})
        self.assertEqual(time_budget.test_seconds(self.directory / "none"), ({}, 0.0))

    def test_it_prints_the_slowest_first_and_the_total(self):
        code, out, err = self.run_tool("--rows", "1")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("30.0 s  system.serve\n      1.5 s  1 others", out)
        self.assertIn("Together 0.6 minutes; the budget is 20 minutes.", out)

    def test_the_whole_is_what_the_clock_says_where_its_beginning_is_known(self):
        self.assertIn("Together 6.0 minutes;", self.run_tool("--began", str(time.time() - 360))[1])

    def test_only_the_limit_fails(self):
        self.assertEqual(self.run_tool("--budget-minutes", "0.1")[0], 0)
        code, _, err = self.run_tool("--limit-minutes", "0.3")
        self.assertEqual(code, 1)
        self.assertIn("over the limit of 0.3", err)


if __name__ == "__main__":
    unittest.main()
