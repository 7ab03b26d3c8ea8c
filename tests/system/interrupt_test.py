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
        self.assertEqual(child.returncode, 130)

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
        # A signal in the first milliseconds comes before its handler.
        self.assertIn(child.returncode, [128 + number for number in numbers] + [-numbers[0]], errors)
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


class LoadingTest(ProgramTest):
    """A signal while a model is loaded ends every command at once, with one line."""
    SECONDS = 1.5 if not program.IS_SANITIZED else 10
    MOMENTS = (0.15, 0.5, 1.0)

    def setUp(self):
        super().setUp()
        self.model = self.bundled_copy("large", without=("config.json", "model.safetensors"))
        config = json.loads((BUNDLED / "config.json").read_text())
        config.pop("layer_types", None)
        self.write("large/config.json", json.dumps({**config, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
                                                    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64}))
        self.text = self.write("text", "The old man sat by the sea. " * 100)
        requests = self.write("requests.jsonl", json.dumps({"custom_id": "a", "method": "POST", "url": "/v1/completions",
                                                            "body": {"prompt": "a"}}) + "\n")
        self.output = self.directory / "output"
        self.commands = {
            "generate": ["a"], "chat": ["a"], "run": [self.model, "a"], "score": ["a"], "embed": ["a"],
            "classify": ["a", "--label", "x", "--label", "y"], "perplexity": ["-f", self.text], "batch": ["-i", requests, "-o", self.output],
            "serve": ["--port", "0"], "bench": ["--tests", "prefill"],
            "train": ["--data", self.text, "-o", self.output, "--fine-tune-type", "full", "--from-scratch"]}

    def arguments(self, command):
        model = [] if command == "run" else ["-m", self.model]
        dummy = [] if command == "train" else ["--load-format", "dummy"]
        return [BINARY, command, *map(str, [*model, *dummy, *self.commands[command]])]

    def interrupt(self, command, moment, number):
        """Seconds until the end, the exit code and standard error; None when it had ended before."""
        child = subprocess.Popen(self.arguments(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=program.environment(), text=True)
        time.sleep(moment)
        had_ended = child.poll() is not None
        begin = time.monotonic()
        child.send_signal(number)
        output, errors = child.communicate(timeout=program.TIMEOUT)
        return None if had_ended else (time.monotonic() - begin, child.returncode, output, errors)

    def check(self, command, moment, number=signal.SIGINT):
        found = self.interrupt(command, moment, number)
        if found and found[0] > self.SECONDS:
            found = self.interrupt(command, moment, number)  # the machine may have been busy
        if found is None:
            return False
        seconds, code, output, errors = found
        self.assertEqual(code, 128 + number, (command, moment, errors))
        self.assertLess(seconds, self.SECONDS, (command, moment))
        self.assertTrue(errors.splitlines()[-1].startswith("paceline: interrupted"), (command, moment, errors))
        self.assertEqual(errors.count("interrupted"), 1, (command, moment, errors))
        self.assertEqual([line for line in errors.splitlines()[:-1] if not line.startswith(("note: ", "opened "))], [], command)
        if command != "bench":
            self.assertEqual(output, "", command)
        self.assertFalse(self.output.exists() and self.output.stat().st_size and self.output.is_file(), command)
        return True

    def test_every_command_ends_at_once(self):
        for command in self.commands:
            hits = [self.check(command, moment) for moment in self.MOMENTS]
            self.assertTrue(any(hits), command)

    def test_sigterm_ends_a_loading_server_at_once(self):
        socket = self.directory / "socket"
        self.commands["serve"] = ["--unix-socket", socket]
        self.assertTrue(self.check("serve", 0.5, signal.SIGTERM))
        self.assertFalse(socket.exists())

    def test_the_terminal_shows_what_is_loaded(self):
        reader, writer = pty.openpty()
        child = subprocess.Popen(self.arguments("chat"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=writer,
                                 env=program.environment())
        os.close(writer)
        shown = b""
        while b" MB/s" not in shown:
            shown += os.read(reader, 4096)
        child.send_signal(signal.SIGINT)
        child.stdout.close()
        while select.select([reader], [], [], 1)[0]:
            try:
                shown += os.read(reader, 4096)
            except OSError:
                break
        os.close(reader)
        self.assertEqual(child.wait(program.TIMEOUT), 130)
        self.assertIn(b"loading the model  ", shown)
        self.assertTrue(shown.endswith(b"\r\x1b[Kpaceline: interrupted\r\n"), shown[-200:])


if __name__ == "__main__":
    unittest.main()
