"""Recorded answers of every route, whole and streamed, and errors: /openapi.json describes their members and no others."""
import json
import random
import tempfile
import unittest
from pathlib import Path

from contract_case import MESSAGES, PROMPT, ContractCase

from adapter_files import MODEL, write_adapter
from answers_test import CHATS, COMPLETIONS, drawn
from program import BUNDLED, ROOT
from serving import Client, Server, parse_events, until
from structured_case import TEMPLATE

EMBEDDINGS = ROOT / "tests/goldens/embeddings"
NUM_ANSWERS = 500
UNSEEN = {("LlamaProps", "bos_token"),  # no model here has one
          ("Response", "code"), ("Response", "message")}  # of one that failed while it was computed
# Streams of llama.cpp's routes have no [DONE].
LLAMA = {"/completion", "/completions", "/infill"}
FIND = {"type": "function", "function": {"name": "find_house", "parameters": {
    "type": "object", "required": ["number"], "additionalProperties": False,
    "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 99}}}}}
LONG = {"prompt": PROMPT, "max_tokens": 1500, "ignore_eos": True, "stream": True}
LOOSE = {"response_format": {"type": "json_schema", "json_schema": {
    "name": "x", "schema": {"type": "array", "uniqueItems": True}}}}  # not enforced as a whole
CALL = {"tools": [FIND], "tool_choice": "required", "max_tokens": 60, "reasoning_effort": "none"}


class OpenApiTest(ContractCase):
    options = ("--chat-template", str(TEMPLATE), "--no-adaptive-drafts")

    def check(self, name, answer):
        self.members |= self.document.members_in(name, super().check(name, answer))
        return answer

    def check_answer(self, method, path, answer):
        """One answer against its route's row; returns what was parsed."""
        self.num_answers += 1
        described = self.document.responses_of(method, path)
        self.assertIn(str(answer.status), described, (path, answer.body))
        media = answer.headers["Content-Type"].split(";")[0]
        self.routes.add((method, path.split("?")[0]))
        if answer.status >= 400:
            self.assertEqual(media, "application/json")
            schema = self.document.schema_of(method, path, answer.status)
            if schema != "Error":  # an API with errors of its own
                self.check(schema, answer.json)
                return None
            text = self.document.responses[str(answer.status)]["description"]
            error = self.check("Error", answer.json)["error"]
            self.assertIn(error["code"], text, (path, error))
            self.errors.add((answer.status, error["code"]))
            return error
        self.assertIn(media, described["200"]["content"])
        if media == "text/event-stream":
            events, done = parse_events(answer.body.decode())
            self.assertEqual(done, path not in LLAMA and path not in ("/v1/messages", "/v1/responses"))
            schema = self.document.schema_of(method, path, media=media)
            return [self.check(schema, event) for event in events]
        if media == "application/x-ndjson":
            schema = self.document.schema_of(method, path, media=media)
            return [self.check(schema, json.loads(line)) for line in answer.body.splitlines()]
        if media == "application/json":
            return self.check(self.document.schema_of(method, path), answer.json)
        return answer.body

    def send(self, path, body, client=None, method="POST", **options):
        return self.check_answer(method, path, (client or self.client).ask(method, path, body, **options))

    def both(self, path, body, client=None):
        self.send(path, {name: value for name, value in body.items() if name != "stream_options"}, client)
        self.send(path, {**body, "stream": True}, client)

    def other_server(self, *options, **more):
        server = Server(*options, **more)
        self.addCleanup(server.stop)
        return Client(server.port, "k" if "--api-key" in options else None)

    def generations(self):
        choices = random.Random(21)
        for i in range(60):
            body = {"seed": i, **drawn(choices, COMPLETIONS)}
            if body["max_tokens"] == 0:
                body["n"] = 1
            if i % 2 == 0:
                body["stream_options"] = {"include_usage": True}
            self.both("/v1/completions", body)
            self.both("/v1/chat/completions", {"messages": MESSAGES, "seed": i, **drawn(choices, CHATS)})
        usage = {"stream_options": {"continuous_usage_stats": True, "include_usage": True}}
        for fields in [{"logprobs": True, "top_logprobs": 3}, usage, {"timings": True}, {"logprobs": True}]:
            self.both("/chat/completions", {"messages": MESSAGES, "max_tokens": 6, **fields})
        for fields in [{}, {"logprobs": 2}, {"n_probs": 3}, {"logprobs": 0, "prompt_logprobs": 1}, {"timings": True},
                       {"return_tokens_as_token_ids": True, "logprobs": 1}, {"stop": "e"}, usage]:
            self.both("/generate", {"prompt": PROMPT, "max_tokens": 9, "seed": 3, **fields})
        for path in ["/completion", "/completions"]:
            for fields in [{}, {"n_probs": 3}, {"stop": ["e"]}, {"ignore_eos": True, "n_cmpl": 2}, {"return_tokens": True},
                           {"prompt": [PROMPT, [7, 8, "The sea"]]}, {"prompt_logprobs": 1}]:
                self.both(path, {"prompt": PROMPT, "n_predict": 9, "seed": 3, **fields})

    def messages(self):
        ask = {"messages": MESSAGES[1:], "system": MESSAGES[0]["content"], "max_tokens": 20, "seed": 4}
        tool = {"name": "find_house", "input_schema": FIND["function"]["parameters"]}
        think = self.client.post("/tokenize", {"content": "<think>", "add_special": False}).json["tokens"][0]
        schema = {"type": "string", "pattern": "^[a-z]{4}$"}
        for fields in [{}, {"tools": [tool, {"type": "web_search_20250305", "name": "web_search"}], "tool_choice": {"type": "any"},
                            "max_tokens": 60, "thinking": {"type": "disabled"}},
                       {"stop_sequences": ["e"]}, {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 40,
                                                   "logit_bias": {str(think): 40}, "output_config": {"format": {
                                                       "type": "json_schema", "schema": schema}}}]:
            self.both("/v1/messages", {**ask, **fields})
        self.send("/v1/messages/count_tokens", {"messages": MESSAGES[1:]})

    def ollama(self):
        think, call = (self.client.post("/tokenize", {"content": text, "add_special": False}).json["tokens"][0]
                       for text in ["<think>", "<tool_call>"])
        word = {"type": "string", "pattern": "^[a-z]{4}$"}
        options = {"num_predict": 40, "seed": 4}
        for fields in [{}, {"logprobs": True, "top_logprobs": 2}, {"format": {"type": "array", "uniqueItems": True}},
                       {"think": True, "format": word, "options": {**options, "logit_bias": {str(think): 40}}}]:
            self.both("/api/chat", {"messages": MESSAGES, "stream": False, "options": options, **fields})
            self.both("/api/generate", {"prompt": PROMPT, "stream": False, "options": options, **fields})
        # Where the content is a string, the mark of a call begins no other answer.
        self.both("/api/chat", {"messages": MESSAGES, "stream": False, "tools": [FIND], "format": word, "think": False,
                                "options": {"num_predict": 90, "seed": 4, "logit_bias": {str(call): 100}}})
        self.send("/api/embed", {"input": [PROMPT, "a"]})
        self.send("/api/embeddings", {"prompt": PROMPT})
        for path in ["/api/chat", "/api/show"]:
            self.send(path, {})
        self.send("/api/delete", {"model": "x"}, method="DELETE")

    def responses(self):
        ask = {"input": MESSAGES[1]["content"], "max_output_tokens": 9, "seed": 4}
        path = "/v1/responses"
        think = self.client.post("/tokenize", {"content": "<think>", "add_special": False}).json["tokens"][0]
        reason = {"logit_bias": {str(think): 40}, "max_output_tokens": 40, "include": ["reasoning.encrypted_content"],
                  "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "string", "pattern": "^[a-z]{4}$"}}}}
        function = {"type": "function", "name": "find_house", "parameters": FIND["function"]["parameters"]}
        must = {"tool_choice": "required", "max_output_tokens": 60, "reasoning": {"effort": "none"}}
        custom = {"type": "custom", "name": "say", "format": {"type": "grammar", "syntax": "regex", "definition": "[a-z]{4}"}}
        for fields in [{}, {"store": False, "include": ["message.output_text.logprobs"], "top_logprobs": 1}, reason,
                       {**reason, "reasoning": {"summary": "auto"}}, {**must, "tools": [function, {"type": "web_search"}]},
                       {**must, "tools": [custom]}, {"input": [{"type": "compaction_trigger"}]}]:
            self.both(path, {**ask, **fields})
        self.send(path, {**ask, "background": True})
        first = self.send(path, ask)["id"]
        self.send(path, {**ask, "previous_response_id": first})
        for method, rest in [("GET", ""), ("GET", "/input_items"), ("POST", "/cancel"), ("DELETE", ""), ("GET", "")]:
            self.send(f"{path}/{first}{rest}", None, method=method)
        self.send(path + "/compact", {"input": "x"})
        self.send(path + "/input_tokens", {"input": "x"})

    def chats_with_more(self):
        breaks = self.client.post("/tokenize", {"content": "\n", "add_special": False}).json["tokens"]
        think = self.client.post("/tokenize", {"content": "<think>", "add_special": False}).json["tokens"][0]
        calm = {"messages": MESSAGES, "logit_bias": {str(token): -100 for token in breaks}}
        for seed in range(6):
            self.both("/v1/chat/completions", {**calm, **CALL, "seed": seed})
            self.both("/v1/chat/completions", {**calm, **CALL, "seed": seed, "logprobs": True, "parallel_tool_calls": False})
            self.both("/v1/chat/completions", {**calm, "tools": [FIND], "max_tokens": 9, "seed": seed})
            thinking = {**calm, "logit_bias": {str(think): 40}, "guided_regex": "[a-z]{4}", "reasoning_effort": "low",
                        "max_tokens": 40, "seed": seed}
            self.both("/v1/chat/completions", thinking)
        self.both("/v1/chat/completions", thinking, self.other_server(*self.options, "--reasoning-field", "reasoning"))
        self.both("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 9, **LOOSE})
        self.both("/v1/completions", {"prompt": PROMPT, "max_tokens": 9, **LOOSE})

    def drafts(self):
        drafting = self.other_server("--no-adaptive-drafts", "--speculative-method", "ngram")
        chat = {"messages": MESSAGES, "max_tokens": 40, "seed": 3, "timings": True}
        text = self.send("/v1/chat/completions", chat, drafting)["choices"][0]["message"]["content"]
        chat["prediction"] = {"type": "content", "content": text}
        self.send("/v1/chat/completions", chat, drafting)
        accepted = {"stream": True, "stream_options": {"include_usage": True, "include_accepted": True}}
        self.send("/v1/chat/completions", {**chat, **accepted}, drafting)
        again = {"prompt": "one two three four " * 12, "max_tokens": 40, "temperature": 0, "timings": True}
        for path in ["/v1/completions", "/generate"]:
            self.send(path, again, drafting)
            self.send(path, {**again, **accepted}, drafting)
        for path in ["/v1/requests", "/slots"]:
            self.send(path, None, drafting, "GET")

    def texts(self):
        for fields in [{}, {"labels": [" night", " day"]}, {"with_logits": True}, {"input": [[5, 6], [7]], "seed": 4}]:
            self.send("/v1/classify", {"input": PROMPT, **fields})
        questions = [{"type": "predicate", "instructions": "Is it dark?", "name": "dark"},
                     {"type": "choice", "instructions": "When?", "choices": [{"value": "night"}, {"value": True, "description": "day"}]},
                     {"type": "score", "instructions": "How stormy?", "levels": [{"label": "calm"}, {"label": "wild"}]}]
        for fields in [{}, {"temperature": 2, "content_free_input": "N/A"}, {"input": MESSAGES}]:
            self.send("/v1/decisions", {"input": PROMPT, "questions": questions, **fields})
        self.send("/v1/systemone", {"state": {"text": PROMPT}, "questions": {
            "dark": {"type": "noul", "instructions": "Is it dark?"}, "when": {"type": "choice", "criteria": {"night": None, "day": "light"}},
            "wild": {"type": "score", "instructions": "How stormy?", "criteria": ["calm", "wild"]}}})
        for fields in [{}, {"encoding_format": "base64"}, {"input": [PROMPT, "a"]}, {"input": [[5, 6, 7]]}]:
            self.send("/v1/embeddings", {"input": PROMPT, **fields})
        for fields in [{}, {"top_logprobs": 3}, {"input": [PROMPT, "a"]}]:
            self.send("/v1/score_tokens", {"input": PROMPT, **fields})
        for body in [{"prompt": PROMPT}, {"content": "é", "with_pieces": True}, {"messages": MESSAGES},
                     {"prompt": PROMPT, "return_token_strs": True}]:
            self.send("/tokenize", body)
        self.send("/detokenize", {"tokens": [5, 6, 7]})
        for fields in [{}, {"tools": [FIND]}]:
            self.send("/apply-template", {"messages": MESSAGES, **fields})

    def other_models(self):
        ranks = self.other_server(model=EMBEDDINGS / "reranker")
        for body in [{"text_1": "a", "text_2": ["b", "c"]}, {"text_1": ["a", "b"], "text_2": ["c", "d"]}]:
            self.send("/v1/score", body, ranks)
        for path in ["/v1/rerank", "/rerank"]:
            for fields in [{}, {"return_documents": True}, {"top_n": 1}]:
                self.send(path, {"query": "a", "documents": ["b", {"text": "c"}], **fields}, ranks)
        labels = self.other_server(model=EMBEDDINGS / "classifier")
        for fields in [{}, {"with_logits": True}, {"input": ["a", "b"]}]:
            self.send("/v1/classify", {"input": "a", **fields}, labels)
        self.send("/props", None, labels, "GET")
        with tempfile.TemporaryDirectory() as folder:
            adapter = write_adapter(Path(folder) / "a", 1)
            tiny = self.other_server("--lora", f"one={adapter}", "--allow-runtime-lora", "--lora-directory", folder,
                                     "--api-key", "k", model=MODEL)
            for model in self.send("/v1/models", None, tiny, "GET")["data"]:
                self.send("/v1/models/" + model["id"], None, tiny, "GET")
            self.both("/v1/completions", {"model": "one", "prompt": [5, 6, 7], "max_tokens": 4}, tiny)
            self.both("/generate", {"prompt": [5, 6, 7], "max_tokens": 4}, tiny)
            self.send("/v1/load_lora_adapter", {"lora_name": "two", "lora_path": str(adapter)}, tiny)
            self.send("/v1/unload_lora_adapter", {"lora_name": "two"}, tiny)
            self.send("/v1/unload_lora_adapter", {"lora_name": "three"}, tiny)
            self.send("/models", None, tiny, "GET")
            (Path(folder) / "broken").mkdir()
            (Path(folder) / "broken/config.json").write_text((BUNDLED / "config.json").read_text())
            several = self.other_server("--models-dir", folder)
            self.send("/models/load", {"model": "broken"}, several)
            self.assertTrue(until(lambda: "failed" in str(several.get("/models").json)))
            self.send("/models", None, several, "GET")
        self.send("/models/unload", {"model": "classifier"}, labels)
        self.send("/models/load", {"model": "none"}, labels)

    def states(self):
        running = self.client.open("POST", "/v1/completions", LONG)
        with running.connection:
            running.read(1)
            self.assertTrue(until(lambda: self.client.get("/v1/requests").json["data"]))
            for path in ["/v1/requests", "/slots"]:
                self.send(path, None, method="GET")
        for path, operations in self.document.paths.items():
            if "get" in operations and "{" not in path:
                self.send(path, None, method="GET")
        self.send("/page/none", None, method="GET")
        self.send("/v1/models/none", None, method="GET")

    def refusals(self):
        wrong = [{}, {"no_such_field": 1}, [], {"model": "none"}, {"model": 7}, {"input": PROMPT, "messages": 3, "prompt": {}},
                 {"stream": 1, "max_tokens": -4, "tokens": "a"}]
        for path, operations in self.document.paths.items():
            if "post" not in operations:
                continue
            for body in wrong:
                self.send(path, body)
            for body in ["{", "", b"\xff"]:
                self.send(path, body)
        self.send("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 9, "tools": [FIND], "tool_choice": 4})
        self.send("/v1/completions", {"prompt": [5] * 5000})
        self.send("/v1/completions", {"prompt": PROMPT, "temperature": 3})
        self.send("/v1/completions", {"prompt": PROMPT, "suffix": "x"})
        self.send("/infill", {"input_prefix": "a", "input_suffix": "b"})
        self.send("/v1/score", {"text_1": "a", "text_2": "b"})
        self.send("/v1/completions", {"prompt": PROMPT}, headers={"Content-Type": "application/xml"})
        self.send("/v1/completions", b"{" + b" " * (9 << 20))
        self.send("/v1/models", None, method="GET", headers={"Host": "evil.example"})
        self.send("/v1/models?" + "x" * 9000, None, method="GET")
        self.send("/v1/models", None, method="GET", headers={"X-Long": "x" * 9000})
        self.send("/v1/models", None, self.other_server("--api-key", "k"), method="GET", headers={"Authorization": "Bearer no"})
        full = self.other_server("--max-requests", "1")
        held = full.open("POST", "/v1/completions", LONG)
        with held.connection:
            held.read(1)
            self.send("/v1/completions", {"prompt": PROMPT}, full)
        slow = self.other_server("--request-timeout", "1")
        events, done = slow.stream("/v1/completions", {**LONG, "n": 16})
        self.assertFalse(done)
        self.assertEqual(self.check("Error", events[-1])["error"]["code"], "request_timeout")
        # What has no row of its own.
        for method, path, status in [("GET", "/nothing", 404), ("PUT", "/v1/models", 405),
                                     ("POST", "/v1/images/generations", 404)]:
            answer = self.client.ask(method, path, None if method == "GET" else {})
            self.assertEqual(answer.status, status)
            self.check("Error", answer.json)

    def test_recorded_answers(self):
        self.routes, self.errors, self.members, self.num_answers = set(), set(), set(), 0
        for record in [self.generations, self.messages, self.ollama, self.responses, self.chats_with_more, self.drafts, self.texts, self.other_models, self.states,
                       self.refusals]:
            with self.subTest(record.__name__):
                record()
        self.assertGreaterEqual(self.num_answers, NUM_ANSWERS)
        told = {(method.upper(), path) for path, operations in self.document.paths.items() for method in operations}
        asked = {(method, self.document.row_of(path)) for method, path in self.routes}
        self.assertEqual(told - asked, set())
        self.assertEqual({status for status, _ in self.errors}, {400, 401, 403, 404, 413, 414, 415, 429, 431, 501})
        self.assertEqual(self.document.members() - self.members, UNSEEN)


if __name__ == "__main__":
    unittest.main()
