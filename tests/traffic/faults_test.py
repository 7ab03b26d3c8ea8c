"""Clients that disconnect at any point and in any way, caches that are too small, an engine that hangs."""
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
from functools import partialmethod
from pathlib import Path

from pacing import ONE_A_STEP, PacedTest, metrics, prompt, script, until, ways_at
from peer import Peer, completion

WAYS = ("fin", "rst", "half_close")
LENGTH = 24  # tokens of a stream that is left


class Leavers:
    """How far each gets before it leaves; `open` makes a connection. Named by the point."""

    @staticmethod
    def accept(server, peer):
        pass

    @staticmethod
    def header(server, peer):
        head, _ = completion(prompt(4), LENGTH)
        peer.send(head[:len(head) // 2])

    @staticmethod
    def body(server, peer):
        head, body = completion(prompt(4), LENGTH)
        peer.send(head, body[:len(body) // 2])

    @staticmethod
    def queued(server, peer):
        # It gets the head of a stream, then waits for running requests.
        peer.ask(prompt(4, seed=5), LENGTH)
        assert until(lambda: metrics(server.client)["num_requests_waiting"] == 1)

    @staticmethod
    def prefill(server, peer):
        peer.ask(prompt(2000, seed=server.num_prompts()), LENGTH)
        assert until(lambda: any(r["prompt_tokens"] == 2000 and r["state"] == "running" and r["output_tokens"] == 0
                                 for r in server.client.get("/v1/requests").json["data"]))

    @staticmethod
    def first_token(server, peer):
        assert peer.ask(prompt(4), LENGTH).read_tokens(1)

    @staticmethod
    def mid_stream(server, peer):
        assert peer.ask(prompt(4), LENGTH).read_tokens(LENGTH // 2)

    @staticmethod
    def last_token(server, peer):
        assert peer.ask(prompt(4), LENGTH).read_tokens(LENGTH - 1)

    @staticmethod
    def before_done(server, peer):
        peer.ask(prompt(4), LENGTH)
        assert peer.read_until(lambda: b'"finish_reason":"length"' in peer.data, count=1)
        assert b"[DONE]" not in peer.data

    @staticmethod
    def keep_alive(server, peer):
        assert peer.ask(prompt(4), 3).read_all().is_complete()

    @staticmethod
    def whole_answer(server, peer):
        # Long enough that a busy machine sees the metrics before its end.
        peer.ask(prompt(4), 5 * LENGTH, stream=False)
        assert until(lambda: metrics(server.client)["requests_accepted_total"] >= 2)  # the witness's is one


class FaultTest(PacedTest):
    def peer(self, server, **options):
        peer = Peer(server.port, **options)
        self.addCleanup(peer.close)
        return peer

    def check_complete(self, peers):
        for peer in peers:
            self.assertTrue(peer.read_all().is_complete(), peer.problem())
            peer.close()


class LeavingTest(FaultTest):
    """Beside each disconnecting client a witness runs, which must get all its tokens."""
    options = ()

    def setUp(self):
        server = self.start(*self.options)
        seeds = iter(range(100, 10_000))
        server.num_prompts = lambda: next(seeds)
        self.server = server

    def leave(self, point, way):
        witness = self.peer(self.server).ask(prompt(6, seed=9), 60)
        self.assertTrue(witness.read_tokens(2))
        peer = self.peer(self.server)
        getattr(Leavers, point)(self.server, peer)
        getattr(peer, way)()
        if way == "half_close" and peer.data and hasattr(peer, "prompt") and point != "whole_answer":
            self.assertIsNone(peer.problem())
        self.assertEqual(self.server.client.get("/health").status, 200)
        self.assertTrue(witness.read_all().is_complete(), witness.problem())
        return self.check_books(self.server.client)

    def check(self, point, way):
        books = self.leave(point, way)
        came = {"accept": 1, "header": 1, "body": 1}.get(point, 2)
        self.assertEqual(books["requests_accepted_total"], came)
        self.assertEqual(books["requests_failed_total"], 0)
        # A client that leaves before the last token is cancelled; afterwards the answer is complete.
        left = {"accept": 0, "header": 0, "body": 0, "keep_alive": 0, "before_done": 0}.get(point, 1)
        if point == "last_token":  # one step of 10 ms ahead of the end: on a busy machine the end may come first
            self.assertLessEqual(books["requests_cancelled_total"], left)
        else:
            self.assertEqual(books["requests_cancelled_total"], left)


class SocketTest(LeavingTest):
    options = ("--rate", 100, "--max-num-batched-tokens", 64, "--prefill-rate", 4000)


class QueueTest(LeavingTest):
    options = ("--rate", 100, "--max-num-seqs", 1)


def add_tests(case, points):
    for place, point in enumerate(points):
        for way in ways_at(place, WAYS):
            setattr(case, f"test_{way}_at_{point}", lambda self, point=point, way=way: self.check(point, way))


add_tests(SocketTest, ["accept", "header", "body", "prefill", "first_token", "mid_stream", "last_token", "before_done",
                       "keep_alive", "whole_answer"])
add_tests(QueueTest, ["queued"])


class DrainTest(FaultTest):
    """Clients that leave while the server drains."""

    def check(self, way):
        server = self.start("--rate", 50)
        stays = self.peer(server).ask(prompt(4), 40)
        leaves = self.peer(server).ask(prompt(5), 400)
        idle = self.peer(server)
        self.assertTrue(stays.read_tokens(1) and leaves.read_tokens(1))
        server.signal(signal.SIGTERM)
        time.sleep(0.1)
        getattr(leaves, way)()
        getattr(idle, way)()
        self.assertTrue(stays.read_all().is_complete(), stays.problem())
        stays.close()
        began = time.monotonic()
        self.assertEqual(server.wait(), 0)
        self.assertLess(time.monotonic() - began, 5, "the rest of the 400 tokens would take 7 s")


for each_way in ways_at(1, WAYS):
    setattr(DrainTest, f"test_{each_way}_at_drain", lambda self, way=each_way: self.check(way))


class TlsTest(FaultTest):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.key, cls.certificate = (str(Path(cls.directory.name) / name) for name in ("key.pem", "certificate.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-subj", "/CN=localhost", "-keyout", cls.key, "-out", cls.certificate],
                       check=True, capture_output=True)
        cls.context = ssl.create_default_context(cafile=cls.certificate)
        cls.context.check_hostname = False

    def hello(self):
        """A client's first flight."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        handshake = self.context.wrap_bio(incoming, outgoing)
        with self.assertRaises(ssl.SSLWantReadError):
            handshake.do_handshake()
        return outgoing.read()

    def check(self, way, bytes_of_hello):
        server = self.start("--rate", 100, "--tls-cert", self.certificate, "--tls-key", self.key)
        peer = self.peer(server)
        hello = self.hello()
        peer.send(hello[:bytes_of_hello if bytes_of_hello is not None else len(hello)])
        time.sleep(0.05)
        getattr(peer, way)()
        self.check_serves(server)

    def check_serves(self, server):
        peer = self.peer(server, tls=self.context)
        self.assertTrue(peer.ask(prompt(4), 10).read_all().is_complete(), peer.problem())
        peer.close()
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)

    def check_mid_stream(self, way):
        server = self.start("--rate", 100, "--tls-cert", self.certificate, "--tls-key", self.key)
        peer = self.peer(server, tls=self.context)
        self.assertTrue(peer.ask(prompt(4), 2000).read_tokens(3))
        getattr(peer, way)()
        # A drain waits for connected clients: 2,000 tokens would take 20 s.
        began = time.monotonic()
        self.check_serves(server)
        self.assertLess(time.monotonic() - began, 10)


TLS_POINTS = {"at_tls_first_byte": lambda self, way: self.check(way, 1),
              "in_tls_hello": lambda self, way: self.check(way, 100),
              "behind_tls_hello": lambda self, way: self.check(way, None),
              "in_tls_stream": lambda self, way: self.check_mid_stream(way)}
for tls_place, (tls_point, check_point) in enumerate(TLS_POINTS.items()):
    for each_way in ways_at(tls_place, WAYS):
        setattr(TlsTest, f"test_{each_way}_{tls_point}", partialmethod(check_point, each_way))


class CacheTest(FaultTest):
    """Sequences that are preempted or cancelled, at each of their steps."""
    TOKENS = 20

    def test_preemption_at_each_step(self):
        # Blocks of one token: with prompts of this length the pool is full when both have drawn k tokens.
        server = self.start("--rate", 400, "--block-size", 1, "--num-blocks", 100)
        preemptions = 0
        for k in range(1, self.TOKENS - 2):
            with self.subTest(k=k):
                prompts = [prompt(50 - k, seed=2 * k + i) for i in range(2)]
                peer = self.peer(server).ask(prompts, self.TOKENS).read_all()
                for i in range(2):
                    self.assertEqual(peer.tokens(index=i), script(prompts[i], self.TOKENS))
                peer.close()
                found = self.check_books(server.client)["num_preemptions_total"]
                self.assertGreater(found, preemptions)
                preemptions = found

    def test_preemption_again_and_again(self):
        server = self.start("--rate", 400, "--block-size", 1, "--num-blocks", 64)
        crowd = [self.peer(server).ask(prompt(3, seed=i), 50) for i in range(12)]
        self.check_complete(crowd)
        books = self.check_books(server.client)
        self.assertEqual(books["requests_completed_total"], 12)
        self.assertGreater(books["num_preemptions_total"], 12)

    def check_cancel_at_each_step(self, *options):
        server = self.start("--rate", 200, *options)
        for k in range(self.TOKENS):
            with self.subTest(k=k):
                peers = [self.peer(server).ask(prompt(5, seed=3 * k + i), self.TOKENS) for i in range(3)]
                self.assertTrue(peers[1].read_until(lambda: peers[1].status == 200) and peers[1].read_tokens(k))
                self.assertIsNone(peers[1].problem())
                peers[1].rst()
                self.check_complete([peers[0], peers[2]])
        books = self.check_books(server.client)
        # The last ones may have been complete before their client was seen to go.
        self.assertEqual(books["requests_completed_total"] + books["requests_cancelled_total"], 3 * self.TOKENS)
        self.assertGreater(books["requests_cancelled_total"], self.TOKENS // 2)

    def test_cancel_at_each_step(self):
        self.check_cancel_at_each_step()

    def test_cancel_at_each_step_with_preemptions(self):
        self.check_cancel_at_each_step("--block-size", 1, "--num-blocks", 40)

    def test_caches_of_few_blocks(self):
        for num_blocks, tokens in ((1, 10), (2, 20), (7, 90)):
            with self.subTest(num_blocks=num_blocks):
                server = self.start("--rate", 200, "--num-blocks", num_blocks)
                peers = [self.peer(server).ask(prompt(5, seed=i), tokens) for i in range(4)]
                self.check_complete(peers)
                too_long = server.client.post("/v1/completions", {"prompt": prompt(16 * num_blocks + 1), "max_tokens": 1})
                self.assertEqual(too_long.status, 400, too_long.body)
                self.assertEqual(self.check_books(server.client)["requests_completed_total"], 4)


class StallTest(FaultTest):
    def test_an_engine_that_hangs(self):
        server = self.start("--rate", 50, "--stall-after", 20, "--stall-seconds", 12, *ONE_A_STEP)
        client = server.client
        began = time.monotonic()  # 0.4 s before the stall
        peer = self.peer(server).ask(prompt(4), 40)
        self.assertTrue(peer.read_tokens(15))
        self.assertEqual(client.get("/health").status, 200)
        self.assertTrue(until(lambda: client.get("/health").status == 503, 14))
        self.assertGreater(time.monotonic() - began, 10)
        self.assertEqual(client.get("/health").error["code"], "engine_unhealthy")
        self.assertEqual(client.get("/live").status, 200)
        self.assertTrue(until(lambda: client.get("/health").status == 200, 10))
        self.assertTrue(peer.read_all().is_complete(), peer.problem())
        self.check_books(client)

    def test_figures_come_while_it_hangs(self):
        server = self.start("--rate", 50, "--stall-after", 10, "--stall-seconds", 4)
        peer = self.peer(server).ask(prompt(4), 20)
        self.assertTrue(peer.read_tokens(5))
        time.sleep(0.5)
        for path in ("/metrics", "/v1/requests"):
            began = time.monotonic()
            self.assertEqual(server.client.get(path).status, 200)
            self.assertLess(time.monotonic() - began, 2, path)
        self.assertTrue(peer.read_all().is_complete(), peer.problem())
        self.check_books(server.client)


class FailureTest(FaultTest):
    def test_an_engine_that_fails_ends_the_server_with_70(self):
        server = self.start("--rate", 50, "--fail-after", 10, *ONE_A_STEP)
        streamed = self.peer(server).ask(prompt(4), 40)
        whole = self.peer(server).ask(prompt(4, seed=1), 40, stream=False)
        self.assertEqual(server.wait(), 70)
        self.assertIn("told to fail", server.lines[-1])
        self.assertFalse(streamed.read_all().is_complete())
        self.assertIsNone(streamed.problem())
        self.assertIn(b'"code":"internal_error"', streamed.events()[-1])
        self.assertNotIn(b"told to fail", streamed.data)
        self.assertEqual(whole.read_all().status, 500)


class SlowReaderTest(FaultTest):
    """Twenty clients whose streams fill every place, or all blocks, read 1 KiB a second; then twenty others come."""
    NUM_CLIENTS, NUM_TOKENS, RATE = 20, 1400, 200

    def read_slowly(self):
        while not self.is_read.wait(0.25):
            for peer in self.slow:
                peer.receive(256)

    def start_slow_readers(self, *options):
        """Returns when all have been computed further than they have been read; the rest would take 4 s and more."""
        server = self.start("--rate", self.RATE, *ONE_A_STEP, *options)
        self.slow = [self.peer(server, receive_buffer=2048).ask(prompt(4, seed=seed), self.NUM_TOKENS)
                     for seed in range(self.NUM_CLIENTS)]
        self.is_read = threading.Event()
        self.reader = threading.Thread(target=self.read_slowly)
        self.reader.start()
        self.addCleanup(self.stop_reading_slowly)
        enough = 3 * self.RATE * self.NUM_CLIENTS
        self.assertTrue(until(lambda: metrics(server.client)["generation_tokens_total"] >= enough))
        return server

    def stop_reading_slowly(self):
        self.is_read.set()
        self.reader.join()

    def read_to_the_end(self):
        """All at once: a client that takes nothing for long is closed."""
        def read(peer):
            peer.read_until(lambda: peer.data.endswith(b"\r\n0\r\n\r\n"))
        readers = [threading.Thread(target=read, args=(peer,)) for peer in self.slow]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()

    def check_that_others_run(self, server):
        begin = time.monotonic()
        others = [self.peer(server).ask(prompt(4, seed=100 + seed), 10) for seed in range(self.NUM_CLIENTS)]
        for peer in others:
            self.assertTrue(peer.read_tokens(1))
        self.assertLess(time.monotonic() - begin, 5, "seconds until each of the others has its first token")
        self.check_complete(others)

    def test_places(self):
        server = self.start_slow_readers("--max-num-seqs", self.NUM_CLIENTS)
        self.check_that_others_run(server)
        self.assertEqual(metrics(server.client)["num_requests_deferred"], self.NUM_CLIENTS)
        self.stop_reading_slowly()
        self.read_to_the_end()
        self.check_complete(self.slow)
        books = self.check_books(server.client)
        self.assertGreaterEqual(books["num_deferred_preemptions_total"], self.NUM_CLIENTS)
        self.assertEqual(books["num_deferred_preemptions_total"], books["num_preemptions_total"])

    def test_permits(self):
        server = self.start_slow_readers("--max-requests", self.NUM_CLIENTS)
        self.assertTrue(until(lambda: metrics(server.client)["num_requests_deferred"] == self.NUM_CLIENTS))
        self.check_that_others_run(server)
        self.stop_reading_slowly()
        self.read_to_the_end()
        self.check_complete(self.slow)
        self.check_books(server.client)

    def test_blocks(self):
        server = self.start_slow_readers("--num-blocks", 700)  # 11,200 tokens
        self.check_that_others_run(server)
        self.stop_reading_slowly()
        for peer in self.slow:
            self.assertIsNone(peer.problem())
            peer.rst()
        self.assertGreater(self.check_books(server.client)["num_preemptions_total"], 0)


class SilenceTest(FaultTest):
    def test_a_stream_that_has_nothing_to_say_says_so(self):
        server = self.start("--rate", 50, "--prefill-rate", 1000, "--ping-time", 0.5)
        peer = self.peer(server).ask(prompt(2000), 4)
        self.assertTrue(peer.read_all().is_complete(), peer.problem())
        said = peer.body()[0].split(b"\n\n")
        before = said[:next(i for i, event in enumerate(said) if b"token_ids" in event)]
        self.assertIn(b": ping", before)
        self.check_books(server.client)


if __name__ == "__main__":
    unittest.main()
