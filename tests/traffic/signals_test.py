"""Signals at any time, and a server that is killed and restarted, with running streams."""
import random
import signal
import tempfile
import threading
import time
import unittest

from pacing import PacedTest, prompt, scaled, until
from peer import Peer

SEED = 20261121
NUM_SIGNALS = scaled(20, 200)
NUM_KILLS = scaled(5, 50)
NUM_STREAMS = 8
TOKENS = 60  # at 200 per second


class Crowd:
    """Streams that run while something happens to the server."""

    def __init__(self, port):
        self.peers = []
        self.threads = [threading.Thread(target=self.stream, args=(port, i)) for i in range(NUM_STREAMS)]
        for thread in self.threads:
            thread.start()

    def stream(self, port, seed):
        try:
            peer = Peer(port)
            self.peers.append(peer)
            peer.ask(prompt(4, seed), TOKENS).read_all()
        except OSError:
            pass  # it came too late, or the server went

    def wait(self):
        for thread in self.threads:
            thread.join()
        for peer in self.peers:
            peer.close()
        return self.peers


class SignalTest(PacedTest):
    def check_streams(self, peers, drained):
        for peer in peers:
            self.assertIsNone(peer.problem())
            # An admitted request gets its whole answer; any other gets an error, or no answer.
            if drained and peer.status == 200:
                self.assertTrue(peer.is_complete(), peer.data)
            elif drained and peer.status != 0:
                self.assertEqual(peer.status, 503, peer.data)

    def check_signal(self, number, when):
        server = self.start("--rate", 200)
        crowd = Crowd(server.port)
        time.sleep(when)
        server.signal(number)
        if number == signal.SIGPIPE:  # ignored: a closed log must not end the server
            self.check_streams(crowd.wait(), drained=True)
            server.signal(signal.SIGTERM)
        code = server.wait()
        peers = crowd.wait()
        ends_at_once = number == signal.SIGHUP
        self.assertEqual(code, -number if ends_at_once else 0)
        self.check_streams(peers, not ends_at_once)

    def test_signals_under_load(self):
        dice = random.Random(SEED)
        for run in range(NUM_SIGNALS):
            number = dice.choice((signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE))
            when = dice.uniform(0, 0.4)
            with self.subTest(run=run, signal=signal.Signals(number).name, when=when):
                self.check_signal(number, when)

    def test_signals_while_it_starts(self):
        dice = random.Random(SEED + 1)
        for run in range(NUM_SIGNALS):
            number = dice.choice((signal.SIGTERM, signal.SIGINT))
            when = dice.uniform(0, 0.1)
            with self.subTest(run=run, signal=signal.Signals(number).name, when=when):
                server = self.start(wait=False)
                time.sleep(when)
                server.signal(number)
                # Before the program handles signals, the signal ends it; before it serves, with the code of an interruption
                # (docs/serving.md).
                self.assertIn(server.wait(), (0, 128 + number, -number))

    def test_two_signals_end_it_at_once(self):
        dice = random.Random(SEED + 2)
        for run in range(NUM_SIGNALS // 4):
            with self.subTest(run=run):
                server = self.start("--rate", 5)  # 60 tokens take 12 s
                crowd = Crowd(server.port)
                self.assertTrue(until(lambda: any(peer.tokens() for peer in list(crowd.peers))))
                server.signal(dice.choice((signal.SIGTERM, signal.SIGINT)))
                time.sleep(dice.uniform(0.02, 0.1))
                began = time.monotonic()
                server.signal(dice.choice((signal.SIGTERM, signal.SIGINT)))
                self.assertEqual(server.wait(), 130)
                self.assertLess(time.monotonic() - began, 5)
                self.check_streams(crowd.wait(), drained=False)

    def test_killed_and_started_again(self):
        dice = random.Random(SEED + 3)
        server = self.start("--rate", 200)
        port = server.port
        for run in range(NUM_KILLS):
            with self.subTest(run=run):
                crowd = Crowd(port)
                time.sleep(dice.uniform(0, 0.3))
                server.signal(signal.SIGKILL)
                self.assertEqual(server.wait(), -signal.SIGKILL)
                self.check_streams(crowd.wait(), drained=False)
                server = self.start("--rate", 200, "--port", port)
                self.assertTrue(until(lambda: server.client.get("/ready").status == 200))
                self.check_streams(Crowd(port).wait(), drained=True)
                books = self.check_books(server.client)
                self.assertEqual(books["requests_completed_total"], NUM_STREAMS)

    def test_killed_and_started_again_on_a_unix_socket(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = f"{directory.name}/socket"
        for run in range(NUM_KILLS):
            with self.subTest(run=run):
                server = self.start("--unix-socket", path)
                server.signal(signal.SIGKILL)
                server.wait()


if __name__ == "__main__":
    unittest.main()
