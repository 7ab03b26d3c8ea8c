"""Ctrl-C in every command that works for long: a partial result, one line on standard error, exit code 130."""
import json
import os
import pty
import select
import signal
import subprocess
import time
import unittest

import program
from program import BINARY, BUNDLED, ProgramTest

TEXT = "The old man sat by the sea and looked at the boats. " * 20000


class InterruptTest(ProgramTest):
    def interrupt(self, *arguments, after, seconds=1.0, number=signal.SIGINT):
        """Standard output, the last line on standard error and whatever stood before it; the signal comes `seconds`
        after a line that begins with `after` on standard error."""
        child = subprocess.Popen([BINARY, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=program.environment(), text=True)
        lines = []
        while not (lines and lines[-1].startswith(after)):
            lines.append(child.stderr.readline())
            self.assertTrue(lines[-1], lines)
        time.sleep(seconds)
        child.send_signal(number)
        output, errors = child.communicate(timeout=program.TIMEOUT)
        self.assertEqual(child.returncode, 128 + number, errors)
        self.assertEqual(errors.count("interrupted"), 1, errors)
        return output, errors.splitlines()[-1]

    def test_perplexity_prints_what_was_measured(self):
        text = self.write("book.txt", TEXT)
        options = ("perplexity", "-m", BUNDLED, "-f", text, "-c", "64", "-v")
        output, last = self.interrupt(*options, after="machine:")
        self.assertRegex(output, r"^\d+ of \d+ tokens, perplexity [\d.]+, [\d.]+ bits per byte\n$")
        self.assertEqual(last, "paceline: interrupted; the rest of the text was not measured")
        output, _ = self.interrupt(*options, "--json", after="machine:", number=signal.SIGTERM)
        found = json.loads(output)
        self.assertLess(found["tokens"], found["text_tokens"])
        # The same as of a text that ends there.
        whole = json.loads(self.succeed("perplexity", "-m", BUNDLED, "-f", text, "-c", "64", "--json", "--max-positions",
                                        found["tokens"]).stdout)
        self.assertEqual({**whole, "text_tokens": found["text_tokens"]}, found)

    def test_bench_prints_the_runs_that_were_made(self):
        reader, writer = pty.openpty()  # progress is shown on a terminal
        contexts = ",".join(map(str, range(1, 200)))
        child = subprocess.Popen([BINARY, "bench", "-m", BUNDLED, "--tests", "decode", "--contexts", contexts,
                                  "--output-tokens", "500", "--repetitions", "1", "--json"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=writer, env=program.environment(), text=True)
        os.close(writer)
        shown = b""
        while b"decode 500 behind 3" not in shown:
            shown += os.read(reader, 4096)
        child.send_signal(signal.SIGINT)
        output = child.stdout.read()
        child.stdout.close()
        while select.select([reader], [], [], 1)[0]:
            try:
                shown += os.read(reader, 4096)
            except OSError:
                break
        os.close(reader)
        self.assertEqual(child.wait(program.TIMEOUT), 130)
        self.assertIn(b"paceline: interrupted; the rest was not measured", shown)
        measured = json.loads(output)["results"]
        self.assertGreaterEqual(len(measured), 2)
        self.assertLess(len(measured), 199)

    def test_generate_says_so_once(self):
        command = [BINARY, "generate", "-m", BUNDLED, "-q", "-p", "The", "--ignore-eos", "--max-kv-size", "64", "-n", "1000000"]
        child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=program.environment())
        child.stdout.read(8)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=program.TIMEOUT)
        self.assertEqual((child.returncode, errors), (130, b"paceline: interrupted\n"))

    def test_a_second_signal_ends_the_program_at_once(self):
        text = self.write("book.txt", TEXT)
        child = subprocess.Popen([BINARY, "perplexity", "-m", str(BUNDLED), "-f", str(text), "-v"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=program.environment(), text=True)
        while not child.stderr.readline().startswith("machine:"):
            pass
        for _ in range(2):
            child.send_signal(signal.SIGINT)
            time.sleep(0.01)
        child.communicate(timeout=program.TIMEOUT)
        self.assertIn(child.returncode, (130, -signal.SIGINT))

    def quantize(self, *numbers, wait):
        """Sends the signals when wait() returns."""
        text = self.write("book.txt", TEXT)
        child = subprocess.Popen([BINARY, "quantize", "-m", str(BUNDLED), "-o", str(self.directory / "out"), "--check",
                                  str(text)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=program.environment(), text=True)
        wait()
        for number in numbers:
            child.send_signal(number)
            time.sleep(0.02)
        _, errors = child.communicate(timeout=program.TIMEOUT)
        self.assertIn(child.returncode, [128 + numbers[0], -numbers[0]], errors)
        return child.returncode, errors, sorted(path.name for path in self.directory.iterdir() if path.name != "book.txt")

    def test_quantize_leaves_a_whole_model_or_nothing(self):
        """One or two signals at any time."""
        found = set()
        for seconds in [0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.2]:
            for numbers in [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)]:
                code, errors, names = self.quantize(*numbers, wait=lambda: time.sleep(seconds))
                self.assertIn(names, [[], ["out"]], (seconds, numbers, errors))
                if len(numbers) == 1 and code > 0:  # else the signal came before its handler
                    self.assertEqual(errors.count("paceline: interrupted"), 1, (seconds, numbers, errors))
                found.add(tuple(names))
                for name in names:
                    self.assertTrue((self.directory / name / "config.json").exists())
                    subprocess.run(["rm", "-r", self.directory / name], check=True)
        # However slow the machine is, the first signals come before the model is written.
        self.assertIn((), found)
        _, _, names = self.quantize(signal.SIGINT, wait=self.until_written)
        self.assertEqual(names, ["out"])

    def until_written(self):
        deadline = time.monotonic() + program.TIMEOUT
        while not (self.directory / "out").exists() and time.monotonic() < deadline:
            time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
