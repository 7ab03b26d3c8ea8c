"""deploy/haproxy and deploy/nginx with Debian's programs, in front of two replicas."""
import http.client
import json
import re
import signal
import socket
import threading
import time
import unittest

from proxies import HaProxy, Nginx, find_program, timed_events
from serving import Client, Server, parse_events, until

PROMPT = "The ship had been at sea for forty days when"
LONG = {"prompt": PROMPT, "max_tokens": 900, "ignore_eos": True, "seed": 1, "stream": True}
SHORT = {"prompt": PROMPT, "max_tokens": 1}
MIB = 1 << 20
ATTEMPTS = 3  # another program may have the processors for a while


def metric(server, name, **labels):
    """A counter of the replica itself, 0 while it has no sample."""
    wanted = "".join(f',{key}="{value}"' for key, value in labels.items())
    text = Client(server.port).get("/metrics").body.decode()
    found = re.search(rf'^paceline:{name}\{{model_name="[^"]*"{re.escape(wanted)}\}} (\S+)$', text, re.MULTILINE)
    return float(found.group(1)) if found else 0


def num_running(server):
    return Client(server.port).get("/v1/requests").json["engine"]["num_running"]


def listens(server):
    try:
        socket.create_connection(("127.0.0.1", server.port), 1).close()
        return True
    except OSError:
        return False


def told(events):
    """The contents of a stream, independent of its pieces and ids."""
    text, ends, ids, last = "", [], [], events[-1]
    for event in events:
        for choice in event["choices"]:
            text += choice["text"]
            ids += choice["token_ids"]
            ends += [choice[key] for key in ("finish_reason", "stop_reason", "seed") if choice.get(key) is not None]
    return text, ids, ends, last["usage"]


class ProxyTests:
    """Tests for both proxies."""
    PROXY = None

    @classmethod
    def setUpClass(cls):
        if find_program(cls.PROXY.name) is None:
            raise unittest.SkipTest(f"{cls.PROXY.name} isn't installed (tools/install_deps.sh test)")

    def set_up(self, *options_of_first):
        """Two replicas, the proxy before them, and a client of the proxy."""
        patient = ("--drain-timeout", "300")
        self.replicas = [Server(*patient, *options_of_first), Server(*patient)]
        for server in self.replicas:
            self.addCleanup(server.stop)
        self.proxy = self.PROXY([server.port for server in self.replicas])
        self.addCleanup(self.proxy.stop)
        self.client = Client(self.proxy.port)
        # A proxy that polls /ready begins with both replicas up.
        self.assertTrue(until(lambda: self.client.get("/ready").status == 200))

    def ask(self, session=None, **fields):
        headers = {} if session is None else {"x-session": session}
        answer = self.client.post("/v1/completions", {**SHORT, **fields}, headers=headers)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def open_stream(self, **fields):
        response = self.client.open("POST", "/v1/completions", {**LONG, **fields})
        self.addCleanup(response.connection.close)
        self.assertEqual(response.status, 200)
        return response

    def busy_replica(self):
        """The only replica with running requests. While a step takes long, /v1/requests shows what was before it."""
        self.assertTrue(until(lambda: any(map(num_running, self.replicas))))
        [busy] = [server for server in self.replicas if num_running(server) > 0]
        return busy

    def accepted(self):
        return [metric(server, "requests_accepted_total") for server in self.replicas]

    def grown(self, before):
        return [now - then for now, then in zip(self.accepted(), before)]

    def times_of_events(self):
        """The seconds until each event of a stream, which must still run when the first is here."""
        response = self.open_stream(n=8, max_tokens=450)
        self.assertEqual(response.headers["Content-Type"], "text/event-stream")
        events = timed_events(response)
        first, _ = next(events)
        self.assertTrue(until(lambda: sum(map(num_running, self.replicas)) == 8),
                        "the answer was whole before its first event came")
        return [first, *(seconds for seconds, _ in events)]

    def test_events_arrive_when_they_are_made(self):
        self.set_up()
        for _ in range(ATTEMPTS):
            first, *times = self.times_of_events()
            gap = max(later - earlier for earlier, later in zip(times, times[1:]))
            if max(first, gap) < times[-1] / 4:
                break
        self.assertLess(first, times[-1] / 4)
        self.assertLess(gap, times[-1] / 4, "they came in a few lumps")

    def test_a_stream_says_what_it_says_without_a_proxy(self):
        self.set_up()
        fields = {"prompt": "naïve café", "max_tokens": 200, "seed": 9, "return_token_ids": True, "temperature": 2,
                  "ignore_eos": True, "stream_options": {"include_usage": True}}
        streams = []
        for client in (*(Client(server.port) for server in self.replicas), self.client):
            client.post("/v1/completions", {**SHORT, **fields, "stream_options": None})  # both caches know the prompt
            events, done = client.stream("/v1/completions", fields)
            self.assertTrue(done)
            streams.append(told(events))
        self.assertEqual(streams[0], streams[1])
        self.assertEqual(streams[0], streams[2])
        self.assertEqual(len(streams[0][1]), 200)

    def test_headers_reach_the_client_and_the_replica(self):
        self.set_up()
        answer = self.client.post("/v1/completions", SHORT, headers={"x-request-id": "mine-7"})
        self.assertEqual(answer.headers["x-request-id"], "mine-7")
        self.assertTrue(until(lambda: any("mine-7" in line for server in self.replicas for line in server.lines)))
        self.assertEqual(self.client.get("/metrics").status, 404)

    def test_replicas_share_the_load(self):
        self.set_up()
        before = self.accepted()
        for i in range(40):
            self.ask(session=f"conversation {i}")
        by_session = self.grown(before)
        self.assertEqual(sum(by_session), 40)
        self.assertGreaterEqual(min(by_session), 8, by_session)
        # Without a session, all of one client: many at once are more than one replica's share.
        before = self.accepted()
        threads = [threading.Thread(target=self.ask, kwargs={"max_tokens": 150, "ignore_eos": True}) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        by_load = self.grown(before)
        self.assertEqual(sum(by_load), 16)
        self.assertGreaterEqual(min(by_load), 4, by_load)

    def test_a_session_stays_where_its_prompt_is_cached(self):
        self.set_up()
        before = self.accepted()
        prompt = PROMPT * 8
        cached = []
        for _ in range(8):
            cached.append(self.ask(session="one", prompt=prompt)["usage"]["prompt_tokens_details"]["cached_tokens"])
            time.sleep(0.1)
        # A request counts as running until the proxy has put it away: on a busy machine one may find its replica taken.
        self.assertGreaterEqual(max(self.grown(before)), 7)
        self.assertEqual(cached[0], 0)
        self.assertLessEqual(cached.count(0), 2, cached)

    def test_a_draining_replica_gets_nothing_new_and_ends_its_stream(self):
        self.set_up()
        response = self.open_stream(n=16, max_tokens=450)
        events = timed_events(response)
        next(events)
        draining = self.busy_replica()
        [other] = [server for server in self.replicas if server is not draining]
        before = metric(other, "requests_accepted_total")
        draining.signal(signal.SIGTERM)
        self.assertTrue(until(lambda: not listens(draining)))
        for i in range(12):
            self.ask(session=f"conversation {i}")
        self.assertIsNone(draining.child.poll(), "the stream was over too soon to be in the way")
        self.assertEqual(metric(other, "requests_accepted_total") - before, 12)
        rest = [event for _, event in events]
        self.assertEqual(rest[-1], "data: [DONE]\n")
        ends = [choice["finish_reason"] for event in rest[:-1] for choice in json.loads(event[6:])["choices"]]
        self.assertEqual([end for end in ends if end], ["length"] * 16)
        self.assertEqual(draining.wait(), 0)
        self.ask()

    def test_a_503_of_one_replica_is_answered_by_the_other(self):
        self.set_up("--max-num-seqs", "1", "--queue-timeout", "0.5")
        first, second = self.replicas
        # The replica is busy: new requests time out in its queue.
        busy = Client(first.port).open("POST", "/v1/completions", {**LONG, "prompt": [PROMPT] * 60})
        self.addCleanup(busy.connection.close)
        self.assertTrue(until(lambda: num_running(first) == 1))
        direct = Client(first.port).post("/v1/completions", SHORT)
        self.assertEqual((direct.status, direct.error["code"]), (503, "queue_timeout"))
        refused = metric(first, "rejected_total", reason="queue_timeout")
        # Sessions of both replicas: all are answered, one at least after the first has refused it.
        for i in range(8):
            self.ask(session=f"conversation {i}")
        self.assertGreater(metric(first, "rejected_total", reason="queue_timeout"), refused)
        self.assertTrue(until(lambda: num_running(first) == 1))

    def test_a_killed_replica_leaves_the_service_up(self):
        self.set_up()
        response = self.open_stream(n=8)
        next(timed_events(response))
        victim = self.busy_replica()
        victim.signal(signal.SIGKILL)
        # Its stream breaks off, and can be distinguished from a finished one.
        try:
            rest = response.read()
        except (http.client.HTTPException, ConnectionError) as error:
            rest = getattr(error, "partial", b"")
        self.assertNotIn(b"[DONE]", rest)
        for i in range(12):
            self.ask(session=f"conversation {i}")
        self.assertEqual(self.client.get("/ready").status, 200)

    def test_a_request_whose_replica_dies_before_it_answers_is_tried_again(self):
        self.set_up()
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(
            self.client.post("/v1/completions", {**LONG, "max_tokens": 300, "stream": False, "n": 8})))
        waiting.start()
        self.assertTrue(until(lambda: any(num_running(server) == 8 for server in self.replicas)))
        victim = self.busy_replica()
        victim.signal(signal.SIGKILL)
        waiting.join()
        self.assertEqual(answers[0].status, 200, answers[0].body)
        self.assertEqual([choice["finish_reason"] for choice in answers[0].json["choices"]], ["length"] * 8)

    def test_a_client_that_leaves_ends_its_request(self):
        self.set_up()
        for num_left, streamed in enumerate((True, False), start=1):
            body = json.dumps({**LONG, "stream": streamed, "n": 8})
            raw = socket.create_connection(("127.0.0.1", self.proxy.port))
            raw.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
            self.assertTrue(until(lambda: sum(map(num_running, self.replicas)) == 8))
            raw.close()
            self.assertTrue(until(lambda: sum(map(num_running, self.replicas)) == 0))
            cancelled = [metric(server, "requests_cancelled_total") for server in self.replicas]
            self.assertEqual(sum(cancelled), num_left, f"streamed: {streamed}")

    def raw_status(self, head, body=b""):
        """The status of an answer that may come before the whole request is sent."""
        with socket.create_connection(("127.0.0.1", self.proxy.port), 30) as raw:
            try:
                raw.sendall(head.encode() + body)
            except (BrokenPipeError, ConnectionResetError):
                pass
            line = raw.makefile("rb").readline().decode()
        self.assertRegex(line, r"^HTTP/1\.1 \d{3} ")
        return int(line.split()[1])

    def test_what_is_too_big_is_refused(self):
        self.set_up()
        head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        before = self.accepted()
        self.assertEqual(self.raw_status(f"{head}Content-Length: {8 * MIB + 1}\r\n\r\n"), 413)
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        self.assertEqual(self.raw_status(f"{head}Transfer-Encoding: chunked\r\n\r\n", chunk * 129), 413)
        long_line = "x" * 9 * 1024
        self.assertIn(self.raw_status(f"{head}X-Long: {long_line}\r\nContent-Length: 2\r\n\r\n", b"{}"), (400, 431))
        lines = "".join(f"X-Field-{i}: {'x' * 1000}\r\n" for i in range(100))
        self.assertIn(self.raw_status(f"{head}{lines}Content-Length: 2\r\n\r\n", b"{}"), (400, 431))
        self.assertEqual(self.grown(before), [0, 0])
        # A smaller body is accepted: 8 MiB minus 1 KiB, mostly of spaces, is valid JSON.
        body = json.dumps(SHORT).encode()
        self.assertEqual(self.client.post("/v1/completions", body + b" " * (8 * MIB - 1024 - len(body))).status, 200)


class HaProxyTest(ProxyTests, unittest.TestCase):
    PROXY = HaProxy

    def test_the_prompt_cache_key_of_openais_api_is_a_session(self):
        self.set_up()
        before = self.accepted()
        for _ in range(8):
            self.ask(prompt_cache_key="one")
            time.sleep(0.1)
        # As above: one may find its replica taken by the request before it.
        self.assertGreaterEqual(max(self.grown(before)), 7)
        before = self.accepted()
        for i in range(40):
            self.ask(prompt_cache_key=f"conversation {i}")
        self.assertGreaterEqual(min(self.grown(before)), 8)

    def test_it_asks_whether_a_replica_is_ready(self):
        self.set_up("--drain-delay", "6")
        self.replicas[0].signal(signal.SIGTERM)
        self.assertTrue(until(lambda: "Server replicas/replica1 is DOWN" in self.proxy.log()), self.proxy.log())
        # The replica would still accept requests, but gets none.
        before = self.accepted()
        for i in range(12):
            self.ask(session=f"conversation {i}")
        self.assertEqual(self.grown(before), [0, 12])
        self.assertEqual(self.replicas[0].wait(), 0)


class NginxTest(ProxyTests, unittest.TestCase):
    PROXY = Nginx


if __name__ == "__main__":
    unittest.main()
