"""The requests of lm-evaluation-harness (local-completions), and its use of the answers."""
import unittest

from contract_case import ContractCase

CONTEXTS = ["The cat sat on the", "Once upon a time there was a", "It was a dark and stormy",
            "She opened the door and"]
ENDINGS = [" mat", " king", " night", " screamed", " banana"]


class LmEvalTest(ContractCase):
    def encode(self, text):
        return self.client.post("/tokenize", {"prompt": text, "add_special_tokens": False}).json["tokens"]

    def requests(self):
        """(tokens of context and continuation, how many are context), as the harness makes them."""
        made = []
        for context in CONTEXTS:
            for ending in ENDINGS:
                inside = self.encode(context)
                both = self.encode(context + ending)
                made.append((both, len(inside)))
        return made

    def loglikelihood(self, batch, max_tokens):
        body = {"model": self.client.get("/v1/models").json["data"][0]["id"], "prompt": [ids for ids, _ in batch],
                "temperature": 0, "max_tokens": max_tokens, "logprobs": 1, "seed": 1234, "echo": True}
        answer = self.ask("/v1/completions", body)
        results = []
        choices = sorted(answer["choices"], key=lambda choice: choice["index"])
        for choice, (ids, context) in zip(choices, batch, strict=True):
            logprobs = choice["logprobs"]
            end = -1 if max_tokens == 1 else None  # the harness drops the token that was drawn
            scores = logprobs["token_logprobs"][context:end]
            self.assertEqual(len(scores), len(ids) - context)
            tops = logprobs["top_logprobs"][context:end]
            tokens = logprobs["tokens"][context:end]
            is_greedy = all(token == max(top, key=top.get) for token, top in zip(tokens, tops))
            results.append((sum(scores), is_greedy))
        return results

    def test_loglikelihood(self):
        requests = self.requests()
        batched = self.loglikelihood(requests, 1)
        self.assertEqual(self.loglikelihood(requests, 1), batched, "a warm cache changes the scores")
        self.assertEqual(self.loglikelihood(requests, 0), batched, "max_tokens 0 scores otherwise")
        alone = [self.loglikelihood([request], 1)[0] for request in requests]
        self.assertEqual(alone, batched, "batches score otherwise")
        # /v1/score_tokens gives the same figures.
        for (ids, context), (score, _) in zip(requests, batched):
            [item] = self.ask("/v1/score_tokens", {"input": [ids]})["data"]
            self.assertAlmostEqual(sum(item["token_logprobs"][context:]), score, places=9)
        best = [max(range(len(ENDINGS)), key=lambda i: batched[c * len(ENDINGS) + i][0]) for c in range(len(CONTEXTS))]
        self.assertEqual(ENDINGS[best[2]], " night")

    def test_greedy_is_what_greedy_draws(self):
        """is_greedy must agree with a draw at temperature 0."""
        num_greedy = 0
        for context in CONTEXTS:
            inside = self.encode(context)
            drawn = self.ask("/v1/completions", {"prompt": [inside], "temperature": 0, "max_tokens": 4,
                                                               "return_token_ids": True})["choices"][0]["token_ids"]
            [(_, is_greedy)] = self.loglikelihood([(inside + drawn, len(inside))], 1)
            self.assertTrue(is_greedy, context)
            num_greedy += is_greedy
            [(_, is_greedy)] = self.loglikelihood([(inside + [drawn[0] ^ 1] + drawn[1:], len(inside))], 1)
            self.assertFalse(is_greedy, context)
        self.assertEqual(num_greedy, len(CONTEXTS))

    def test_rolling_windows(self):
        """loglikelihood_rolling: windows of token ids with one token of context."""
        ids = self.encode(" ".join(CONTEXTS) * 20)
        windows = [(ids[max(i - 1, 0):i + 64], 1) for i in range(1, len(ids), 64)]
        self.assertEqual(len(self.loglikelihood(windows, 1)), len(windows))

    def test_generate_until(self):
        body = {"prompt": [self.encode(CONTEXTS[2])], "max_tokens": 64, "temperature": 0, "stop": ["\n\n", "."],
                "seed": 1234}
        [choice] = self.ask("/v1/completions", body)["choices"]
        self.assertNotIn(".", choice["text"])
        self.assertEqual(self.ask("/v1/completions", {**body, "prompt": CONTEXTS[2]})["choices"][0]["text"],
                         choice["text"])
        sampled = {**body, "prompt": CONTEXTS[2], "temperature": 0.7, "top_p": 0.9}
        self.assertEqual(self.ask("/v1/completions", sampled)["choices"],
                         self.ask("/v1/completions", sampled)["choices"])


if __name__ == "__main__":
    unittest.main()
