"""A file that can't be written completely is an error, for every option that names a file."""
import os
import subprocess
import unittest

import program
from program import BINARY, BUNDLED, ProgramTest, lines

FULL = "/dev/full"
SHORT = ("-m", BUNDLED, "-q", "-p", "The old house", "-n", "4", "--temp", "0")


@unittest.skipUnless(os.path.exists(FULL), "no /dev/full")
class OutputFilesTest(ProgramTest):
    def check_full(self, name, *arguments, **options):
        done = program.run(*arguments, **options)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, rf"paceline: .*{name}.*No space left on device")

    def test_a_trace(self):
        for command in [("generate", *SHORT), ("chat", *SHORT), ("classify", *SHORT[:5]), ("score", *SHORT[:5]),
                        ("perplexity", *SHORT[:3], "-f", self.write("text.txt", "The old house"))]:
            self.check_full("--trace /dev/full", *command, "--trace", FULL)
        trace = self.directory / "steps.jsonl"
        self.succeed("generate", *SHORT, "--trace", trace)
        self.check_full(FULL, "trace", trace, "-o", FULL)

    def test_a_trace_whose_disk_fills_later(self):
        # A limit on the size of files simulates a full disk; its signal is ignored.
        script = 'trap "" XFSZ; ulimit -f 1; exec "$@"'
        prompts = lines(*({"prompt": "The old house", "max_tokens": 50, "ignore_eos": True} for _ in range(8)))
        command = [BINARY, "generate", "-m", BUNDLED, "-q", "--jsonl", "--trace", self.directory / "steps.jsonl"]
        done = subprocess.run(["bash", "-c", script, "bash", *map(str, command)], input=prompts, capture_output=True,
                              timeout=program.TIMEOUT, env=program.environment())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 8)
        self.assertRegex(done.stderr.decode(), r"^paceline: --trace .*steps.jsonl: File too large; the trace ends early\n$")

    def test_standard_output(self):
        text = self.write("text.txt", "The old house")
        for command in [("generate", *SHORT), ("tokenize", *SHORT[:5]), ("inspect", *SHORT[:2], "--json"),
                        ("perplexity", *SHORT[:3], "-f", text), ("--help",), ("--version",), ("chat", *SHORT),
                        ("bench", "-m", BUNDLED, "--plan"), ("--dump-options",)]:
            with open(FULL, "wb") as full:
                done = subprocess.run([BINARY, *map(str, command)], stdout=full, stderr=subprocess.PIPE,
                                      stdin=subprocess.DEVNULL, env=program.environment(), timeout=program.TIMEOUT)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn(b"paceline: standard output: No space left on device\n", done.stderr)

    def test_other_files(self):
        text = self.write("text.txt", "The old house")
        self.check_full(FULL, "perplexity", "-m", BUNDLED, "-q", "-f", text, "--dump-logits", FULL)
        request = {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "A", "max_tokens": 1}}
        self.check_full(FULL, "batch", "-m", BUNDLED, "-i", self.write("in.jsonl", lines(request)), "-o", FULL)


if __name__ == "__main__":
    unittest.main()
