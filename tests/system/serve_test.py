"""`paceline serve`: answers whole and streamed, models, health, the page."""
import json
import unittest
from concurrent.futures import ThreadPoolExecutor

from program import BUNDLED, ROOT
from serving import ServerCase, until

PROMPT = "It was a dark and stormy night"
MESSAGES = [{"role": "user", "content": "Tell me about the old house by the river."}]


class ServeTest(ServerCase):
    def tearDown(self):
        self.assertTrue(until(self.is_idle), "blocks or sequences are left")

    def is_idle(self):
        live = self.client.get("/v1/requests").json
        held = [run for pool in live["pools"] for run in pool["blocks"] if run[0] not in (0, -1)]
        return live["data"] == [] and held == []

    def complete(self, **fields):
        answer = self.client.post("/v1/completions", {"prompt": PROMPT, "seed": 7, **fields})
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def test_a_completion_has_the_apis_shape(self):
        answer = self.complete(max_tokens=5)
        self.assertEqual(answer["object"], "text_completion")
        self.assertRegex(answer["id"], "^cmpl-[0-9a-f]{24}$")
        self.assertEqual(answer["model"], BUNDLED.name)
        self.assertRegex(answer["system_fingerprint"], "^fp_[0-9a-f]{16}$")
        [choice] = answer["choices"]
        self.assertEqual((choice["index"], choice["finish_reason"], choice["logprobs"]), (0, "length", None))
        self.assertEqual(answer["usage"]["completion_tokens"], 5)

    def test_streams_say_what_whole_answers_say(self):
        for fields in [{"max_tokens": 40}, {"max_tokens": 12, "n": 3, "logprobs": 2},
                       {"max_tokens": 6, "prompt": [PROMPT, "The sea"], "n": 2, "echo": True, "logprobs": 1},
                       {"max_tokens": 6, "echo": True}, {"max_tokens": 0, "echo": True, "logprobs": 1},
                       {"max_tokens": 30, "stop": [" a", "e"]}, {"max_tokens": 9, "return_token_ids": True},
                       {"max_tokens": 4, "prompt": [[5, 6, 7], [8]], "prompt_logprobs": 1}]:
            with self.subTest(**fields):
                self.complete(**fields)  # so that both find the same prefixes
                self.compare("/v1/completions", {"prompt": PROMPT, "seed": 7, **fields})
        for fields in [{"max_tokens": 30}, {"max_tokens": 8, "n": 2, "logprobs": True, "top_logprobs": 3}]:
            with self.subTest(**fields):
                self.client.post("/v1/chat/completions", {"messages": MESSAGES, "seed": 7, **fields})
                self.compare("/v1/chat/completions", {"messages": MESSAGES, "seed": 7, **fields})

    def test_hundreds_of_streams_tell_token_after_token(self):
        count, num_tokens = 200, 24
        bodies = [{"prompt": f"{i} {PROMPT}", "max_tokens": num_tokens, "ignore_eos": True, "seed": i,
                   "return_token_ids": True, "stream_options": {"include_usage": True}} for i in range(count)]
        with ThreadPoolExecutor(count) as pool:
            streams = list(pool.map(lambda body: self.client.stream("/v1/completions", body), bodies))
        sizes = []
        for events, done in streams:
            self.assertTrue(done)
            told = [len(event["choices"][0]["token_ids"]) for event in events[:-1]]
            self.assertEqual(sum(told), num_tokens)
            self.assertEqual(events[-1]["usage"]["completion_tokens"], num_tokens)
            sizes += told
        # A token each, where the machine has time for it.
        self.assertEqual(sorted(sizes)[len(sizes) // 2], 1)

    def compare(self, path, body):
        whole = self.client.post(path, body).json
        events, done = self.client.stream(path, {**body, "stream_options": {"include_usage": True}})
        self.assertTrue(done)
        self.assertEqual(len({(event["id"], event["created"], event["model"]) for event in events}), 1)
        *pieces, last = events
        self.assertEqual((last["choices"], last["usage"]), ([], whole["usage"]))
        joined = {}
        for event in pieces:
            self.assertIsNone(event["usage"])
            [piece] = event["choices"]
            join(joined.setdefault(piece["index"], {}), piece)
        self.assertEqual([joined[choice["index"]] for choice in whole["choices"]],
                         [flat(choice) for choice in whole["choices"]])

    def test_characters_are_never_split(self):
        body = {"prompt": "naïve café — “", "max_tokens": 60, "temperature": 2, "seed": 3}
        self.compare("/v1/completions", body)

    def test_a_chat_goes_on_to_the_end_of_the_context(self):
        long = [{"role": "user", "content": "the sea " * 450}]  # of which little is left
        answer = self.client.post("/v1/chat/completions", {"messages": long, "ignore_eos": True}).json
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")
        self.assertGreater(answer["usage"]["completion_tokens"], 16)
        self.assertEqual(answer["usage"]["total_tokens"], 1024)

    def test_histories_longer_than_a_thousand_messages(self):
        short = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}] * 1000 + MESSAGES
        answer = self.client.post("/apply-template", {"messages": short})
        self.assertEqual(answer.status, 200, answer.body[:300])
        self.assertEqual(answer.json["prompt"].count("<|im_start|>user\na<|im_end|>"), 1000)
        answer = self.client.post("/v1/chat/completions", {"messages": short})
        self.assertEqual(answer.error["code"], "context_length_exceeded")

    def test_a_picture_in_a_result_does_not_end_the_conversation(self):
        call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        history = [*MESSAGES, {"role": "assistant", "tool_calls": [call]},
                   {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "seen"}, picture]}]
        answer = self.client.post("/v1/chat/completions", {"messages": history, "max_tokens": 2})
        self.assertEqual(answer.status, 200, answer.body)
        [warning] = answer.json["warnings"]
        self.assertIn("image", warning)
        self.assertIn("[image omitted: the model reads text only]",
                      self.client.post("/apply-template", {"messages": history}).json["prompt"])
        self.assertRegex(self.client.get("/metrics").body.decode(), r"paceline:omitted_parts_total\{[^}]*\} 1\n")
        answer = self.client.post("/v1/chat/completions", {"messages": [{"role": "user", "content": [picture]}]})
        self.assertEqual((answer.status, answer.error["code"]), (400, "unsupported_parameter"))

    def test_a_chat_begins_with_its_role(self):
        events, done = self.client.stream("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 4, "n": 2})
        self.assertTrue(done)
        first = [event["choices"][0] for event in events[:2]]
        self.assertEqual([choice["delta"] for choice in first], [{"role": "assistant", "content": ""}] * 2)
        self.assertEqual([choice["index"] for choice in first], [0, 1])
        self.assertNotIn("usage", events[0])

    def test_models(self):
        models = self.client.get("/v1/models").json
        self.assertEqual(models["object"], "list")
        for model in models["data"]:
            self.assertEqual(self.client.get("/v1/models/" + model["id"]).json, model)
            self.assertEqual(self.complete(model=model["id"], max_tokens=1)["model"], BUNDLED.name)
        for answer in [self.client.get("/v1/models/nothing"),
                       self.client.post("/v1/completions", {"prompt": "x", "model": "nothing"})]:
            self.assertEqual((answer.status, answer.error["code"]), (404, "model_not_found"))
            self.assertEqual(answer.error["param"], "model")

    def test_what_is_wrong_is_said(self):
        for body, status, code, param in [
                ({"promt": "x"}, 400, "unknown_parameter", "promt"), ({}, 400, "missing_required_parameter", "prompt"),
                ({"prompt": "x", "suffix": "y"}, 400, "unsupported_parameter", "suffix"),
                ({"prompt": "x", "temperature": 3}, 400, "invalid_value", "temperature"),
                ({"prompt": [1] * 2000}, 400, "context_length_exceeded", "prompt"),
                ({"prompt": [999999]}, 400, "invalid_value", "prompt"), ("{", 400, "invalid_value", None),
                ("[]", 400, "invalid_value", None)]:
            with self.subTest(body=body):
                answer = self.client.post("/v1/completions", body)
                self.assertEqual((answer.status, answer.error["code"]), (status, code), answer.body)
                self.assertEqual(set(answer.error), {"message", "type", "param", "code"})
                self.assertEqual((answer.error["param"] or "").split("[")[0], param or "")

    def test_routes(self):
        for method, path, status, code in [
                ("GET", "/nothing", 404, "unknown_url"), ("GET", "/page/nothing.js", 404, "unknown_url"),
                ("GET", "/page/../main.js", 404, "unknown_url"), ("POST", "/v1/images", 404, "unknown_url"),
                ("GET", "/v1/responses/x", 404, "response_not_found"),
                ("GET", "/v1/completions", 405, "method_not_allowed"), ("DELETE", "/v1/models", 405, "method_not_allowed")]:
            with self.subTest(path=path):
                answer = self.client.ask(method, path)
                self.assertEqual((answer.status, answer.error["code"]), (status, code))
                self.assertTrue(answer.headers["x-request-id"])
        self.assertEqual(self.client.get("/v1/completions").headers["Allow"], "POST")
        for method, path, nearest in [("POST", "/v1/chat/completion", "POST /v1/chat/completions"),
                                      ("POST", "/v1/v1/chat/completions", "POST /v1/chat/completions"),
                                      ("POST", "/api/chat/completions", "POST /v1/chat/completions"),
                                      ("POST", "/v1/embedding", "POST /v1/embeddings"), ("GET", "/v1/model", "GET /v1/models"),
                                      ("GET", "/api/models", "GET /v1/models"), ("GET", "/healthz", "GET /health")]:
            error = self.client.ask(method, path).json["error"]
            message = error if path.startswith("/api/") else error["message"]  # Ollama's shape
            self.assertIn(f"did you mean {nearest}?", message)
            self.assertLess(len(message), 300)
        for path in ("/v1/files", "/x" * 4000):
            message = self.client.get(path).error["message"]
            self.assertIn("POST /v1/completions", message)
            self.assertNotIn("did you mean", message)

    def test_health_and_version(self):
        for path in ["/health", "/live", "/ready"]:
            self.assertEqual(self.client.get(path).json, {"status": "ok"})
        self.assertIn("version", self.client.get("/version").json)
        self.assertEqual(self.client.ask("HEAD", "/health").status, 200)

    def test_the_page_is_what_the_repository_has(self):
        folder = ROOT / "src/server/page"
        for file in folder.iterdir():
            self.assertEqual(self.client.get(f"/page/{file.name}").body, file.read_bytes())
        answer = self.client.get("/")
        self.assertEqual(answer.body, (folder / "index.html").read_bytes())
        self.assertEqual(answer.headers["Content-Type"], "text/html; charset=utf-8")

    def test_request_ids(self):
        answer = self.client.get("/health", headers={"x-request-id": "mine-1"})
        self.assertEqual(answer.headers["x-request-id"], "mine-1")
        self.assertTrue(until(lambda: any("mine-1" in line for line in self.server.lines)))
        for bad in ["a b", "x" * 200]:
            answer = self.client.get("/health", headers={"x-request-id": bad})
            self.assertRegex(answer.headers["x-request-id"], "^req_[0-9a-f]{24}$")


def flat(choice):
    """The parts of a whole choice that a stream must add up to."""
    message = choice.get("message")
    parts = {"text": message["content"] if message else choice["text"], "finish_reason": choice["finish_reason"],
             "stop_reason": choice["stop_reason"], "seed": choice["seed"], "logprobs": tokens_of(choice["logprobs"])}
    for name in ["token_ids", "prompt_logprobs"]:
        if name in choice:
            parts[name] = choice[name]
    return parts


def join(sum_, piece):
    text = piece["delta"].get("content", "") if "delta" in piece else piece["text"]
    sum_["text"] = sum_.get("text", "") + text
    sum_["finish_reason"] = piece["finish_reason"]
    sum_.setdefault("logprobs", None)
    if piece["logprobs"]:
        sum_["logprobs"] = (sum_["logprobs"] or []) + tokens_of(piece["logprobs"])
    if "token_ids" in piece:
        sum_["token_ids"] = sum_.get("token_ids", []) + piece["token_ids"]
    for name in ["stop_reason", "seed", "prompt_logprobs"]:
        if name in piece:
            sum_[name] = piece[name]


def tokens_of(logprobs):
    """Both shapes as a list, one entry a token."""
    if logprobs is None:
        return None
    if "content" in logprobs:
        return logprobs["content"]
    return [json.dumps(token) for token in zip(logprobs["tokens"], logprobs["token_logprobs"],
                                               logprobs["top_logprobs"], logprobs["text_offset"])]


if __name__ == "__main__":
    unittest.main()
