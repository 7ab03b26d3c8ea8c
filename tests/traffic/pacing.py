"""A paced server under test, the expected tokens of its streams, and its metrics."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "system"))
from program import ROOT, assert_no_report, environment  # noqa: E402
from serving import LISTENING, Client, until  # noqa: E402

BUILD = ROOT / "build" / "release" / "traffic"
PACED_SERVER = Path(os.environ.get("PACELINE_PACED_SERVER", BUILD / "paceline_paced_server")).resolve()
LOAD_CLIENT = Path(os.environ.get("PACELINE_LOAD_CLIENT", BUILD / "paceline_load_client")).resolve()
IS_SANITIZED = os.environ.get("PACELINE_SANITIZE", "") != ""
TIMEOUT = 60

# traffic/token_script.h
FIRST_TOKEN, NUM_TOKENS = 2300, 1009


def next_token(token, position):
    return FIRST_TOKEN + ((token - FIRST_TOKEN) % NUM_TOKENS + 1 + position * 31 % (NUM_TOKENS - 1)) % NUM_TOKENS


def script(prompt, count):
    """The tokens that must follow a prompt."""
    tokens = list(prompt)
    while len(tokens) < len(prompt) + count:
        tokens.append(next_token(tokens[-1], len(tokens) - 1))
    return tokens[len(prompt):]


def prompt(length, seed=0):
    return [FIRST_TOKEN + (seed * (i * i + 1) + i) % NUM_TOKENS for i in range(length)]


ONE_A_STEP = ("--num-drafted", 0)  # for tests that count on one token a step


def scaled(usual, full):
    """How much of it: tests/test_scale.h."""
    scale = os.environ.get("PACELINE_TEST_SCALE", "")
    assert scale in ("", "full"), "PACELINE_TEST_SCALE is full, or not set"
    return full if scale == "full" else usual


def ways_at(place, ways):
    """The ways to try at a place of many: all of them, or one in turn where a sanitizer makes each slow."""
    return ways if not IS_SANITIZED or scaled(False, True) else ways[place % len(ways):][:1]


class PacedServer:
    """Runs until stop(); `wait()` returns the exit code, negative after a signal."""

    def __init__(self, *options, wait=True):
        everywhere = os.environ.get("PACELINE_PACED_OPTIONS", "").split()  # of a run of all tests
        self.child = subprocess.Popen([PACED_SERVER, "--model", ROOT / "models" / "paceline-10m", *everywhere,
                                       *map(str, options)],
                                      stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment())
        self.lines = []
        self.port = None
        self.is_over = threading.Event()
        self.is_listening = threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        if wait and not self.wait_until_listening():
            self.stop()
            raise RuntimeError("\n".join(self.lines))

    def read(self):
        for line in self.child.stderr:
            self.lines.append(line.rstrip("\n"))
            if LISTENING in line:
                self.port = int(line.rsplit(":", 1)[1]) if "http" in line else None
                self.is_listening.set()
        self.is_over.set()
        self.is_listening.set()

    def wait_until_listening(self):
        self.is_listening.wait(TIMEOUT)
        return self.is_listening.is_set() and not self.is_over.is_set()

    @property
    def client(self):
        return Client(self.port)

    def signal(self, number):
        self.child.send_signal(number)

    def wait(self, seconds=TIMEOUT):
        code = self.child.wait(seconds)
        self.reader.join()
        return code

    def stop(self):
        """The exit code of a drain; nothing when it had ended before."""
        code = None
        if self.child.poll() is None:
            self.child.terminate()
            try:
                code = self.child.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                self.child.kill()
                code = self.child.wait()
        self.reader.join()
        self.child.stderr.close()
        assert_no_report("\n".join(self.lines))
        return code

    def resident_bytes(self):
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        return 1024 * int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)[1])

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def metrics(client):
    """The samples without further labels, by name; the sums over the models."""
    sums = collections.Counter()
    text = client.get("/metrics").body.decode()
    for name, value in re.findall(r'^paceline:(\w+)\{model_name="[^"]*"\} (\S+)$', text, re.M):
        sums[name] += float(value)
    return dict(sums)


def blocks_held(client):
    pools = client.get("/v1/requests").json["pools"]
    return sum(count for pool in pools for holder, count in pool["blocks"] if holder not in (0, -1))


def open_books(client):
    """Held resources, running requests and inconsistent metrics; nothing when the server is idle and consistent."""
    found = metrics(client)
    wrong = {name: found[name] for name in ("requests_open", "num_requests_running", "num_requests_waiting",
                                            "kv_cache_usage_perc") if found[name] != 0}
    held = blocks_held(client)
    if held != 0:
        wrong["blocks held"] = held
    ended = sum(found[f"requests_{how}_total"] for how in ("completed", "cancelled", "failed"))
    if found["requests_accepted_total"] != ended:
        wrong["accepted, ended"] = (found["requests_accepted_total"], ended)
    return wrong


class LoadClient:
    """Puts a load on a server; its lines can be waited for, then its figures."""

    def __init__(self, port, *options):
        self.figures_file = tempfile.NamedTemporaryFile(suffix=".json")
        self.child = subprocess.Popen([LOAD_CLIENT, "--port", str(port), "--json", self.figures_file.name, *map(str, options)],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      env=environment())
        self.lines = []

    def wait_for(self, text):
        """Whether it printed `text` before its end."""
        for line in self.child.stdout:
            self.lines.append(line)
            if text in line:
                return True
        return False

    def finish(self):
        """The exit code and the figures."""
        self.wait_for("\0")
        code = self.child.wait()
        self.child.stdout.close()
        text = Path(self.figures_file.name).read_text()
        self.figures_file.close()
        if text == "":
            raise RuntimeError("".join(self.lines))
        return code, json.loads(text)


def run_load(port, *options):
    return LoadClient(port, *options).finish()


class PacedTest(unittest.TestCase):
    maxDiff = 2000

    def start(self, *options, **more):
        server = PacedServer(*options, **more)
        self.addCleanup(lambda: self.assertIn(server.stop(), (0, None), server.lines))
        return server

    def check_books(self, client):
        """The idle server holds nothing, and every request has ended in one way. Returns the metrics."""
        until(lambda: not open_books(client), 20)
        self.assertEqual(open_books(client), {})
        return metrics(client)
