"""`paceline serve` under clients that leave, crowds, wrong keys, foreign pages and signals."""
import json
import os
import re
import signal
import socket
import tempfile
import threading
import time
import unittest

from program import BUNDLED, ProgramTest
from serving import Client, Server, parse_events, until

LONG = {"prompt": "The ship had been at sea for forty days when", "max_tokens": 900, "ignore_eos": True, "seed": 1}
JSON = {"Content-Type": "application/json"}


def live(client):
    return client.get("/v1/requests").json


def metric(client, name):
    text = client.get("/metrics").body.decode()
    return float(re.search(rf"^paceline:{name}\{{[^}}]*\}} (\S+)$", text, re.M)[1])


def blocks_held(state):
    return sum(count for pool in state["pools"] for holder, count in pool["blocks"] if holder not in (0, -1))


class LimitsTest(ProgramTest):
    def start(self, *options, **more):
        server = Server("--max-choices", "128", *options, **more)
        self.addCleanup(server.stop)
        return server

    def open_stream(self, client, **fields):
        response = client.open("POST", "/v1/completions", {**LONG, "stream": True, **fields})
        self.addCleanup(response.connection.close)
        return response

    def fill_queue(self, client):
        """The connection of a request that waits after one that runs."""
        waiting = client.send("POST", "/v1/completions", {**LONG, "stream": True, "n": 15})
        self.addCleanup(waiting.close)
        self.assertTrue(until(lambda: live(client)["engine"]["num_waiting"] == 15))
        return waiting

    def test_a_client_that_leaves_ends_its_request(self):
        client = Client(self.start().port)
        for streamed in (True, False):
            with self.subTest(streamed=streamed):
                body = json.dumps({**LONG, "stream": streamed, "n": 16})
                raw = socket.create_connection(("127.0.0.1", client.port))
                raw.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                            f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
                self.assertTrue(until(lambda: live(client)["engine"]["num_running"] == 16))
                raw.close()
                self.assertTrue(until(lambda: live(client)["engine"]["num_running"] == 0))
                self.assertTrue(until(lambda: blocks_held(live(client)) == 0))
        self.assertTrue(until(lambda: metric(client, "requests_cancelled_total") == 2))
        self.assertLess(metric(client, "generation_tokens_total"), 2 * 16 * LONG["max_tokens"])

    def test_more_requests_than_may_be_in_flight(self):
        server = self.start("--max-requests", "2")
        client = Client(server.port)
        held = [self.open_stream(client, n=16) for _ in range(2)]
        answer = client.post("/v1/completions", LONG)
        self.assertEqual((answer.status, answer.error["code"], answer.error["type"]),
                         (429, "queue_full", "rate_limit_error"))
        self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
        self.assertGreaterEqual(int(answer.headers["retry-after-ms"]), 1000)
        self.assertEqual(client.get("/health").status, 200)
        for response in held:
            response.close()
            response.connection.close()
        self.assertTrue(until(lambda: client.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status == 200))

    def test_a_full_queue_refuses_all_of_a_request(self):
        server = self.start("--max-num-seqs", "16", "--max-num-queued-reqs", "16", "--max-requests", "50")
        client = Client(server.port)
        never = client.post("/v1/completions", {**LONG, "prompt": ["a"] * 40})
        self.assertEqual((never.status, never.error["param"]), (400, "prompt"), "no other try could help")
        running = self.open_stream(client, n=16)
        self.assertTrue(until(lambda: live(client)["engine"]["num_running"] == 16))
        waiting = self.fill_queue(client)
        answer = client.post("/v1/completions", {**LONG, "prompt": ["a"] * 2})
        self.assertEqual((answer.status, answer.error["code"]), (429, "queue_full"))
        running.connection.close()
        waiting.close()
        self.assertTrue(until(lambda: live(client)["data"] == []))
        self.assertEqual(client.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status, 200)

    def test_keys(self):
        server = self.start(env={"PACELINE_API_KEY": "correct-horse"})
        ask = {"prompt": "x", "max_tokens": 1}
        self.assertEqual(Client(server.port, "correct-horse").post("/v1/completions", ask).status, 200)
        for key in (None, "wrong", "correct-hors", "correct-horse2", ""):
            client = Client(server.port, key)
            for answer in (client.post("/v1/completions", ask), client.get("/v1/models"), client.get("/v1/requests"),
                           client.get("/version"), client.get("/metrics")):
                self.assertEqual((answer.status, answer.error["code"]), (401, "invalid_api_key"))
                self.assertEqual(answer.headers["WWW-Authenticate"], "Bearer")
            for path in ("/health", "/live", "/ready", "/", "/page/main.js"):
                self.assertEqual(client.get(path).status, 200)
        self.assertFalse(any("correct-horse" in line for line in server.lines))

    def test_pages_of_other_sites(self):
        server = self.start("--allowed-host", "models.example")
        client = Client(server.port)
        for host, status in [("evil.example", 403), (f"evil.example:{server.port}", 403), ("localhost.evil.example", 403),
                             ("127.0.0.1.evil.example", 403), ("models.example", 200), ("LOCALHOST", 200), ("[::1]:1", 200)]:
            self.assertEqual(client.get("/v1/models", headers={"Host": host}).status, status, host)
        # What a page can send without a preflight; curl calls its bodies forms, but says of no page.
        marks = ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                 {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"}, {"Referer": "http://evil.example/"})
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/jsonx"):
            for page in ({}, *marks):
                with self.subTest(kind=kind, page=page):
                    answer = client.post("/v1/completions", b'{"prompt": "x", "max_tokens": 1}',
                                         headers={"Content-Type": kind, **page})
                    if not page and kind in ("application/x-www-form-urlencoded", ""):
                        self.assertEqual(answer.status, 200, answer.body)
                        continue
                    self.assertEqual((answer.status, answer.error["code"]), (415, "unsupported_media_type"))
        answer = client.get("/v1/models", headers={"Origin": "http://evil.example"})
        self.assertIsNone(answer.headers["Access-Control-Allow-Origin"])
        self.assertEqual(client.ask("OPTIONS", "/v1/completions").status, 405)

    def test_pages_of_named_sites(self):
        message = self.fail_with(1, "serve", "-m", BUNDLED, "--allowed-origin", "chat.example")
        self.assertIn("--allowed-origin", message)
        ours, other = "https://chat.example", "http://localhost:3000"
        server = self.start("--allowed-origin", ours, "--allowed-origin", other, "--api-key", "k")
        client = Client(server.port)
        ask = {"Origin": ours, "Access-Control-Request-Method": "POST",
               "Access-Control-Request-Headers": "authorization,content-type"}
        answer = client.ask("OPTIONS", "/v1/chat/completions", headers=ask)
        self.assertEqual((answer.status, answer.body), (204, b""))
        self.assertEqual(answer.headers["Access-Control-Allow-Origin"], ours)
        self.assertIn("POST", answer.headers["Access-Control-Allow-Methods"])
        self.assertIn("Authorization", answer.headers["Access-Control-Allow-Headers"])
        self.assertIsNone(answer.headers["Access-Control-Allow-Credentials"])
        body = {"prompt": "x", "max_tokens": 1}
        for origin, expected in [(ours, ours), (other, other), ("https://evil.example", None)]:
            for key, status in [("k", 200), ("wrong", 401)]:
                answer = Client(server.port, key).post("/v1/completions", body, headers={"Origin": origin})
                self.assertEqual((answer.status, answer.headers["Access-Control-Allow-Origin"]), (status, expected))
                self.assertEqual(answer.headers["Vary"], "Origin")
        stream = Client(server.port, "k").open("POST", "/v1/completions", {**body, "stream": True},
                                               headers={"Origin": ours})
        self.assertEqual(stream.headers["Access-Control-Allow-Origin"], ours)
        stream.read()
        stream.connection.close()
        evil = client.ask("OPTIONS", "/v1/chat/completions", headers={**ask, "Origin": "https://evil.example"})
        self.assertEqual((evil.status, evil.headers["Access-Control-Allow-Origin"]), (405, None))
        foreign = client.ask("OPTIONS", "/v1/models", headers=ask)
        self.assertEqual(foreign.status, 204)

    def test_the_wires_limits(self):
        for options in [("--max-body-size", "100"), ("--max-header-size", "2M")]:
            self.assertIn(options[0], self.fail_with(1, "serve", "-m", BUNDLED, *options))
        server = self.start("--max-body-size", "2K", "--max-header-size", "4K", "--header-timeout", "0.5", "--body-timeout",
                            "0.75", "--keep-alive-timeout", "0.25", "--max-connections-per-address", "7")
        client = Client(server.port)
        self.assertEqual(client.post("/v1/completions", {"prompt": "x" * 1000, "max_tokens": 1}).status, 200)
        self.assertEqual(client.post("/v1/completions", {"prompt": "x" * 3000}).status, 413)
        for size, status in [(2000, 200), (2100, 431)]:
            self.assertEqual(client.get("/health", headers={"X-Long": "x" * size}).status, status)
        self.assertEqual(client.get("/health", headers={f"X-{i}": "x" * 1900 for i in range(3)}).status, 431)
        head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n"
        for begin, answer in [("GET", b"408"), (head, b"408"), (head + "\r\n{", b"408"),
                              ("GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n", b"200")]:
            with self.subTest(begin), socket.create_connection(("127.0.0.1", server.port)) as raw:
                before = time.monotonic()
                raw.sendall(begin.encode())
                self.assertIn(answer, raw.makefile("rb").read().split(b"\r\n")[0])
                self.assertLess(time.monotonic() - before, 5)
        text = client.get("/metrics").body.decode()
        for name, value in [("request_body_bytes", 2048), ("request_header_bytes", 4096), ("header_seconds", 0.5),
                            ("body_seconds", 0.75), ("keep_alive_seconds", 0.25), ("connections_per_address", 7)]:
            self.assertRegex(text, rf"(?m)^paceline:{name}_limit{{[^}}]*}} {value}$")

    def test_choices_count_in_the_queue(self):
        server = self.start("--max-num-seqs", "16", "--max-num-queued-reqs", "16", "--max-requests", "50")
        client = Client(server.port)
        self.open_stream(client, n=16)
        self.assertTrue(until(lambda: live(client)["engine"]["num_running"] == 16))
        self.fill_queue(client)
        answer = client.post("/v1/completions", {**LONG, "n": 2})
        self.assertEqual((answer.status, answer.error["code"]), (429, "queue_full"))

    def test_a_request_that_waits_too_long(self):
        client = Client(self.start("--max-num-seqs", "16", "--queue-timeout", "0.5").port)
        running = self.open_stream(client, n=16, max_tokens=900)
        self.assertTrue(until(lambda: live(client)["engine"]["num_running"] == 16))
        answer = client.post("/v1/completions", {"prompt": "x", "max_tokens": 1})
        self.assertEqual((answer.status, answer.json.get("error", {}).get("code")), (503, "queue_timeout"))
        self.assertEqual(live(client)["engine"]["num_running"], 16)  # they go on
        self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
        # Nothing of a stream was sent, so it has a status too.
        for path, body in [("/v1/completions", {"prompt": "x"}),
                           ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})]:
            answer = client.post(path, {**body, "max_tokens": 1, "stream": True})
            self.assertEqual((answer.status, answer.json.get("error", {}).get("code")), (503, "queue_timeout"))
        running.connection.close()

    def test_a_request_that_takes_too_long(self):
        client = Client(self.start("--request-timeout", "1").port)
        events, done = parse_events(self.open_stream(client, n=64).read().decode())
        self.assertFalse(done)
        self.assertEqual(events[-1]["error"]["code"], "request_timeout")
        answer = client.post("/v1/completions", {**LONG, "n": 64})
        self.assertEqual((answer.status, answer.error["code"]), (504, "request_timeout"))
        self.assertTrue(until(lambda: live(client)["data"] == []))

    def test_a_drain_lets_answers_end(self):
        server = self.start("--drain-timeout", "300")
        client = Client(server.port)
        response = self.open_stream(client, max_tokens=400)
        server.signal()
        events, done = parse_events(response.read().decode())
        self.assertTrue(done)
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "length")
        self.assertEqual(server.wait(), 0)

    def test_a_drain_that_takes_too_long(self):
        server = self.start("--drain-timeout", "0.2")
        client = Client(server.port)
        response = self.open_stream(client, n=32)
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(client.post("/v1/completions", {**LONG, "n": 32})))
        waiting.start()
        self.assertTrue(until(lambda: live(client)["engine"]["num_running"] == 64))
        server.signal()
        events, done = parse_events(response.read().decode())
        waiting.join()
        self.assertFalse(done)
        self.assertEqual(events[-1]["error"]["code"], "draining")
        self.assertEqual((answers[0].status, answers[0].error["code"]), (503, "draining"))
        self.assertEqual(server.wait(), 0)

    def test_a_drain_with_a_delay_still_takes_requests(self):
        server = self.start("--drain-delay", "1.5")
        client = Client(server.port)
        server.signal(signal.SIGINT)
        self.assertTrue(until(lambda: client.get("/ready").status == 503))
        self.assertEqual(client.get("/ready").error["code"], "draining")
        self.assertEqual(client.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status, 200)
        self.assertEqual(server.wait(), 0)

    def test_a_second_signal_ends_it_at_once(self):
        server = self.start()
        response = self.open_stream(Client(server.port), n=64)
        server.signal()
        time.sleep(0.1)
        server.signal(signal.SIGINT)
        self.assertEqual(server.wait(20), 130)
        response.close()

    def test_a_slow_reader_is_cut_off(self):
        server = self.start("--log-format", "json")
        client = Client(server.port)
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", client.port))
        self.addCleanup(raw.close)
        body = json.dumps({**LONG, "stream": True, "n": 48, "logprobs": 20})
        raw.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        self.assertTrue(until(lambda: any('"slow_reader"' in line for line in server.lines), 60))
        self.assertTrue(until(lambda: live(client)["data"] == []))
        self.assertTrue(until(lambda: blocks_held(live(client)) == 0))
        entry = next(json.loads(line) for line in server.lines if '"slow_reader"' in line)
        self.assertEqual((entry["status"], entry["request"]), (499, "POST /v1/completions"))

    def test_where_it_listens(self):
        message = self.fail_with(1, "serve", "-m", BUNDLED, "--host", "0.0.0.0", "--port", "0")
        self.assertIn("--api-key", message)
        for option in ("--tls-key", "--tls-cert"):  # not HTTP in place of HTTPS
            message = self.fail_with(1, "serve", "-m", BUNDLED, "--port", "0", option, "/dev/null")
            self.assertIn(f"found {option} alone, expected --tls-cert and --tls-key", message)
        server = self.start("--host", "0.0.0.0", "--insecure")
        self.assertEqual(Client(server.port).get("/health").status, 200)
        message = self.fail_with(1, "serve", "-m", BUNDLED, "--port", str(server.port))
        self.assertIn(str(server.port), message)
        path = self.directory / "socket"
        unix = self.start("--unix-socket", path)
        self.assertEqual(unix.url, f"unix:{path}")
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(str(path))
            raw.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            self.assertIn(b"200 OK", raw.makefile("rb").read())


class TenantsTest(unittest.TestCase):
    PROMPT = "It was a dark and stormy night; the rain fell in torrents, except at occasional intervals. " * 3

    def cached(self, key, **fields):
        answer = Client(self.server.port, key).post("/v1/completions", {"prompt": self.PROMPT, "max_tokens": 1, **fields})
        return answer.json["usage"]["prompt_tokens_details"]["cached_tokens"]

    def test_owners_of_different_keys_share_no_prefixes(self):
        self.server = Server("--api-key", "one", "--api-key", "two")
        self.addCleanup(self.server.stop)
        self.assertEqual(self.cached("one"), 0)
        self.assertGreater(self.cached("one"), 0)
        self.assertEqual(self.cached("two"), 0)
        self.assertEqual(self.cached("one", cache_salt="secret"), 0)
        self.assertGreater(self.cached("one", cache_salt="secret"), 0)
        self.assertEqual(self.cached("two", cache_salt="secret"), 0)

    def test_the_owners_of_one_key_do(self):
        self.server = Server("--api-key", "one")
        self.addCleanup(self.server.stop)
        self.assertEqual(self.cached("one"), 0)
        self.assertGreater(self.cached("one"), 0)


class BodiesTest(unittest.TestCase):
    MOST = 8 << 20  # of one body; eight of them are all that may be read at once

    def open(self, framing):
        connection = socket.create_connection(("127.0.0.1", self.server.port))
        self.addCleanup(connection.close)
        connection.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           f"{framing}\r\n\r\n".encode())
        return connection

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop)
        self.client = Client(self.server.port)

    def held(self):
        text = self.client.get("/metrics").body.decode()
        return int(next(line.split()[-1] for line in text.splitlines() if line.startswith("paceline:body_bytes{")))

    def test_bodies_that_are_being_read_are_bounded_together(self):
        for framing in [f"Content-Length: {self.MOST}", "Transfer-Encoding: chunked"]:
            with self.subTest(framing):
                held = [self.open(framing) for _ in range(8)]
                self.assertTrue(until(lambda: self.held() == 8 * self.MOST))
                refused = self.client.post("/v1/completions", {"prompt": "The"})
                self.assertEqual((refused.status, refused.error["code"]), (429, "queue_full"))
                self.assertIn("retry-after-ms", refused.headers)
                for connection in held:
                    connection.close()
                self.assertTrue(until(lambda: self.held() == 0))
                self.assertEqual(self.client.post("/v1/completions", {"prompt": "The", "max_tokens": 1}).status, 200)


class ServiceManagerTest(unittest.TestCase):
    def test_the_service_manager_hears_when_it_is_ready_well_and_at_its_end(self):
        with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            path = os.path.join(directory, "notify")
            manager.bind(path)
            manager.settimeout(20)
            server = Server(env={"NOTIFY_SOCKET": path})
            self.addCleanup(server.stop)
            self.assertEqual([manager.recv(64) for _ in range(2)], [b"READY=1", b"WATCHDOG=1"])
            server.signal()
            heard = manager.recv(64)
            while heard == b"WATCHDOG=1":
                heard = manager.recv(64)
            self.assertEqual(heard, b"STOPPING=1")
            self.assertEqual(server.wait(), 0)


if __name__ == "__main__":
    unittest.main()
