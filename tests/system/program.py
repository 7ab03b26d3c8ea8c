"""Runs the binary under test and makes small models for it."""
import json
import os
import pty
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("PACELINE_BINARY", ROOT / "build/release/paceline")).resolve()
IS_SANITIZED = any(mark in BINARY.read_bytes() for mark in (b"__asan_init", b"__tsan_init"))
SANITIZER_REPORT = re.compile(r"(ERROR|WARNING): \w+Sanitizer|: runtime error: ")
BUNDLED = ROOT / "models" / "paceline-10m"
TIMEOUT = 600

# A decoder of some thousand random weights: with --load-format dummy this file is a whole model.
TINY = {"model_type": "qwen3", "vocab_size": 300, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 128,
        "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": True, "hidden_act": "silu",
        "eos_token_id": 299, "torch_dtype": "float32"}


def is_sanitized():
    """Whether the binary has a sanitizer, which keeps freed memory and reserves address space of its own."""
    binary = BINARY.read_bytes()
    return any(name in binary for name in (b"__asan_init", b"__tsan_init"))


def environment(**variables):
    """The environment of this process, without variables that are options."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PACELINE_") or k == "PACELINE_ISA"}
    return {**clean, **variables}


def assert_no_report(errors):
    """That no sanitizer wrote a report on standard error. Its exit code alone may look like an error of the program."""
    assert not SANITIZER_REPORT.search(errors), errors


def run(*arguments, stdin=b"", env=None, timeout=TIMEOUT, **options):
    """The finished process; stdout and stderr as text."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    done = subprocess.run([BINARY, *map(str, arguments)], input=stdin, capture_output=True, timeout=timeout,
                          env=environment(**(env or {})), **options)
    done.stdout = done.stdout.decode("utf-8", "replace")
    done.stderr = done.stderr.decode("utf-8", "replace")
    assert_no_report(done.stderr)
    return done


def run_on_terminal(*arguments):
    """Exit code, standard output and what a terminal as standard error was shown."""
    reader, writer = pty.openpty()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen([BINARY, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=output, stderr=writer,
                                 env=environment())
        os.close(writer)
        shown = b""
        try:
            while chunk := os.read(reader, 4096):
                shown += chunk
        except OSError:  # the terminal is closed
            pass
        os.close(reader)
        code = child.wait(TIMEOUT)
        output.seek(0)
        return code, output.read().decode(), shown.decode()


def lines(*items):
    """Items as the input of --jsonl; a string or bytes stands for itself."""
    out = b""
    for item in items:
        if isinstance(item, str):
            item = item.encode()
        elif not isinstance(item, bytes):
            item = json.dumps(item).encode()
        out += item + b"\n"
    return out


class ProgramTest(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)

    def succeed(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def fail_with(self, code, *arguments, **options):
        """The error message of a run that must exit with `code` and print nothing."""
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def answers(self, *arguments, code=0, **options):
        """The objects of a --jsonl run."""
        done = run(*arguments, "--jsonl", "--quiet", **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def write(self, name, content):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def tiny_model(self, name="tiny", **changes):
        """A folder that is a model with --load-format dummy, without a tokenizer."""
        self.write(f"{name}/config.json", json.dumps({**TINY, **changes}))
        return self.directory / name

    def bundled_copy(self, name="copy", without=()):
        """The bundled model as links, less some files."""
        folder = self.directory / name
        folder.mkdir()
        for file in BUNDLED.iterdir():
            if file.name not in without:
                (folder / file.name).symlink_to(file)
        return folder
