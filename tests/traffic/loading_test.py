"""A model that takes long to load: requests wait for it, streams have comments meanwhile."""
import json
import signal
import threading
import time
import unittest

from pacing import PacedServer, until

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

    def lines(self, server, **fields):
        """Of a stream of Ollama's API, unparsed."""
        body = {"model": "slow", "prompt": "a", "raw": True, "options": {"num_predict": 3}, **fields}
        answer = server.client.post("/api/generate", body)
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "application/x-ndjson"), answer.body)
        return answer.body.decode().splitlines()

    def test_lines_are_kept_alive_by_white_space(self):
        server = self.start("--load-time", 1, "--ping-time", 0.2)
        first, *rest = self.lines(server)
        self.assertTrue(first.startswith("   "), first)
        self.assertTrue(rest)
        for line in [first, *rest]:  # clients parse each, so none is empty
            self.assertEqual(json.loads(line)["model"], "slow")
        self.assertFalse(self.lines(server)[0].startswith(" "), "it is loaded now")

    def test_an_error_after_white_space_is_a_line(self):
        server = self.start("--load-time", 0.5, "--ping-time", 0.1, "--max-model-len", 16)
        [line] = self.lines(server, prompt="a b " * 100)
        self.assertTrue(line.startswith(" "), line)
        self.assertIn("context", json.loads(line)["error"])

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

    def test_requests_loads_unloads_and_a_drain_meet(self):
        server = self.start("--load-time", 0.01, "--ping-time", 0.01, "--max-num-seqs", 4)
        answers = []

        def repeat(*calls):
            try:
                while all([call() for call in calls]):
                    pass
            except OSError:  # the server has ended
                pass

        def ask(**fields):
            answers.append(server.client.post("/v1/completions", {**ASK, **fields}))
            return answers[-1].status == 200

        def change(verb):
            return server.client.post(f"/models/{verb}", {"model": "slow"}).status < 500

        jobs = [(lambda: ask(),), (lambda: ask(stream=True),), (lambda: ask(model="paced"),), (lambda: ask(stream=True),),
                (lambda: change("load"), lambda: change("unload")), (lambda: change("unload"),)]
        threads = [threading.Thread(target=repeat, args=calls) for calls in jobs]
        for thread in threads:
            thread.start()
        self.assertTrue(until(lambda: len(answers) > 60))
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(60), 0)
        for thread in threads:
            thread.join()
        for answer in answers:
            if answer.status != 200:
                self.assertEqual(answer.status, 503, answer.body)
            elif answer.headers["Content-Type"] == "text/event-stream":
                self.assertTrue(answer.body.endswith((b"data: [DONE]\n\n", b"}\n\n")), answer.body)
            else:
                self.assertEqual(answer.json["usage"]["completion_tokens"], 3)

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
