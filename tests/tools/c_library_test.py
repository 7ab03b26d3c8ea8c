"""libpaceline.so exports what its header declares, and a compiled caller finds it as it was."""
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import make_abi_dump  # noqa: E402

LIBRARY = Path(os.environ["PACELINE_BINARY"]).parent / "libpaceline.so"


class CLibraryTest(unittest.TestCase):
    def test_nothing_that_callers_rely_on_has_changed(self):
        done = subprocess.run([sys.executable, ROOT / "tools/make_abi_dump.py", "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_is_declared_is_read_whole(self):
        text = make_abi_dump.read_header()
        self.assertEqual(len(make_abi_dump.functions(text)), text.count("PACELINE_API "))
        self.assertEqual(make_abi_dump.structures(text)["paceline_prompt"], ["text", "text_size", "ids", "num_ids"])
        self.assertIn("progress", make_abi_dump.structures(text)["paceline_load_options"])

    @unittest.skipUnless(LIBRARY.exists(), "a sanitized build has no library")
    def test_the_library_exports_what_the_header_declares(self):
        symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
        exported = {line.split()[-1] for line in symbols.splitlines() if line.split()[1] != "A"}
        declared = {f"{name}@@PACELINE_0" for name in make_abi_dump.functions(make_abi_dump.read_header())}
        self.assertEqual(exported, declared)


if __name__ == "__main__":
    unittest.main()
