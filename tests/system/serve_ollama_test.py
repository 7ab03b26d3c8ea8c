"""`paceline serve`: Ollama's routes, in its formats, with the bits of OpenAI's."""
import json
import re
import tempfile
import unittest
from pathlib import Path

from embed_test import MODEL as EMBEDDER
from program import ROOT
from serving import Client, Server, ServerCase

TEMPLATE = ROOT / "tests/contract/tool_template.jinja"
MESSAGES = [{"role": "user", "content": "Tell me of the night."}]
OPTIONS = {"seed": 4, "temperature": 0.8, "top_k": 40, "top_p": 0.95, "num_predict": 12}
CHAT = {"seed": 4, "temperature": 0.8, "top_k": 40, "top_p": 0.95, "max_tokens": 12}
TIMES = {"total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"}
END = {"model", "created_at", "done", "done_reason", *TIMES}
TOOL = {"type": "function", "function": {"name": "find", "description": "Finds a house.", "parameters": {
    "type": "object", "properties": {"number": {"type": "integer"}}}}}


class OllamaCase(ServerCase):
    options = ("--chat-template", TEMPLATE)

    def post(self, path, **body):
        answer = self.client.post(path, body)
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        return answer.json

    def lines(self, path, **body):
        """The objects of a stream: each line is one, and the last one alone is done."""
        answer = self.client.post(path, body)
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.headers["Content-Type"], "application/x-ndjson")
        self.assertTrue(answer.body.endswith(b"\n"))
        objects = [json.loads(line) for line in answer.body.split(b"\n")[:-1]]
        self.assertEqual([one["done"] for one in objects], [False] * (len(objects) - 1) + [True])
        return objects

    def refusal(self, path, status, **body):
        answer = self.client.post(path, body)
        self.assertEqual((answer.status, set(answer.json)), (status, {"error"}), answer.body)
        return answer.json["error"]


class OllamaRoutesTest(OllamaCase):
    def test_a_chat_has_the_bits_of_the_other_route(self):
        chat = self.post("/v1/chat/completions", messages=MESSAGES, **CHAT)
        whole = self.post("/api/chat", messages=MESSAGES, options=OPTIONS, stream=False)
        self.assertEqual(set(whole), END | {"message"})
        self.assertEqual(whole["message"], {"role": "assistant", "content": chat["choices"][0]["message"]["content"]})
        self.assertEqual((whole["done"], whole["done_reason"]), (True, "length"))
        self.assertEqual((whole["prompt_eval_count"], whole["eval_count"]), (chat["usage"]["prompt_tokens"], 12))
        self.assertRegex(whole["created_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertGreaterEqual(whole["total_duration"], whole["prompt_eval_duration"] + whole["eval_duration"])
        *pieces, last = self.lines("/api/chat", messages=MESSAGES, options=OPTIONS)
        self.assertGreater(len(pieces), 1)
        self.assertEqual("".join(one["message"]["content"] for one in pieces), whole["message"]["content"])
        self.assertEqual((set(last), last["message"]["content"]), (END | {"message"}, ""))

    def test_a_name_may_have_the_tag_latest(self):
        [model] = self.client.get("/api/tags").json["models"]
        self.assertTrue(model["name"].endswith(":latest"))
        answer = self.post("/api/chat", model=model["name"], messages=MESSAGES, options=OPTIONS, stream=False)
        self.assertEqual(answer["model"], model["name"])
        message = self.refusal("/api/chat", 404, model="other", messages=MESSAGES)
        self.assertIn('found "other"', message)

    def test_generate(self):
        prompt = "It was a dark and stormy night"
        raw = self.post("/api/generate", prompt=prompt, raw=True, options=OPTIONS, stream=False)
        text = self.post("/v1/completions", prompt=prompt, **CHAT)
        self.assertEqual((raw["response"], set(raw)), (text["choices"][0]["text"], END | {"response"}))
        told = self.post("/api/generate", prompt=prompt, system="Be brief.", options=OPTIONS, stream=False)
        chat = self.post("/v1/chat/completions", **CHAT, return_token_ids=True, messages=[
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": prompt}])
        self.assertEqual(told["response"], chat["choices"][0]["message"]["content"])
        self.assertEqual(told["context"][-12:], chat["choices"][0]["token_ids"])
        self.assertEqual(len(told["context"]), told["prompt_eval_count"] + 12)
        *pieces, last = self.lines("/api/generate", prompt=prompt, system="Be brief.", options=OPTIONS)
        self.assertEqual("".join(one["response"] for one in pieces), told["response"])
        self.assertEqual(last["context"], told["context"])
        more = self.post("/api/generate", prompt="And then?", context=told["context"], options=OPTIONS, stream=False)
        self.assertEqual(more["context"][:len(told["context"])], told["context"])
        self.assertGreater(more["prompt_eval_count"], len(told["context"]))

    def test_format_constrains_the_answer(self):
        schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 1, "maximum": 99}},
                  "required": ["age"], "additionalProperties": False}
        for path, asked in [("/api/chat", {"messages": MESSAGES}), ("/api/generate", {"prompt": "x"})]:
            # The bundled model may fill its tokens with white space, less so with a penalty.
            answers = (self.post(path, **asked, format=schema, think=False, stream=False,
                                 options={"num_predict": 40, "seed": seed, "repeat_penalty": 1.5}) for seed in range(50))
            answer = next(answer for answer in answers if answer["done_reason"] == "stop")
            text = answer["message"]["content"] if path == "/api/chat" else answer["response"]
            self.assertEqual(set(json.loads(text)), {"age"})
        self.post("/api/chat", messages=MESSAGES, format="json", options=OPTIONS, stream=False)

    def test_tools_and_their_results_are_in_the_prompt(self):
        history = [*MESSAGES, {"role": "assistant", "content": "", "thinking": "A house.", "tool_calls": [
            {"function": {"name": "find", "arguments": {"number": 7}}}]},
            {"role": "tool", "content": "7 is red.", "tool_name": "find"}]
        found = self.post("/api/chat", messages=history, tools=[TOOL], options=OPTIONS, stream=False)
        chat = self.post("/v1/chat/completions", tools=[TOOL], **CHAT, messages=[
            *MESSAGES, {"role": "assistant", "content": "", "reasoning_content": "A house.", "tool_calls": [
                {"id": "call00000", "type": "function", "function": {"name": "find", "arguments": '{"number": 7}'}}]},
            {"role": "tool", "content": "7 is red.", "tool_call_id": "call00000"}])
        self.assertEqual(found["prompt_eval_count"], chat["usage"]["prompt_tokens"])
        self.assertEqual(found["message"]["content"], chat["choices"][0]["message"]["content"])

    def test_log_probabilities(self):
        body = {"messages": MESSAGES, "logprobs": True, "top_logprobs": 2, "options": OPTIONS}
        whole = self.post("/api/chat", **body, stream=False)["logprobs"]
        self.assertEqual((len(whole), len(whole[0]["top_logprobs"])), (12, 2))
        self.assertEqual(sum((line.get("logprobs", []) for line in self.lines("/api/chat", **body)), []), whole)

    def test_a_request_without_input_loads_the_model(self):
        for path, text in [("/api/chat", {"message": {"role": "assistant", "content": ""}}),
                           ("/api/generate", {"response": ""})]:
            answer = self.post(path)
            self.assertEqual({name: answer[name] for name in answer if name not in ("model", "created_at")},
                             {**text, "done": True, "done_reason": "load"})

    def test_descriptions(self):
        [listed] = self.client.get("/api/tags").json["models"]
        [loaded] = self.client.get("/api/ps").json["models"]
        self.assertEqual(listed["name"], loaded["name"])
        self.assertEqual((listed["details"]["family"], listed["details"]["quantization_level"]), ("qwen3", "BF16"))
        self.assertGreaterEqual(len(listed["digest"]), 12)
        self.assertGreater(loaded["size"], 0)
        shown = self.post("/api/show", model=listed["model"])
        self.assertEqual(shown["capabilities"], ["completion", "tools", "thinking"])
        self.assertEqual(shown["template"], TEMPLATE.read_text())
        self.assertEqual(shown["model_info"]["general.architecture"], "qwen3")
        self.assertEqual(shown["model_info"]["qwen3.context_length"], loaded["context_length"])
        self.assertEqual(self.post("/api/show"), shown)
        self.refusal("/api/show", 404, model="other")
        version = self.client.get("/api/version").json["version"]
        # As Open WebUI compares versions.
        self.assertEqual(len([int(part) for part in re.sub(r"^v|-.*", "", version).split(".")]), 3)
        self.assertEqual(self.client.ask("HEAD", "/api/tags").status, 200)

    def test_what_is_refused(self):
        for path in ["pull", "push", "create", "copy"]:
            self.assertIn(f"/api/{path}: not supported", self.refusal(f"/api/{path}", 501, model="x"))
        self.assertEqual(self.client.ask("DELETE", "/api/delete", {"model": "x"}).status, 501)
        for path, body, word in [
                ("/api/chat", {"messages": [{"role": "user", "content": "x", "images": ["aGk="]}]}, "images"),
                ("/api/chat", {"messages": MESSAGES, "options": {"mirostat": 2}}, "options.mirostat"),
                ("/api/chat", {"messages": MESSAGES, "format": "xml"}, "format"),
                ("/api/generate", {"prompt": "x", "template": "{{ .Prompt }}"}, "template"),
                ("/api/generate", {"prompt": "x", "context": [1 << 20]}, "context"),
                ("/api/generate", {"prompt": "x " * 5000}, "context length")]:
            self.assertIn(word, self.refusal(path, 400, **body), body)
        answer = self.client.post("/api/chat", "{")
        self.assertEqual((answer.status, set(answer.json)), (400, {"error"}))


class ThinkingTest(unittest.TestCase):
    TEMPLATE = """{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>
{% if enable_thinking is defined and not enable_thinking %}
</think>

{% endif %}{% endif %}"""

    def test_reasoning_is_a_member_of_its_own(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        template = Path(folder.name) / "template.jinja"
        template.write_text(self.TEMPLATE)
        server = Server("--chat-template", template)
        self.addCleanup(server.stop)
        client = Client(server.port)
        body = {"messages": MESSAGES, "options": OPTIONS, "stream": False}
        told = client.post("/api/chat", {**body, "think": True}).json["message"]
        self.assertEqual((told["content"], bool(told["thinking"])), ("", True))
        lines = client.post("/api/chat", {**body, "stream": True}).body.splitlines()
        thinking = [json.loads(line)["message"].get("thinking", "") for line in lines]
        self.assertEqual("".join(thinking), told["thinking"])
        plain = client.post("/api/chat", {**body, "think": False}).json["message"]
        self.assertEqual((bool(plain["content"]), "thinking" in plain), (True, False))
        generated = client.post("/api/generate", {**body, "prompt": MESSAGES[0]["content"]} | {"messages": None}).json
        self.assertEqual((generated["response"], generated["thinking"]), ("", told["thinking"]))


class OllamaEmbeddingsTest(unittest.TestCase):
    def test_vectors_are_those_of_the_other_route(self):
        server = Server(model=EMBEDDER)
        self.addCleanup(server.stop)
        client = Client(server.port)
        texts = ["a house", "a red house"]
        expected = [one["embedding"] for one in client.post("/v1/embeddings", {"input": texts}).json["data"]]
        answer = client.post("/api/embed", {"input": texts, "keep_alive": "5m", "options": {"num_ctx": 8}}).json
        self.assertEqual(answer["embeddings"], expected)
        self.assertGreater(answer["prompt_eval_count"], 4)
        self.assertEqual(client.post("/api/embed", {"input": texts[0]}).json["embeddings"], expected[:1])
        self.assertEqual(client.post("/api/embeddings", {"prompt": texts[1]}).json, {"embedding": expected[1]})
        self.assertEqual(client.post("/api/embed", {"input": ""}).json["embeddings"], [])
        long = "house " * 20000
        self.assertEqual(client.post("/api/embed", {"input": long}).status, 200)
        refused = client.post("/api/embed", {"input": long, "truncate": False})
        self.assertEqual((refused.status, set(refused.json)), (400, {"error"}))


if __name__ == "__main__":
    unittest.main()
