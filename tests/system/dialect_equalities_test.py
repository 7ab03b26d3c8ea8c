"""The same conversation through every API gives the same tokens: drawn conversations and options, whole and streamed."""
import json
import os
import random
import unittest

from program import IS_SANITIZED
from serving import ServerCase, parse_events

NUM_DRAWS = 2000 if os.environ.get("PACELINE_TEST_SCALE") == "full" else 6 if IS_SANITIZED else 40
WORDS = "the house was red and a dog ran over to it in night rain while old ships came home".split()


class Draw:
    """A conversation, and options that every API has under one name or another."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.stream = self.random.random() < 0.5
        system = [("system", self.text(8))] if self.random.random() < 0.4 else []
        turns = [("user", self.text(20))]
        for _ in range(self.random.choice([0, 0, 1, 2])):
            turns += [("assistant", self.text(10)), ("user", self.text(10))]
        self.messages = [{"role": role, "content": text} for role, text in system + turns]
        self.max_tokens = self.random.randint(1, 24)
        self.options = {"temperature": self.random.choice([0, 0.5, 1, 1.5]), "seed": self.random.getrandbits(31)}
        for name, low, high in [("top_p", 0.3, 1), ("min_p", 0, 0.2)]:
            if self.random.random() < 0.5:
                self.options[name] = round(self.random.uniform(low, high), 3)
        if self.random.random() < 0.5:
            self.options["top_k"] = self.random.randint(1, 50)
        self.stop = [self.random.choice(WORDS)] if self.random.random() < 0.3 else []

    def text(self, most):
        return " ".join(self.random.choice(WORDS) for _ in range(self.random.randint(1, most)))


class DialectEqualities(ServerCase):
    """Each method that begins with `by_` asks one API, and returns the answer's text."""
    options = ("--chat-template", "chatml")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.paths = cls.client.get("/openapi.json").json["paths"]

    def ask(self, path, draw, body):
        """The answer's object, or those of a stream."""
        answer = self.client.post(path, body | {"stream": draw.stream})
        self.assertEqual(answer.status, 200, answer.body)
        if not draw.stream:
            return [answer.json]
        if answer.headers["Content-Type"] == "application/x-ndjson":
            return [json.loads(line) for line in answer.body.splitlines()]
        return self.events(answer.body.decode())

    @staticmethod
    def events(text):
        """Events with names (OpenAI's Responses, Anthropic's) or without."""
        if not text.startswith("event: "):
            return parse_events(text)[0]
        lines = [line for line in text.splitlines() if line.startswith("data: ")]
        return [json.loads(line.removeprefix("data: ")) for line in lines]

    def fields_of(self, path):
        body = self.paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        return set(body["properties"])

    def by_chat(self, draw):
        objects = self.ask("/v1/chat/completions", draw, {
            "messages": draw.messages, "max_tokens": draw.max_tokens, "stop": draw.stop, **draw.options})
        part = "delta" if draw.stream else "message"
        return "".join(one["choices"][0][part].get("content") or "" for one in objects)

    def rendered(self, draw):
        return {"prompt": self.client.post("/apply-template", {"messages": draw.messages}).json["prompt"],
                "add_special_tokens": False}

    def by_completions(self, draw):
        objects = self.ask("/v1/completions", draw, {
            **self.rendered(draw), "max_tokens": draw.max_tokens, "stop": draw.stop, **draw.options})
        return "".join(one["choices"][0]["text"] for one in objects)

    def by_llama(self, draw):
        objects = self.ask("/completion", draw, {
            **self.rendered(draw), "n_predict": draw.max_tokens, "stop": draw.stop, **draw.options})
        return "".join(one["content"] for one in objects)

    def by_ollama_chat(self, draw):
        objects = self.ask("/api/chat", draw, {"messages": draw.messages, "options": {
            "num_predict": draw.max_tokens, "stop": draw.stop, **draw.options}})
        return "".join(one["message"]["content"] for one in objects)

    def by_ollama_generate(self, draw):
        *system, last = draw.messages
        if len(system) > 1 or [one["role"] for one in system] not in ([], ["system"]):
            return None
        objects = self.ask("/api/generate", draw, {
            "prompt": last["content"], "system": system[0]["content"] if system else "", "options": {
                "num_predict": draw.max_tokens, "stop": draw.stop, **draw.options}})
        return "".join(one["response"] for one in objects)

    def by_responses(self, draw):
        path = "/v1/responses"
        if path not in self.paths:
            return None
        body = {"input": draw.messages, "max_output_tokens": max(draw.max_tokens, 16), **draw.options}
        if draw.stop or draw.max_tokens < 16 or not set(body) <= self.fields_of(path):
            return None
        objects = self.ask(path, draw, body)
        answer = objects[-1]["response"] if draw.stream else objects[0]
        return "".join(part["text"] for item in answer["output"] if item["type"] == "message" for part in item["content"])

    def by_messages(self, draw):
        path = "/v1/messages"
        if path not in self.paths:
            return None
        system = [one["content"] for one in draw.messages if one["role"] == "system"]
        body = {"messages": [one for one in draw.messages if one["role"] != "system"], "max_tokens": draw.max_tokens,
                "stop_sequences": draw.stop, **draw.options, **({"system": system[0]} if system else {})}
        if not set(body) <= self.fields_of(path):
            return None
        objects = self.ask(path, draw, body)
        if not draw.stream:
            return "".join(part["text"] for part in objects[0]["content"] if part["type"] == "text")
        return "".join(one["delta"].get("text", "") for one in objects if one["type"] == "content_block_delta")

    def test_every_api_gives_the_same_tokens(self):
        asked = dict.fromkeys((name for name in dir(self) if name.startswith("by_")), 0)
        first = int(os.environ.get("PACELINE_SEED", "0"))
        for seed in range(first, first + NUM_DRAWS):
            draw = Draw(seed)
            expected = self.by_chat(draw)
            for name in asked:
                found = getattr(self, name)(draw)
                if found is None:
                    continue
                asked[name] += 1
                self.assertEqual(found, expected, (f"PACELINE_SEED={seed}", name, draw.messages, draw.options))
        print(asked)
        for name in asked:
            if name[3:] not in ("responses", "messages"):
                self.assertGreater(asked[name], 0, name)


if __name__ == "__main__":
    unittest.main()
