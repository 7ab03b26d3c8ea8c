"""`cmake --install` gives a working binary, and a package that an outside project finds, links and runs."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BINARY = Path(os.environ["PACELINE_BINARY"])
ROOT = Path(__file__).resolve().parents[2]
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES CXX)
find_package(Paceline 0.1 REQUIRED)
add_executable(outside main.cc)
target_link_libraries(outside PRIVATE Paceline::paceline)
"""


def run(*command, **options):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PACELINE_")}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, env=environment,
                          **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} failed\n{done.stdout}\n{done.stderr}")
    return done.stdout


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.top)
        cls.prefix = cls.top / "prefix"
        run("cmake", "--install", BINARY.parent, "--prefix", cls.prefix)

    def test_everything_is_there(self):
        share = self.prefix / "share"
        for path in [share / "man/man1/paceline.1", share / "bash-completion/completions/paceline",
                     share / "zsh/site-functions/_paceline", share / "fish/vendor_completions.d/paceline.fish",
                     share / "paceline/models/README.md", self.prefix / "include/paceline/error.h"]:
            self.assertTrue(path.is_file(), path)
        self.assertIn(".SH COMMANDS", (share / "man/man1/paceline.1").read_text())

    def test_installed_binary_runs(self):
        self.assertEqual(run(self.prefix / "bin/paceline", "--version", cwd=self.top),
                         run(BINARY, "--version", cwd=self.top))

    def test_completions_are_valid_bash(self):
        run("bash", "-n", self.prefix / "share/bash-completion/completions/paceline")

    def test_outside_project_finds_links_and_runs(self):
        source = self.top / "outside"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(PROJECT)
        headers = sorted(p.name for p in (self.prefix / "include/paceline").glob("*.h"))
        includes = "".join(f'#include "paceline/{h}"\n' for h in headers)
        (source / "main.cc").write_text(
            includes + "#include <cstdio>\n"
            "int main() { std::puts(paceline::error_code_name(paceline::ErrorCode::corrupt).data()); }\n")
        run("cmake", "-G", "Ninja", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", source / "build")
        self.assertEqual(run(source / "build/outside").strip(), "corrupt")

    def test_make_build_makes_all_that_is_installed(self):
        planned = run("make", "-n", "build", cwd=ROOT)
        self.assertIn("--target paceline paceline_archive paceline_docs", planned)

    def test_the_readme_compiles_without_a_warning(self):
        """The example as it stands: includes at the top, the rest is the program."""
        example = re.search(r"find_package\(Paceline\)`:\n\n((?:    .*\n|\n)+)", (ROOT / "README.md").read_text()).group(1)
        lines = [line[4:] for line in example.splitlines()]
        source = self.top / "readme.cc"
        source.write_text("\n".join([*(line for line in lines if line.startswith("#")), "int main() {",
                                     *(line for line in lines if not line.startswith("#")), "}\n"]))
        run("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{self.prefix / 'include'}", source)


if __name__ == "__main__":
    unittest.main()
