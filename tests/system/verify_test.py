"""`paceline verify` beside children that answer rightly, wrongly, or not at all."""
import json
import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

import python_child
import program
from program import BINARY, BUNDLED, ProgramTest


class VerifyTest(ProgramTest):
    def child(self, mode):
        return python_child.make(self.directory / mode.replace(" ", "-"), mode, BINARY, BUNDLED)

    def verify(self, mode, *arguments):
        python = self.child(mode)
        done = program.run("verify", "-m", BUNDLED, "-p", "The old man", "--python", python, *arguments)
        self.expect_gone(python)
        return done

    def expect_gone(self, python):
        """The child has ended, and nobody has to wait for it."""
        pid = int(Path(f"{python}.pid").read_text())
        for _ in range(100):
            if not Path(f"/proc/{pid}").exists():
                return
            time.sleep(0.05)
        self.fail(f"the child {pid} is still there")

    def test_equal_numbers_are_within_the_tolerance(self):
        done = self.verify("right")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^ +2 .* text$")
        self.assertRegex(done.stderr, r"transformers 1\.2\.3: log-probabilities at most \S+e-0[6-9] apart, which is within 0\.001")

    def test_numbers_that_are_further_apart_give_exit_code_1(self):
        done = self.verify("is wrong", "--json")
        self.assertEqual(done.returncode, 1)
        found = json.loads(done.stdout)
        self.assertAlmostEqual(found["largest"], 0.25, places=5)
        self.assertEqual((found["within"], found["texts"][0]["same_likeliest"]), (False, 0))
        self.assertEqual(self.verify("is wrong", "--tolerance", "0.3").returncode, 0)

    def test_a_child_that_fails_is_named_with_its_words(self):
        for mode, words in [("cannot load", "transformers: ValueError: model_type odd"),
                            ("lacks the package", "--python"),
                            ("dies at the start", "the child has ended (exit code 1): no such model"),
                            ("dies", "the child has ended (signal 9): the last words"),
                            ("writes garbage", "transformers"),
                            ("floods", "a line of more than 64 MiB"),
                            ("says too little", "1 log-probabilities")]:
            with self.subTest(mode):
                done = self.verify(mode)
                self.assertEqual(done.returncode, 1)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_an_interruption_ends_a_child_that_hangs(self):
        python = self.child("hangs")
        running = subprocess.Popen([BINARY, "verify", "-m", BUNDLED, "-p", "The old man", "--python", python], stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, env=program.environment(), text=True)
        while not Path(f"{python}.pid").exists() or not Path(f"{python}.pid").read_text():
            time.sleep(0.02)
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=program.TIMEOUT)
        self.assertEqual(running.returncode, 128 + signal.SIGINT, errors)
        self.expect_gone(python)

    def test_what_cannot_be_compared(self):
        done = program.run("verify", "-m", BUNDLED, "--python", os.devnull)
        self.assertEqual(done.returncode, 1)
        self.assertIn("can't be started", done.stderr)
        done = program.run("verify", "-m", BUNDLED, "--prompt-ids", "7", "--python", self.child("right"))
        self.assertIn("expected 2 or more", done.stderr)


if __name__ == "__main__":
    unittest.main()
