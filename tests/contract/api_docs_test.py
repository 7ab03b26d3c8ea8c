"""docs/api.md equals the output of its tool for this server."""
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))

from program import BINARY  # noqa: E402


class ApiDocsTest(unittest.TestCase):
    def test_the_page_is_what_the_tool_makes(self):
        done = subprocess.run([sys.executable, ROOT / "tools" / "make_api_docs.py", "--check", BINARY],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
