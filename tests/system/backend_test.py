"""--backend with a scripted child (tests/backends/scripted_child.py), whose tokens count up: from the command line, and served over
every API; what it can't do, and what becomes of requests when it misbehaves."""
import math
import threading
import time
import unittest
from pathlib import Path

import backend_model
import program
from program import BUNDLED, ProgramTest
from serving import Client, Server

CHAT = [{"role": "user", "content": "Hello"}]
DIES, SLOW = 20, 26  # as the first token of a prompt


def children_of(pid):
    """The processes that it has started, zombies among them."""
    return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


class BackendTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model = backend_model.make(self.directory / "model")
        self.options = ["-m", self.model, "--backend", "transformers", "--python", backend_model.SCRIPTED]

    def test_the_error_for_an_unknown_family_names_the_option(self):
        errors = self.fail_with(1, "generate", "-m", self.model, "-p", "a")
        self.assertIn("unheard_of", errors)
        self.assertIn("--backend transformers or --backend mlx_lm", errors)

    def test_commands(self):
        done = self.succeed("generate", *self.options, "--prompt-ids", "100,101", "-n", "4", "-q", "--temperature", "0")
        expected = self.succeed("detokenize", "-m", BUNDLED, "--prompt-ids", "102,103,104,105")
        self.assertEqual(done.stdout.strip(), expected.stdout.strip())
        found = self.answers("generate", *self.options, stdin=program.lines(
            *({"prompt_ids": [100, first], "max_tokens": 3, "temperature": 0} for first in range(101, 109))))
        self.assertEqual([answer["token_ids"] for answer in found], [[i + 1, i + 2, i + 3] for i in range(101, 109)])
        self.assertEqual(self.answers("score", *self.options, stdin=program.lines({"ids": [100, 101, 7]}))[0]["logprobs"], [None, -0.25, -4.0])
        # Every token of these labels has the log-probability -4, as none is the last one's successor.
        labels = ["sea", "old harbour"]
        counts = [len(self.succeed("tokenize", "-m", BUNDLED, " " + label).stdout.split()) for label in labels]
        weights = [math.exp(-4 * count) for count in counts]
        found = self.answers("classify", *self.options, stdin=program.lines({"text": "It was", "labels": labels}))[0]
        for score, weight in zip(found["scores"], weights, strict=True):
            self.assertAlmostEqual(score, weight / sum(weights), places=5)
        self.assertNotEqual(self.succeed("chat", *self.options, "-p", "Hello", "-n", "40", "-q", "--temperature", "0").stdout.strip(), "")

    def test_what_the_backend_cannot_obey_is_named(self):
        for arguments, words in [(["--quantize", "q8"], "--quantize: --backend transformers can't obey it"),
                                 (["--lora", "a=b"], "--lora: --backend transformers"),
                                 (["--speculative-method", "ngram"], "--speculative-method: --backend transformers"),
                                 (["--max-model-len", "100000000"], "--max-model-len: 100000000, the model was made for"),
                                 (["--logit-bias", "7=1"], "logit_bias: the backend transformers doesn't have it"),
                                 (["--regex", "a+"], "the backend transformers doesn't have it"),
                                 (["--typical-p", "0.5"], "typical_p: the backend transformers doesn't have it")]:
            with self.subTest(arguments):
                self.assertIn(words, self.fail_with(1, "generate", *self.options, "-p", "a", *arguments))
        plain = backend_model.make(self.directory / "plain")
        errors = self.fail_with(1, "generate", "-m", plain, *self.options[2:], "-p", "a", "--temperature", "0")
        self.assertIn("temperature: the backend transformers doesn't have it", errors)

    def test_a_child_that_cannot_load(self):
        for name, words in [("refused", "Model type odd not supported"), ("dies", "the child has ended (exit code 1): no such model")]:
            model = backend_model.make(self.directory / name)
            self.assertIn(words, self.fail_with(1, "generate", "-m", model, *self.options[2:], "-p", "a"))
        model = backend_model.make(self.directory / "hangs")
        errors = self.fail_with(1, "generate", "-m", model, *self.options[2:], "-p", "a", "--backend-timeout", "1")
        self.assertIn("hasn't loaded the model within 1 s (--backend-timeout)", errors)
        self.assertIn("can't be started", self.fail_with(1, "generate", *self.options[:4], "--python", "/nowhere", "-p", "a"))

    def serve(self, *options):
        server = Server(*self.options[2:], "--served-model-name", "m", *options, model=self.model)
        self.addCleanup(server.stop)
        return server, Client(server.port)

    def test_every_api(self):
        _, client = self.serve()
        limits = {"max_tokens": 5, "temperature": 0}
        chat = client.post("/v1/chat/completions", {"messages": CHAT, **limits, "logprobs": True, "top_logprobs": 1}).json
        self.assertEqual(chat["usage"]["completion_tokens"], 5, chat)
        self.assertEqual(chat["choices"][0]["logprobs"]["content"][0]["logprob"], -0.5)
        text = chat["choices"][0]["message"]["content"]
        events, _ = client.stream("/v1/chat/completions", {"messages": CHAT, **limits})
        self.assertEqual("".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"]), text)
        completion = client.post("/v1/completions", {"prompt": [100, 101], **limits, "n": 2}).json
        self.assertEqual([choice["finish_reason"] for choice in completion["choices"]], ["length", "length"])
        self.assertEqual(completion["choices"][0]["text"], completion["choices"][1]["text"])
        response = client.post("/v1/responses", {"input": "Hello", "max_output_tokens": 5, "temperature": 0, "store": False}).json
        self.assertEqual(response["output"][0]["content"][0]["text"], text)
        message = client.post("/v1/messages", {"model": "m", "messages": CHAT, **limits}).json
        self.assertEqual(message["content"][0]["text"], text)
        ollama = client.post("/api/chat", {"model": "m", "messages": CHAT, "stream": False, "options": {"num_predict": 5, "temperature": 0}}).json
        self.assertEqual(ollama["message"]["content"], text)
        llama = client.post("/completion", {"prompt": [100, 101], "n_predict": 5, "temperature": 0}).json
        self.assertEqual(llama["content"], completion["choices"][0]["text"])
        stopped = client.post("/v1/chat/completions", {"messages": CHAT, **limits, "stop": [text[2:4]]}).json
        self.assertEqual(stopped["choices"][0]["message"]["content"], text[:2])
        tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        with_tools = client.post("/v1/chat/completions", {"messages": CHAT, **limits, "tools": tools}).json
        self.assertEqual(with_tools["choices"][0]["finish_reason"], "length", with_tools)

    def test_what_is_refused_over_http(self):
        _, client = self.serve()
        schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
        tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        for fields, field in [({"response_format": schema}, "response_format"), ({"logit_bias": {"5": 1}}, "logit_bias"),
                              ({"tools": tools, "tool_choice": "required"}, "tool_choice"),
                              ({"tools": [{"type": "function", "function": {**tools[0]["function"], "strict": True}}]}, "tools[0].strict")]:
            with self.subTest(field):
                answer = client.post("/v1/chat/completions", {"messages": CHAT, "max_tokens": 5, **fields})
                self.assertEqual(answer.status, 400, answer.body)
                self.assertIn(field, answer.error["message"])
        self.assertEqual(client.post("/v1/embeddings", {"input": "a"}).status, 501)

    def test_metrics_are_what_the_child_says(self):
        server, client = self.serve()
        client.post("/v1/completions", {"prompt": [100, 101], "max_tokens": 5, "temperature": 0})
        metrics = client.get("/metrics").body.decode()
        self.assertRegex(metrics, r'(?m)^\S*backend_info\{\S*backend="transformers",version="1\.2\.3"\S* 1$')
        self.assertRegex(metrics, r"(?m)^\S*backend_restarts_total\S* 0$")
        self.assertRegex(metrics, r"(?m)^\S*backend_memory_bytes\S* [12]000$")
        self.assertRegex(metrics, r"(?m)^\S*generation_tokens_total\S* 5$")
        for absent in ("kv_cache_usage_perc", "num_preemptions_total", "spec_decode", "constraints_compiled"):
            self.assertNotIn(absent, metrics)
        self.assertEqual(client.get("/v1/requests").json["pools"], [])
        [child] = children_of(server.child.pid)
        server.stop()
        self.assertFalse(Path(f"/proc/{child}").exists())

    def test_a_child_that_dies_harms_its_request_alone(self):
        server, client = self.serve()
        dead = client.post("/v1/completions", {"prompt": [DIES, 101], "max_tokens": 9, "temperature": 0})
        self.assertEqual(dead.status, 500)
        self.assertIn("the child has ended (signal 9): the last words", dead.error["message"])
        alive = client.post("/v1/completions", {"prompt": [100, 101], "max_tokens": 9, "temperature": 0})
        self.assertEqual(alive.json["usage"]["completion_tokens"], 9)
        self.assertEqual(len(children_of(server.child.pid)), 1, "a zombie is left")
        self.assertEqual(client.get("/health").status, 200)
        self.assertRegex(client.get("/metrics").body.decode(), r"(?m)^\S*backend_restarts_total\S* 1$")

    def test_a_client_that_leaves_frees_the_child(self):
        _, client = self.serve()
        slow = client.open("POST", "/v1/completions", {"prompt": [SLOW, 101], "max_tokens": 400, "temperature": 0, "stream": True})
        slow.readline()
        waiting = []
        thread = threading.Thread(target=lambda: waiting.append(client.post("/v1/completions", {"prompt": [100, 101], "max_tokens": 3})))
        thread.start()
        begin = time.monotonic()
        slow.connection.close()
        slow.close()
        thread.join(30)
        self.assertEqual(waiting[0].status, 200)
        self.assertLess(time.monotonic() - begin, 15)  # of the 20 s that it would take


if __name__ == "__main__":
    unittest.main()
