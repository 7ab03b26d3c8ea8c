"""A model that takes long to load: requests wait for it, streams have comments meanwhile."""
import json
import signal
import time
import unittest

from pacing import PacedServer

ASK = {"model": "slow", "prompt": "a", "max_tokens": 3}


class LoadingTest(unittest.TestCase):
    def start(self, *options):
        server = PacedServer("--rate", 200, *options)
        self.addCleanup(server.stop)
        return server

    def stream(self, server, **fields):
        response = server.client.open("POST", "/v1/completions", {**ASK, "stream": True, **fields})
        with response.connection:
            return response.status, response.read().decode()

    def test_a_stream_is_kept_alive_while_its_model_is_loaded(self):
        server = self.start("--load-time", 1, "--ping-time", 0.2)
        status, text = self.stream(server)
        self.assertEqual(status, 200)
        self.assertTrue(text.startswith(": ping\n\n: ping\n\n"), text)
        events = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual({json.loads(event)["model"] for event in events[:-1]}, {"slow"})
        self.assertNotIn("ping", self.stream(server)[1], "it is loaded now")

    def test_an_error_after_a_comment_is_an_event(self):
        server = self.start("--load-time", 0.5, "--ping-time", 0.1, "--max-model-len", 16)
        status, text = self.stream(server, prompt="a b " * 100)
        self.assertEqual(status, 200)
        self.assertIn('event: error\ndata: {"error":', text)
        self.assertIn("context_length_exceeded", text)

    def test_other_models_answer_meanwhile(self):
        server = self.start("--load-time", 2)
        waiting = server.client.send("POST", "/v1/completions", ASK)
        begin = time.monotonic()
        answer = server.client.post("/v1/completions", {**ASK, "model": "paced"})
        self.assertEqual(answer.json["model"], "paced")
        self.assertLess(time.monotonic() - begin, 1.5)
        self.assertEqual(json.loads(waiting.getresponse().read())["model"], "slow")
        waiting.close()

    def test_a_request_waits_no_longer_than_it_may(self):
        answer = self.start("--load-time", 3, "--request-timeout", 0.3).client.post("/v1/completions", ASK)
        self.assertEqual((answer.status, answer.error["code"]), (504, "request_timeout"))

    def test_a_client_that_leaves_waits_no_longer(self):
        server = self.start("--load-time", 0.5, "--log-requests")
        server.client.send("POST", "/v1/completions", ASK).close()
        deadline = time.monotonic() + 30
        while not any("499" in line for line in server.lines) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(server.client.post("/v1/completions", ASK).json["model"], "slow")
        self.assertTrue(any("client_gone" in line for line in server.lines))

    def test_a_drain_cancels_a_load(self):
        server = self.start("--load-time", 60, "--drain-timeout", 0.3)
        waiting = server.client.send("POST", "/v1/completions", ASK)
        time.sleep(0.3)
        server.signal(signal.SIGTERM)
        response = waiting.getresponse()
        self.assertEqual(response.status, 503)
        self.assertEqual(json.loads(response.read())["error"]["code"], "model_load_failed")
        waiting.close()
        self.assertEqual(server.wait(30), 0)


if __name__ == "__main__":
    unittest.main()
