"""`paceline serve`: the fields of vLLM and llama.cpp for restricting and reporting tokens."""
import json
import socket
import unittest

from serving import ServerCase

PROMPT = "It was a dark and stormy night"
MESSAGES = [{"role": "user", "content": "Tell me about the old house by the river."}]
START = 4097  # <|im_start|>, a special token
EVERYTHING = {"prompt": PROMPT, "seed": 7, "ignore_eos": True, "return_token_ids": True}


def contains(ids, sequence):
    return any(ids[i:i + len(sequence)] == sequence for i in range(len(ids) - len(sequence) + 1))


class FieldsTest(ServerCase):
    def ask(self, status=200, path="/v1/completions", **body):
        answer = self.client.post(path, body)
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def complete(self, **fields):
        return self.ask(**{**EVERYTHING, **fields})

    def stream(self, path="/v1/completions", **body):
        events, done = self.client.stream(path, body)
        self.assertTrue(done)
        return events

    def test_special_tokens_in_the_text(self):
        force = {"max_tokens": 3, "temperature": 0, "logit_bias": {str(START): 100}, "logprobs": 0}
        hidden = self.complete(**force)["choices"][0]
        self.assertEqual((hidden["text"], hidden["token_ids"]), ("", [START] * 3))
        shown = self.complete(**force, skip_special_tokens=False)["choices"][0]
        self.assertEqual((shown["text"], shown["token_ids"]), ("<|im_start|>" * 3, [START] * 3))
        self.assertEqual(shown["logprobs"]["text_offset"], [0, 12, 24])
        events = self.stream(**EVERYTHING, **force, skip_special_tokens=False)
        self.assertEqual("".join(event["choices"][0]["text"] for event in events), shown["text"])
        stopped = self.complete(**force, skip_special_tokens=False, stop="art|>")["choices"][0]
        self.assertEqual((stopped["text"], stopped["stop_reason"]), ("<|im_st", "art|>"))

    def test_bad_words(self):
        plain = self.complete(max_tokens=60, temperature=0)["choices"][0]["text"]
        words = sorted(set(plain.split()), key=plain.split().count)[-4:]
        banned = [self.ask(path="/tokenize", prompt=text, add_special_tokens=False)["tokens"]
                  for word in words for text in (word, " " + word)]
        for fields in [{"temperature": 0}, {"n": 4, "temperature": 1.3}]:
            for choice in self.complete(max_tokens=60, bad_words=words, **fields)["choices"]:
                self.assertEqual(len(choice["token_ids"]), 60)
                for sequence in banned:
                    self.assertFalse(contains(choice["token_ids"], sequence), (sequence, choice["token_ids"]))

    def test_allowed_and_forbidden_tokens(self):
        ids = self.complete(max_tokens=20, temperature=0)["choices"][0]["token_ids"]
        allowed = [300, 17, 400, 17]
        for choice in self.complete(max_tokens=30, n=3, allowed_token_ids=allowed)["choices"]:
            self.assertLessEqual(set(choice["token_ids"]), set(allowed))
        for bias in [[[ids[0], False]], {str(ids[0]): False}]:
            [other] = self.complete(max_tokens=20, temperature=0, logit_bias=bias)["choices"]
            self.assertNotIn(ids[0], other["token_ids"])
        [end] = self.complete(allowed_token_ids=[300, 4098], ignore_eos=False, temperature=0, min_tokens=4, max_tokens=9,
                              logit_bias={"4098": 100})["choices"]
        self.assertEqual((end["token_ids"], end["finish_reason"]), ([300] * 4, "stop"))

    def test_a_request_that_forbids_everything(self):
        error = self.ask(400, prompt=PROMPT, allowed_token_ids=[17], logit_bias=[[17, False]])["error"]
        self.assertIn("allowed_token_ids", error["message"])
        self.assertEqual(self.ask(400, prompt=PROMPT, allowed_token_ids=[9, 99999])["error"]["param"],
                         "allowed_token_ids[1]")
        self.assertEqual(self.ask(400, prompt=PROMPT, bad_words=[""])["error"]["param"], "bad_words[0]")

    def test_named_log_probabilities(self):
        usual = self.complete(max_tokens=5, logprobs=20, return_tokens_as_token_ids=True)["choices"][0]
        asked = [int(name.split(":")[1]) for name in list(usual["logprobs"]["top_logprobs"][0])[3:6]]
        named = self.complete(max_tokens=5, logprobs=20, logprob_token_ids=asked, return_tokens_as_token_ids=True)
        [named] = named["choices"]
        self.assertEqual(named["token_ids"], usual["token_ids"])
        for drawn, told, top in zip(named["token_ids"], named["logprobs"]["top_logprobs"],
                                    usual["logprobs"]["top_logprobs"]):
            self.assertEqual(set(told), {f"token_id:{one}" for one in [*asked, drawn]})
            for name, logprob in told.items():
                self.assertEqual(logprob, top.get(name, logprob))
        chat = {"messages": MESSAGES, "max_tokens": 4, "seed": 3, "logprobs": True, "logprob_token_ids": asked}
        content = self.ask(path="/v1/chat/completions", **chat)["choices"][0]["logprobs"]["content"]
        self.assertEqual([len(token["top_logprobs"]) for token in content], [3] * 4)
        self.assertEqual(self.ask(400, prompt=PROMPT, logprob_token_ids=[5])["error"]["param"], "logprob_token_ids")

    def test_llama_cpps_probabilities(self):
        whole = self.ask(path="/generate", **EVERYTHING, max_tokens=6, n_probs=4)
        usual = self.ask(path="/generate", **EVERYTHING, max_tokens=6, logprobs=4)["logprobs"]
        told = whole["completion_probabilities"]
        self.assertNotIn("logprobs", whole)
        self.assertEqual([token["id"] for token in told], whole["token_ids"])
        self.assertEqual([token["logprob"] for token in told], usual["token_logprobs"])
        self.assertEqual([len(token["top_logprobs"]) for token in told], [4] * 6)
        for token in told:
            self.assertEqual(bytes(token["bytes"]).decode(), token["token"])
        events = self.stream("/generate", **EVERYTHING, max_tokens=6, n_probs=4)
        self.assertEqual(sum((event.get("completion_probabilities", []) for event in events), []), told)
        choice = self.complete(max_tokens=6, n_probs=4)["choices"][0]
        self.assertEqual(choice["logprobs"], usual)

    def test_usage_in_every_chunk(self):
        for path, body in [("/v1/completions", {**EVERYTHING, "max_tokens": 12, "n": 2}),
                           ("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 12, "seed": 2})]:
            whole = self.ask(path=path, **body)["usage"]
            options = {"continuous_usage_stats": True, "include_usage": True}
            events = self.stream(path, **body, stream_options=options)
            told = [event["usage"]["completion_tokens"] for event in events]
            self.assertEqual(told, sorted(told))
            self.assertEqual({event["usage"]["prompt_tokens"] for event in events}, {whole["prompt_tokens"]})
            for event in events[-2:]:
                self.assertEqual(event["usage"]["total_tokens"], whole["total_tokens"])
            self.assertEqual(events[-1]["choices"], [])
        [*pieces, last] = self.stream("/generate", **EVERYTHING, max_tokens=5, stream_options=options)
        told = 0  # a piece has the tokens that came since the last one: where the server is late more than one
        for piece in pieces:
            told += len(piece["token_ids"])
            self.assertEqual(piece["usage"]["completion_tokens"], told)
        self.assertEqual(last["usage"]["completion_tokens"], 5)

    def test_tokens_of_a_chunk(self):
        body = {**EVERYTHING, "max_tokens": 50, "n": 2, "logprobs": 0}
        whole = self.complete(**body)
        for interval in [1, 8, 100]:
            counts, text = {0: [], 1: []}, {0: "", 1: ""}
            for event in self.stream(**body, stream_interval=interval):
                [choice] = event["choices"]
                counts[choice["index"]].append(len(choice["token_ids"]))
                text[choice["index"]] += choice["text"]
            for choice in whole["choices"]:
                told = counts[choice["index"]]
                self.assertEqual(sum(told), 50)
                self.assertTrue(all(count >= interval for count in told[1:-1]), told)
                self.assertEqual(text[choice["index"]], choice["text"])
                self.assertLessEqual(len(told), 2 + 49 // interval)

    def test_the_best_of_several(self):
        body = {"max_tokens": 12, "ignore_eos": False, "temperature": 1.5}
        every = self.complete(**body, n=6, logprobs=0)["choices"]
        by_mean = sorted((choice for choice in every if choice["finish_reason"] == "length"),
                         key=lambda one: -sum(one["logprobs"]["token_logprobs"]))
        best = self.complete(**body, n=2, best_of=6)
        told = [choice["seed"] for choice in best["choices"]]
        self.assertEqual([choice["index"] for choice in best["choices"]], [0, 1])
        if len(by_mean) == 6:  # the mean of another length counts its end too
            self.assertEqual(told, [choice["seed"] for choice in by_mean[:2]])
        self.assertIsNone(best["choices"][0]["logprobs"])
        self.assertEqual(best["usage"]["completion_tokens"], self.complete(**body, n=6)["usage"]["completion_tokens"])
        self.assertEqual(self.complete(**body, n=2, best_of=6)["choices"], best["choices"])
        self.assertEqual(self.ask(400, prompt=PROMPT, best_of=2, stream=True)["error"]["param"], "best_of")

    def test_a_message_that_goes_on(self):
        messages = [*MESSAGES, {"role": "assistant", "content": "Once upon a"}]
        ask = {"messages": messages, "add_generation_prompt": False, "continue_final_message": True}
        prompt = self.ask(path="/apply-template", **ask)["prompt"]
        self.assertTrue(prompt.endswith("assistant\nOnce upon a"), prompt)
        tokens = self.ask(path="/tokenize", **ask)["tokens"]
        chat = self.ask(path="/v1/chat/completions", **ask, seed=5, max_tokens=9)["choices"][0]
        same = self.ask(prompt=tokens, seed=5, max_tokens=9)["choices"][0]
        self.assertEqual(chat["message"]["content"], same["text"])
        both = {**ask, "add_generation_prompt": True}
        self.assertEqual(self.ask(400, path="/v1/chat/completions", **both)["error"]["param"], "continue_final_message")

    def test_a_negative_seed(self):
        answer = self.ask(prompt=PROMPT, seed=-2, n=3, max_tokens=4)
        self.assertEqual([choice["seed"] for choice in answer["choices"]], [-2, -1, 0])
        self.assertEqual(self.ask(prompt=PROMPT, seed=2**64 - 1, max_tokens=4)["choices"][0]["seed"], 2**64 - 1)
        self.assertEqual(self.stream(prompt=PROMPT, seed=-2, max_tokens=4)[-1]["choices"][0]["seed"], -2)
        self.assertEqual(self.ask(prompt=PROMPT, seed=-1, max_tokens=4)["choices"][0]["text"],
                         answer["choices"][1]["text"])

    def test_a_target_that_names_its_host(self):
        for target, host, status in [("http://evil.example/v1/models", "localhost", 403),
                                     ("http://localhost/v1/models", "evil.example", 200),
                                     ("/v1/models", "evil.example", 403)]:
            with socket.create_connection(("127.0.0.1", self.server.port)) as raw:
                raw.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                head, _, body = raw.makefile("rb").read().partition(b"\r\n\r\n")
            self.assertEqual(int(head.split()[1]), status, target)
            json.loads(body)


if __name__ == "__main__":
    unittest.main()
