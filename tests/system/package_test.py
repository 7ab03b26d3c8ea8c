"""`make deb`'s package installs into an empty system's root, runs from there, and leaves nothing behind when it is removed."""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BINARY = Path(os.environ["PACELINE_BINARY"])


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise AssertionError(f"{command} failed\n{done.stdout}\n{done.stderr}")
    return done.stdout


@unittest.skipUnless(shutil.which("dpkg-deb") and shutil.which("dpkg-shlibdeps"), "needs dpkg-dev")
class PackageTest(unittest.TestCase):
    def setUp(self):
        self.top = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)

    def dpkg(self, *arguments):
        return run("dpkg", f"--root={self.root}", "--force-depends", "--force-not-root", "--force-script-chrootless", *arguments)

    def test_it_installs_runs_and_goes(self):
        run("cpack", "--config", BINARY.parent / "CPackConfig.cmake", "-B", self.top / "out")
        package, = (self.top / "out").glob("*.deb")
        self.assertRegex(package.name, r"^paceline_[\d.]+_\w+\.deb$")
        depends = run("dpkg-deb", "--field", package, "Depends")
        for library in ("libc6", "libstdc++6", "libssl3"):
            self.assertIn(library, depends)
        self.root = self.top / "root"
        for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "var/lib/dpkg/status").touch()
        self.dpkg("--install", package)
        self.assertEqual(run(self.root / "usr/bin/paceline", "--version"), run(BINARY, "--version"))
        self.assertTrue((self.root / "usr/include/paceline/paceline.h").is_file())
        self.assertTrue(list(self.root.glob("usr/lib/**/libpaceline.so")))
        self.dpkg("--purge", "paceline")
        left = [path for path in self.root.rglob("*") if path.is_file() and "var/lib/dpkg" not in str(path)]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
