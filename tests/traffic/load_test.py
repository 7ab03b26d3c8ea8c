"""Load on the paced server: every token is checked, and the metrics are consistent afterwards."""
import json
import socketserver
import threading
import unittest

from pacing import IS_SANITIZED, ONE_A_STEP, PacedTest, prompt, run_load, scaled, script

NUM_STREAMS, NUM_TOKENS = (60, 40) if IS_SANITIZED else (500, 100)
NUM_REQUESTS, REQUEST_RATE = (200, 20) if IS_SANITIZED else (scaled(1000, 2000), 75)
SECONDS = scaled(2, 20)


class LoadTest(PacedTest):
    def test_streams_and_whole_answers(self):
        server = self.start("--max-num-seqs", 1024)
        code, figures = run_load(server.port, "--streams", NUM_STREAMS, "--stream-tokens", NUM_TOKENS, "--stream-spread", 5,
                                 "--requests", NUM_REQUESTS, "--request-rate", REQUEST_RATE)
        self.assertEqual(code, 0, figures)
        self.assertEqual(figures["streams"]["completed"], NUM_STREAMS)
        self.assertEqual(figures["streams"]["tokens"], NUM_STREAMS * NUM_TOKENS)
        self.assertEqual(figures["requests"]["completed"], NUM_REQUESTS)
        books = self.check_books(server.client)
        self.assertEqual(books["requests_completed_total"], NUM_STREAMS + NUM_REQUESTS)

    def test_streams_with_drafts(self):
        server = self.start("--max-num-seqs", 1024, "--num-drafted", 4)
        code, figures = run_load(server.port, "--streams", NUM_STREAMS, "--stream-tokens", NUM_TOKENS, "--stream-spread", 2)
        self.assertEqual(code, 0, figures)
        self.assertEqual(figures["streams"]["tokens"], NUM_STREAMS * NUM_TOKENS)
        self.check_books(server.client)

    def test_ten_times_what_there_is_room_for(self):
        server = self.start("--max-num-seqs", 20, "--max-num-queued-reqs", 20, "--rate", 50)
        # 20 at a time and 25 tokens each: 40 requests per second.
        code, figures = run_load(server.port, "--rate", 50, "--requests", 400 * SECONDS, "--request-rate", 400,
                                 "--request-tokens", 25, "--stream-requests", "--may-refuse")
        self.assertEqual(code, 0, figures)
        requests = figures["requests"]
        self.assertGreater(requests["refused"], 0)
        self.assertEqual(requests["completed"] + requests["refused"], 400 * SECONDS)
        books = self.check_books(server.client)
        self.assertEqual(books["requests_completed_total"], requests["completed"])

    def test_more_streams_than_blocks(self):
        server = self.start("--rate", 100, "--num-blocks", 40, "--max-num-seqs", 16, *ONE_A_STEP)
        code, figures = run_load(server.port, "--rate", 100, "--streams", 16, "--stream-tokens", 60, "--stream-spread", 0.2)
        self.assertEqual(code, 0, figures)
        self.assertGreater(self.check_books(server.client)["num_preemptions_total"], 0)


class LyingServer(socketserver.ThreadingTCPServer):
    """Answers completions with the event texts that `answer(tokens)` returns."""
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), LyingHandler)
        self.answer = answer
        threading.Thread(target=self.serve_forever, daemon=True).start()


class LyingHandler(socketserver.StreamRequestHandler):
    def handle(self):
        length = 0
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        asked = json.loads(self.rfile.read(length))
        body = "".join(f"data: {event}\n\n" for event in self.server.answer(script(asked["prompt"], asked["max_tokens"])))
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nContent-Length: "
                         b"%d\r\n\r\n%s" % (len(body), body.encode()))


def events(tokens, finish="length", usage=None, done=True):
    """A stream as the server writes it, of whatever tokens."""
    lines = [json.dumps({"choices": [{"index": 0, "text": "x", "finish_reason": None if i + 1 < len(tokens) else finish,
                                      "token_ids": [token]}]}, separators=(",", ":")) for i, token in enumerate(tokens)]
    lines.append(json.dumps({"choices": [], "usage": {"completion_tokens": usage or len(tokens)}}, separators=(",", ":")))
    return lines + ["[DONE]"] * done


class ClientTest(unittest.TestCase):
    """The client detects faults."""

    def ask(self, answer):
        server = LyingServer(answer)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return run_load(server.server_address[1], "--streams", 1, "--stream-tokens", 20, "--stream-spread", 0)

    def check_fault(self, answer, fault):
        code, figures = self.ask(answer)
        self.assertEqual(code, 1)
        self.assertEqual(figures["streams"]["faults"], {fault: 1}, figures)
        self.assertEqual(figures["streams"]["completed"], 0)

    def check_error(self, answer, error):
        code, figures = self.ask(answer)
        self.assertEqual(code, 1)
        self.assertEqual(figures["streams"]["errors"], {error: 1}, figures)
        self.assertEqual(figures["streams"]["completed"], 0)

    def test_the_truth(self):
        code, figures = self.ask(events)
        self.assertEqual((code, figures["streams"]["completed"], figures["streams"]["tokens"]), (0, 1, 20), figures)

    def test_a_lost_token(self):
        self.check_fault(lambda t: events(t[:7] + t[8:]), "1 tokens are lost, or out of order, at token 7")

    def test_lost_tokens_at_the_end(self):
        self.check_fault(lambda t: events(t[:-3]), "17 tokens instead of 20")

    def test_a_doubled_token(self):
        self.check_fault(lambda t: events(t[:7] + t[6:]), "token 6 is doubled")

    def test_tokens_in_another_order(self):
        self.check_fault(lambda t: events(t[:7] + [t[8], t[7]] + t[9:]), "1 tokens are lost, or out of order, at token 7")

    def test_a_wrong_last_token(self):
        last = script(prompt(8), 20)[-1]
        self.check_fault(lambda t: events(t[:-1] + [1]), f"token 19 is 1, expected {last}")

    def test_a_wrong_end(self):
        self.check_fault(lambda t: events(t, finish="stop"), 'finish_reason "stop"')
        self.check_fault(lambda t: events(t, usage=19), "usage of 19")
        self.check_fault(lambda t: events(t, done=False), "no [DONE]")

    def test_an_error_in_the_stream(self):
        self.check_error(lambda t: events(t)[:5] + ['{"error":{"message":"x","code":"broken"}}'], "stream: broken")

    def test_an_event_behind_the_end(self):
        self.check_error(lambda t: events(t) + ["{}"], "an event behind [DONE]")


if __name__ == "__main__":
    unittest.main()
