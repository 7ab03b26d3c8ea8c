"""check_isa_symbols finds inline functions outside an instruction set's namespace, in compiled objects."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "tools/check_isa_symbols.py"
SOURCE = """
inline int shared(int x) { return x + 1; }
namespace avx2 {
template <class T> T own(T x) { return x * x; }
template int own<int>(int);
int (*entry())(int) { return %s; }
}
"""


class IsaSymbolsTest(unittest.TestCase):
    def check(self, function):
        compiler = shutil.which("c++") or shutil.which("g++")
        with tempfile.TemporaryDirectory() as top:
            target = Path(top) / "x.o"
            subprocess.run([compiler, "-std=c++20", "-x", "c++", "-O2", "-c", "-", "-o", target], text=True,
                           input=SOURCE % function, check=True)
            return subprocess.run([sys.executable, CHECK, "avx2", target], capture_output=True, text=True)

    def test_own_namespace_passes(self):
        done = self.check("own<int>")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_shared_inline_function_is_named(self):
        done = self.check("shared")
        self.assertEqual(done.returncode, 1)
        self.assertIn("defines shared(int)", done.stderr)


if __name__ == "__main__":
    unittest.main()
