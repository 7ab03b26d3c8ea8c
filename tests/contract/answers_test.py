"""Compares answers and chunks with the schemas, and streams with whole answers, over a matrix of options."""
import os
import random
import unittest

from contract_case import MESSAGES, PROMPT, ContractCase
from program import ROOT
from serve_test import flat, join
from serving import Client, Server

NUM_REQUESTS = 400 if os.environ.get("PACELINE_TEST_SCALE") == "full" else 40

SHARED = {"n": [1, 1, 3], "max_tokens": [1, 7, 24], "temperature": [0, 0.8, 2, None], "top_p": [None, 0.9],
          "top_k": [None, 20], "min_p": [None, 0.05], "repetition_penalty": [None, 1.2], "presence_penalty": [None, 0.5],
          "stop": [None, None, ["e", " a"], "\n"], "stop_token_ids": [None, None, [5, 11]], "ignore_eos": [None, True],
          "return_token_ids": [None, True], "return_tokens_as_token_ids": [None, True], "prompt_logprobs": [None, None, 2],
          "logit_bias": [None, {"17": 5}, [[4097, 4], [16, False]]], "sampler_order": [None, "mlx"], "include_stop_str_in_output": [None, True],
          "skip_special_tokens": [None, False], "bad_words": [None, ["the", " and"]], "stream_interval": [None, 4],
          "allowed_token_ids": [None, None, list(range(0, 4096, 2)) + [4097]], "return_tokens": [None, True]}
COMPLETIONS = {**SHARED, "logprobs": [None, 0, 3], "echo": [None, True], "max_tokens": [0, 1, 7, 24],
               "prompt": [PROMPT, [PROMPT, "The sea"], [7, 8, 9], [[7, 8, 9], [10]], "naïve café — “"]}
CHATS = {**SHARED, "logprobs": [None, True], "min_tokens": [None, 1], "truncate_prompt_tokens": [None, 9]}


def drawn(choices, options):
    picked = {name: choices.choice(values) for name, values in options.items()}
    return {name: value for name, value in picked.items() if value is not None}


class AnswersTest(ContractCase):
    def compare(self, path, body):
        body = {"seed": 3, **body}
        self.ask(path, body)  # so that both find the same prefixes
        whole = self.ask(path, body)
        events = self.stream(path, {**body, "stream_options": {"include_usage": True}})
        self.assertEqual(len({(event["id"], event["created"], event["model"]) for event in events}), 1)
        *pieces, last = events
        self.assertEqual((last["choices"], last["usage"]), ([], whole["usage"]))
        joined = {}
        for event in pieces:
            self.assertIsNone(event["usage"])
            for piece in event["choices"]:
                self.assertNotIn("ended", joined.get(piece["index"], {}), "a piece behind the last one")
                sum_ = joined.setdefault(piece["index"], {})
                join(sum_, piece)
                if piece["finish_reason"]:
                    sum_["ended"] = True
        for sum_ in joined.values():
            del sum_["ended"]
        self.assertEqual([joined[choice["index"]] for choice in whole["choices"]],
                         [flat(choice) for choice in whole["choices"]])

    def test_completions(self):
        choices = random.Random(11)
        for _ in range(NUM_REQUESTS):
            body = drawn(choices, COMPLETIONS)
            if body["max_tokens"] == 0:
                body["n"] = 1  # several of nothing are refused
            with self.subTest(**body):
                self.compare("/v1/completions", body)

    def test_chats(self):
        choices = random.Random(12)
        for _ in range(NUM_REQUESTS):
            body = {"messages": MESSAGES, **drawn(choices, CHATS)}
            if "logprobs" in body:
                body["top_logprobs"] = choices.choice([0, 2, 20])
            with self.subTest(**body):
                self.compare("/v1/chat/completions", body)

    def test_the_native_route(self):
        for fields in [{}, {"logprobs": 2}, {"n_probs": 3}, {"stop": "e"}, {"logprobs": 0, "logprob_token_ids": [5, 3]}, {"prompt_logprobs": 1}, {"echo": True, "logprobs": 0}]:
            body = {"prompt": PROMPT, "seed": 3, "max_tokens": 9, **fields}
            with self.subTest(**body):
                whole = self.ask("/generate", body)
                pieces = self.stream("/generate", body)
                told = sum((piece.get("completion_probabilities", []) for piece in pieces), [])
                self.assertEqual(told, whole.get("completion_probabilities", []))
                self.assertEqual("".join(piece["text"] for piece in pieces), whole["text"])
                self.assertEqual(sum((piece["token_ids"] for piece in pieces), []), whole["token_ids"])
                self.assertEqual(pieces[-1]["finish_reason"], whole["finish_reason"])

    def test_llamas_route(self):
        for fields in [{}, {"n_probs": 3}, {"stop": ["e"]}, {"ignore_eos": True, "n_cmpl": 2}, {"temperature": 0},
                       {"prompt": [PROMPT, [7, 8, "The sea"]]}, {"n_predict": 0}, {"repeat_penalty": 1.2},
                       {"prompt_logprobs": 1}, {"n_probs": 2, "return_tokens_as_token_ids": True}]:
            body = {"prompt": PROMPT, "seed": 3, "n_predict": 9, "return_tokens": True, **fields}
            with self.subTest(**body):
                whole = self.ask("/completion", body)
                events = self.stream("/completion", body, has_end=False)
                for result in whole if isinstance(whole, list) else [whole]:
                    *pieces, last = [event for event in events if event["index"] == result["index"]]
                    self.assertTrue(last["stop"])
                    for name in ["tokens", "completion_probabilities"]:
                        told = sum((piece.get(name, []) for piece in pieces), [])
                        self.assertEqual(told, result.get(name, []))
                    self.assertEqual("".join(piece["content"] for piece in pieces), result["content"])
                    self.assertEqual(last.get("prompt_logprobs"), result.get("prompt_logprobs"))
                    for name in ["tokens_predicted", "stop_type", "stopping_word", "has_new_line", "seed", "prompt"]:
                        self.assertEqual(last[name], result[name], name)

    def test_the_other_routes(self):
        for fields in [{}, {"labels": [" night", " day"]}, {"labels": [" night", " day"], "with_token_id": True},
                       {"with_logits": True}, {"input": [[5, 6], [7]], "seed": 4}]:
            with self.subTest(**fields):
                self.ask("/v1/classify", {"input": PROMPT, **fields})
        for fields in [{}, {"encoding_format": "base64"}, {"input": [PROMPT, "a"], "user": "me"}, {"input": [[5, 6, 7]]}]:
            with self.subTest(**fields):
                self.ask("/v1/embeddings", {"input": PROMPT, **fields})
        for fields in [{}, {"top_logprobs": 3}, {"input": [PROMPT, "a"]}, {"input": [[5, 6, 7]]}]:
            with self.subTest(**fields):
                self.ask("/v1/score_tokens", {"input": PROMPT, **fields})
        for body in [{"prompt": PROMPT}, {"content": PROMPT, "with_pieces": True}, {"messages": MESSAGES},
                     {"prompt": PROMPT, "return_token_strs": True}]:
            with self.subTest(**body):
                self.ask("/tokenize", body)
        self.ask("/detokenize", {"tokens": [5, 6, 7]})
        self.ask("/apply-template", {"messages": MESSAGES})
        models = self.check("Models", self.client.get("/v1/models").json)
        for model in models["data"]:
            self.check("Model", self.client.get("/v1/models/" + model["id"]).json)

    def test_pairs_and_own_labels(self):
        for name, path, body in [
                ("reranker", "/v1/score", {"text_1": "a", "text_2": ["b", "c"]}),
                ("reranker", "/v1/rerank", {"query": "a", "documents": ["b", "c"], "return_documents": True}),
                ("cross_encoder", "/v1/rerank", {"query": "a", "documents": ["b", {"text": "c"}], "top_n": 1}),
                ("classifier", "/v1/classify", {"input": "a", "with_logits": True})]:
            server = Server(model=ROOT / "tests/goldens/embeddings" / name)
            self.addCleanup(server.stop)
            with self.subTest(model=name, path=path):
                answer = Client(server.port).post(path, body)
                self.assertEqual(answer.status, 200, answer.body)
                self.check(self.document.schema_of("POST", path), answer.json)

    def test_errors(self):
        for method, path, body, status in [
                ("POST", "/v1/completions", {"prompt": "x", "n": 0}, 400), ("POST", "/v1/completions", "[", 400),
                ("POST", "/v1/chat/completions", {"messages": []}, 400), ("GET", "/nothing", None, 404),
                ("POST", "/v1/completions", {"prompt": "x", "model": "none"}, 404),
                ("PUT", "/v1/completions", {}, 405), ("POST", "/v1/images/generations", {"prompt": "x"}, 404),
                ("POST", "/v1/completions", b"{" + b" " * (9 << 20), 413)]:
            with self.subTest(path=path, status=status):
                answer = self.client.ask(method, path, body)
                self.assertEqual(answer.status, status, answer.body)
                self.check("Error", answer.json)
        answer = self.client.ask("POST", "/v1/completions", "{}", headers={"Content-Type": "text/plain"})
        self.assertEqual(answer.status, 415)
        self.check("Error", answer.json)


if __name__ == "__main__":
    unittest.main()
