"""A `paceline serve` under test, and a client that sees each answer whole or event by event."""
import http.client
import json
import signal
import subprocess
import threading
import time
import unittest

from program import BINARY, BUNDLED, TIMEOUT, assert_no_report, environment

LISTENING = "listening on "


class Server:
    """Runs until stop(), which asserts only that no sanitizer reported anything: `wait()` returns the exit code."""

    def __init__(self, *options, model=BUNDLED, env=None):
        address = [] if "--unix-socket" in options else ["--port", "0"]
        named = [] if model is None else ["-m", model]
        self.child = subprocess.Popen(
            [BINARY, "serve", *named, *address, "--threads", "1", *map(str, options)],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(**(env or {})))
        self.lines = []
        for line in self.child.stderr:
            self.lines.append(line.rstrip("\n"))
            if LISTENING in line:
                break
        else:
            self.child.wait(TIMEOUT)
            self.child.stderr.close()
            raise RuntimeError("\n".join(self.lines))
        self.url = self.lines[-1].split(LISTENING)[1]
        self.port = int(self.url.rsplit(":", 1)[1]) if self.url.startswith("http") else None
        self.reader = threading.Thread(target=lambda: self.lines.extend(line.rstrip("\n") for line in self.child.stderr))
        self.reader.start()

    def signal(self, number=signal.SIGTERM):
        self.child.send_signal(number)

    def wait(self, seconds=60):
        return self.child.wait(seconds)

    def stop(self):
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(60)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        self.reader.join()
        self.child.stderr.close()
        assert_no_report("\n".join(self.lines))


class CpuClock:
    """The CPU time that another process has used; the id is Linux's CPUCLOCK_SCHED of a process."""

    def __init__(self, pid):
        self.id = (~pid << 3) | 2

    def now(self):
        return time.clock_gettime(self.id)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


class Client:
    """Each call is a connection of its own."""

    def __init__(self, port, key=None):
        self.port = port
        self.key = key

    def send(self, method, path, body=None, headers=None):
        """The connection of a request whose response hasn't begun: that of a stream begins with its first event."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        fields = {} if body is None else {"Content-Type": "application/json"}
        if self.key is not None:
            fields["Authorization"] = f"Bearer {self.key}"
        fields.update(headers or {})
        data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        connection.request(method, path, data, fields)
        return connection

    def open(self, method, path, body=None, headers=None):
        """The response, unread; its `connection` can be closed."""
        connection = self.send(method, path, body, headers)
        response = connection.getresponse()
        response.connection = connection
        return response

    def ask(self, method, path, body=None, headers=None):
        response = self.open(method, path, body, headers)
        with response.connection:
            return Answer(response)

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def post(self, path, body, **options):
        return self.ask("POST", path, body, **options)

    def stream(self, path, body):
        """The events of a streamed answer, parsed, and whether [DONE] was the last."""
        response = self.open("POST", path, {**body, "stream": True})
        with response.connection:
            assert response.status == 200, response.read()
            assert response.headers["Content-Type"] == "text/event-stream", response.headers
            return parse_events(response.read().decode())


# So that `with connection` closes it.
http.client.HTTPConnection.__enter__ = lambda self: self
http.client.HTTPConnection.__exit__ = lambda self, *_: self.close()


class ServerCase(unittest.TestCase):
    """All tests of a class ask one server."""
    options = ()  # of the server

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options)
        cls.addClassCleanup(cls.server.stop)
        cls.client = Client(cls.server.port)


def parse_events(text):
    events, done = [], False
    for event in text.split("\n\n"):
        if event == "" or event.startswith(":"):
            continue
        assert not done, f"an event behind [DONE]: {event}"
        if event.startswith("event: "):  # its data has the type, too
            event = event.split("\n", 1)[1]
        assert event.startswith("data: "), event
        if event == "data: [DONE]":
            done = True
        else:
            events.append(json.loads(event[6:]))
    return events, done


def until(condition, seconds=20):
    """Whether the condition came true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False
