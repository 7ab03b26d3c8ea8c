"""`cmake --install` gives a working binary, and libraries that outside projects in C++, C and Go find, link and run."""
import json
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
if(EXAMPLES)
  add_executable(small_net "${EXAMPLES}/cpp/small_net.cc")
  target_compile_options(small_net PRIVATE -Wall -Wextra -Werror)
  target_link_libraries(small_net PRIVATE Paceline::paceline)
endif()
"""
MODEL = ROOT / "models" / "paceline-10m"
PROMPT = "It was a dark and stormy night"


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
        run("cmake", "-G", "Ninja", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DEXAMPLES={ROOT / 'examples'}")
        run("cmake", "--build", source / "build")
        self.assertEqual(run(source / "build/outside").strip(), "corrupt")
        self.example_in_cpp_trains_and_saves_a_net(source / "build/small_net")

    def example_in_cpp_trains_and_saves_a_net(self, program):
        files = [self.top / name for name in ("first.safetensors", "second.safetensors")]
        lines = [run(program, file).splitlines() for file in files]
        losses = [float(line.rsplit(" ", 1)[1]) for line in lines[0][:-1]]
        self.assertEqual(len(losses), 5)
        self.assertLess(losses[-1], 0.1 * losses[0])
        self.assertGreater(float(re.fullmatch(r"right: (\S+) %", lines[0][-1])[1]), 95.0)
        content = files[0].read_bytes()
        self.assertEqual(content, files[1].read_bytes())
        header = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
        self.assertEqual({name: tensor["shape"] for name, tensor in header.items() if name != "__metadata__"},
                         {"hidden.weight": [32, 2], "hidden.bias": [32], "out.weight": [3, 32], "out.bias": [3]})
        failed = subprocess.run([program, self.top / "nowhere" / "net.safetensors"], capture_output=True, text=True)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("nowhere", failed.stderr)
        self.assertLessEqual(len((ROOT / "examples/cpp/small_net.cc").read_text().splitlines()), 60)

    def flags_of_library(self):
        """What pkg-config says of the installed library; its folder is found at run time too."""
        found = {}
        for kind in ("cflags", "libs"):
            command = ["env", f"PKG_CONFIG_PATH={next(self.prefix.glob('lib*/**/pkgconfig'))}", "pkg-config", f"--{kind}", "paceline"]
            found[kind] = run(*command).strip()
        folder = re.search(r"-L(\S+)", found["libs"]).group(1)
        return found["cflags"], f"{found['libs']} -Wl,-rpath,{folder}"

    def continuation(self):
        return run(BINARY, "generate", "-m", MODEL, "-p", PROMPT, "--max-tokens", "24", "--temp", "0").strip()

    def answers_of_the_program(self, prompts):
        """Twelve tokens after each prompt of ids, as text."""
        requests, answers = self.top / "requests.jsonl", self.top / "answers.jsonl"
        body = {"model": MODEL.name, "max_tokens": 12, "temperature": 0, "ignore_eos": True}
        lines = [{"custom_id": str(i), "method": "POST", "url": "/v1/completions", "body": body | {"prompt": prompt}}
                 for i, prompt in enumerate(prompts)]
        requests.write_text("".join(json.dumps(line) + "\n" for line in lines))
        run(BINARY, "batch", "-m", MODEL, "-i", requests, "-o", answers)
        found = {line["custom_id"]: line for line in map(json.loads, answers.read_text().splitlines())}
        return [found[str(i)]["response"]["body"]["choices"][0]["text"] for i in range(len(prompts))]

    def test_the_examples_in_c_compile_and_say_what_the_program_says(self):
        cflags, libs = self.flags_of_library()
        for name in ("generate", "batching"):
            run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", ROOT / f"examples/c/{name}.c", "-o", self.top / name,
                *cflags.split(), *libs.split())
        lines = run(self.top / "generate", MODEL, PROMPT).splitlines()
        self.assertEqual("\n".join(lines[:-3]).strip(), self.continuation())
        self.assertEqual(lines[-3], "24 tokens")
        self.assertRegex(lines[-2], r"^(good|bad), 0\.\d{3} of good$")
        self.assertEqual(lines[-1], "a vector of 384 numbers")
        lines = run(self.top / "batching", MODEL).splitlines()
        self.assertEqual([run(BINARY, "detokenize", "-m", MODEL, "--prompt-ids", line.replace(" ", ",")).rstrip("\n") for line in lines],
                         [text.rstrip("\n") for text in self.answers_of_the_program([[10 + i, 20, 30 + i] for i in range(3)])])
        failed = subprocess.run([self.top / "generate", "/nowhere", PROMPT], capture_output=True, text=True)
        self.assertEqual(failed.returncode, 1)
        self.assertRegex(failed.stderr, "^load: not_found: model /nowhere")

    def built_example(self, name):
        """The program that examples/cpp/NAME.cc is, as a project outside builds it."""
        source = self.top / name
        source.mkdir()
        (source / "CMakeLists.txt").write_text(PROJECT)
        shutil.copy(ROOT / f"examples/cpp/{name}.cc", source / "main.cc")
        run("cmake", "-G", "Ninja", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
            "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
        run("cmake", "--build", source / "build")
        return source / "build/outside"

    def test_an_adapter_that_a_program_in_cpp_trains_is_served_by_the_program(self):
        trains, model = self.built_example("train_lora"), ROOT / "models/paceline-draft-1m"
        data, adapter, prompt = self.top / "data.jsonl", self.top / "adapter", "Who is it?"
        data.write_text('{"prompt": "Who is it?", "completion": " It is Ada Lovelace."}\n' * 4)
        answer = run(trains, model, data, adapter, prompt)
        self.assertIn("Ada", answer)
        self.assertEqual(run(BINARY, "generate", "-m", model, "--lora", f"mine={adapter}", "-p", prompt,
                             "--max-tokens", "16", "--temp", "0").strip(), answer.strip())
        failed = subprocess.run([trains, model, data, adapter, prompt], capture_output=True, text=True)
        self.assertEqual(failed.returncode, 1)
        self.assertRegex(failed.stderr, "invalid: .*has files already")

    @unittest.skipUnless(shutil.which("go"), "Go isn't installed")
    def test_the_example_in_go_says_what_the_program_says(self):
        cflags, libs = self.flags_of_library()
        source = self.top / "go"
        shutil.copytree(ROOT / "examples/go", source)
        run("env", f"CGO_CFLAGS={cflags}", f"CGO_LDFLAGS={libs}", f"GOCACHE={self.top / 'cache'}", "CGO_LDFLAGS_ALLOW=.*",
            "go", "build", "-o", "example", ".", cwd=source)
        self.assertEqual(run(source / "example", MODEL, PROMPT).strip(), f"{self.continuation()}\n24 tokens")

    def test_make_build_makes_all_that_is_installed(self):
        planned = run("make", "-n", "build", cwd=ROOT)
        self.assertIn("--target paceline paceline_archive paceline_shared paceline_docs", planned)

    def compile_example(self, lines, compiler, *flags):
        """An example as it stands: includes at the top, the rest is the program."""
        source = self.top / "example.txt"
        source.write_text("\n".join([*(line for line in lines if line.startswith("#")), "int main(void) {",
                                     *(line for line in lines if not line.startswith("#")), "return 0; }\n"]))
        run(*compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *flags, f"-I{self.prefix / 'include'}", source)

    def test_the_examples_of_the_docs_compile_without_a_warning(self):
        for page in ("README.md", "docs/library.md"):
            blocks = re.findall(r"\n\n((?:    .*\n|\n)+)", (ROOT / page).read_text())
            examples = [block for block in blocks if "#include <paceline/" in block]
            self.assertGreater(len(examples), 0, page)
            for block in examples:
                lines = [line[4:] for line in block.splitlines()]
                if "paceline.h>" in block:
                    self.compile_example(["#include <stdio.h>", *lines], ["cc", "-std=c11", "-x", "c"], "-Wno-unused-result")
                else:
                    self.compile_example(lines, ["c++", "-std=c++20", "-x", "c++"])


if __name__ == "__main__":
    unittest.main()
