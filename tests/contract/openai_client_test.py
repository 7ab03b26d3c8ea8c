"""The openai package with `paceline serve`: typical uses."""
import asyncio
import threading
import time
import unittest

import openai
from contract_case import MESSAGES, PROMPT, ContractCase
from serving import Client, Server, until

KEY = "sk-contract"


class OpenAiClientTest(ContractCase):
    options = ("--api-key", KEY, "--no-adaptive-drafts")  # so that predictions are always tried

    def setUp(self):
        self.client = Client(self.server.port, KEY)
        self.openai = openai.OpenAI(base_url=self.server.url + "/v1", api_key=KEY, max_retries=0, timeout=60)
        self.addCleanup(self.openai.close)
        self.model = self.openai.models.list().data[0].id

    def complete(self, prompt=PROMPT, **fields):
        return self.openai.completions.create(model=self.model, prompt=prompt, **{"seed": 7, "max_tokens": 8, **fields})

    def chat(self, **fields):
        return self.openai.chat.completions.create(model=self.model, messages=MESSAGES,
                                                   **{"seed": 7, "max_completion_tokens": 8, **fields})

    def test_a_completion(self):
        answer = self.complete()
        self.assertEqual((answer.object, answer.model, len(answer.choices)), ("text_completion", self.model, 1))
        self.assertEqual((answer.usage.completion_tokens, answer.choices[0].finish_reason), (8, "length"))
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + 8)
        self.assertTrue(answer.choices[0].text)
        self.assertTrue(answer._request_id)

    def test_a_chat(self):
        answer = self.chat()
        self.assertEqual(answer.object, "chat.completion")
        message = answer.choices[0].message
        self.assertEqual((message.role, message.refusal, message.tool_calls), ("assistant", None, None))
        self.assertTrue(message.content)
        parts = [{"role": "user", "content": [{"type": "text", "text": MESSAGES[1]["content"]}]}]
        self.assertEqual(self.openai.chat.completions.create(
            model=self.model, messages=[MESSAGES[0], *parts], seed=7, max_tokens=8).choices[0].message.content,
            message.content)

    def test_embeddings(self):
        texts = [PROMPT, "The sea"]
        plain = self.openai.embeddings.create(model=self.model, input=texts, encoding_format="float")
        self.assertEqual((plain.object, plain.model, [item.index for item in plain.data]), ("list", self.model, [0, 1]))
        self.assertEqual(plain.usage.prompt_tokens, plain.usage.total_tokens)
        self.assertAlmostEqual(sum(x * x for x in plain.data[0].embedding), 1, places=5)
        coded = self.openai.embeddings.create(model=self.model, input=texts)  # the client asks for base64 and decodes it
        for one, other in zip(plain.data, coded.data, strict=True):
            self.assertEqual(len(one.embedding), len(other.embedding))
            for x, y in zip(one.embedding, other.embedding):
                self.assertAlmostEqual(x, y, places=6)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.openai.embeddings.create(model=self.model, input=PROMPT, dimensions=8)
        self.assertEqual(caught.exception.param, "dimensions")

    def test_decisions(self):
        asked = [{"type": "predicate", "instructions": "Is it dark?", "name": "dark"},
                 {"type": "choice", "instructions": "Is it?", "choices": [{"value": "true"}, {"value": True, "description": "d"}]},
                 {"type": "score", "instructions": [{"type": "input_text", "text": "How stormy?"}],
                  "levels": [{"label": "calm"}, {"label": "wild"}]}]
        answer = self.openai.decisions.create(model=self.model, input=PROMPT, questions=asked, prompt_cache_key="k",
                                              prompt_cache_options={"mode": "implicit"}, safety_identifier="s")
        dark, typed, stormy = answer.answers
        self.assertEqual((answer.model, dark.type, dark.name), (self.model, "predicate", "dark"))
        self.assertEqual([type(one.value) for one in typed.probabilities], [str, bool])
        self.assertIn(typed.choice, ["true", True])
        self.assertEqual([(one.label, one.value) for one in stormy.probabilities], [("calm", 0), ("wild", 1)])
        self.assertAlmostEqual(stormy.score, stormy.probabilities[1].probability)
        self.assertEqual(answer.usage.total_tokens, answer.usage.input_tokens + answer.usage.output_tokens)
        messages = [{"role": "user", "content": [{"type": "input_text", "text": PROMPT}]}]
        again = self.openai.decisions.create(model=self.model, input=messages, questions=asked)
        self.assertEqual([one.model_dump() for one in again.answers], [one.model_dump() for one in answer.answers])
        self.assertGreater(again.usage.input_tokens_details.cached_tokens, 0)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.openai.decisions.create(model=self.model, input=PROMPT, questions=asked[1:2] * 401)
        self.assertEqual(caught.exception.param, "questions")

    def test_streams(self):
        whole = self.complete(max_tokens=20).choices[0].text
        pieces = list(self.complete(max_tokens=20, stream=True))
        self.assertEqual("".join(piece.choices[0].text for piece in pieces), whole)
        self.assertEqual([piece.choices[0].finish_reason for piece in pieces][-1], "length")
        whole = self.chat(max_completion_tokens=20).choices[0].message.content
        *pieces, last = self.chat(max_completion_tokens=20, stream=True, stream_options={"include_usage": True})
        self.assertEqual("".join(piece.choices[0].delta.content or "" for piece in pieces), whole)
        self.assertEqual((last.choices, last.usage.completion_tokens), ([], 20))
        self.assertEqual({piece.usage for piece in pieces}, {None})

    def test_a_prediction(self):
        text = self.chat(max_completion_tokens=40).choices[0].message.content
        for content in (text, [{"type": "text", "text": text}]):
            answer = self.chat(max_completion_tokens=40, prediction={"type": "content", "content": content})
            self.assertEqual(answer.choices[0].message.content, text)
            details = answer.usage.completion_tokens_details
            self.assertGreater(details.accepted_prediction_tokens, 10)
            self.assertGreaterEqual(details.rejected_prediction_tokens, 0)
        *_, last = self.chat(max_completion_tokens=40, prediction={"type": "content", "content": text}, stream=True,
                             stream_options={"include_usage": True})
        self.assertGreater(last.usage.completion_tokens_details.accepted_prediction_tokens, 10)
        self.assertIsNone(self.chat().usage.completion_tokens_details)

    def test_the_stream_helper(self):
        text = self.chat(max_completion_tokens=30).choices[0].message.content
        stop = text[15:18]
        with self.openai.chat.completions.stream(model=self.model, messages=MESSAGES, seed=7, max_tokens=30,
                                                 stop=[stop]) as stream:
            streamed = "".join(event.delta for event in stream if event.type == "content.delta")
            [choice] = stream.get_final_completion().choices
        self.assertEqual((choice.finish_reason, choice.message.content), ("stop", streamed))
        self.assertEqual(streamed, text[:text.index(stop)])

    def test_async(self):
        async def run():
            async with openai.AsyncOpenAI(base_url=self.server.url + "/v1", api_key=KEY, max_retries=0) as client:
                async def one(seed):
                    stream = await client.chat.completions.create(model=self.model, messages=MESSAGES, seed=seed,
                                                                  max_tokens=12, stream=True)
                    return "".join([piece.choices[0].delta.content or "" async for piece in stream])
                streamed = await asyncio.gather(*(one(seed) for seed in range(8)))
                whole = await asyncio.gather(*(client.chat.completions.create(
                    model=self.model, messages=MESSAGES, seed=seed, max_tokens=12) for seed in range(8)))
                return streamed, [answer.choices[0].message.content for answer in whole]
        streamed, whole = asyncio.run(run())
        self.assertEqual(streamed, whole)
        self.assertGreater(len(set(whole)), 4)

    def test_a_stream_that_is_left(self):
        stream = self.chat(max_completion_tokens=1500, stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        self.assertTrue(until(self.is_idle))

    def test_logprobs(self):
        logprobs = self.complete(logprobs=3, max_tokens=5).choices[0].logprobs
        self.assertEqual([len(logprobs.tokens), len(logprobs.token_logprobs), len(logprobs.text_offset)], [5] * 3)
        for token, logprob, top in zip(logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs):
            self.assertIn(len(top), (3, 4))
            self.assertEqual(top[token], logprob)
        tokens = self.chat(logprobs=True, top_logprobs=2).choices[0].logprobs.content
        self.assertEqual(len(tokens), 8)
        for token in tokens:
            self.assertEqual(len(token.top_logprobs), 2)
            self.assertGreaterEqual(token.top_logprobs[0].logprob, token.top_logprobs[1].logprob)
            self.assertEqual(bytes(token.top_logprobs[0].bytes).decode(errors="replace"), token.top_logprobs[0].token)

    def test_choices_prompts_and_token_ids(self):
        answer = self.complete(prompt=[PROMPT, "The sea"], n=3)
        self.assertEqual([choice.index for choice in answer.choices], list(range(6)))
        self.assertEqual(len({choice.text for choice in answer.choices}), 6)
        ids = self.client.post("/tokenize", {"prompt": PROMPT}).json["tokens"]
        self.assertEqual(self.complete(prompt=ids).choices[0].text, self.complete().choices[0].text)
        several = self.complete(prompt=[ids, ids[:3]])
        self.assertEqual(several.choices[0].text, self.complete().choices[0].text)
        self.assertEqual(several.usage.prompt_tokens, len(ids) + 3)

    def test_stop_and_seed(self):
        text = self.complete(max_tokens=40).choices[0].text
        self.assertEqual(self.complete(max_tokens=40).choices[0].text, text)
        self.assertNotEqual(self.complete(max_tokens=40, seed=8).choices[0].text, text)
        stopped = self.complete(max_tokens=40, stop=[text[20:24], "never there"]).choices[0]
        self.assertEqual((stopped.finish_reason, stopped.text), ("stop", text[:text.index(text[20:24])]))

    def test_echo_scores_the_prompt_cold_and_warm(self):
        prompt = "On a cold morning in March the baker opened his door, and there stood a goat. " * 3
        seen = []
        for _ in range(3):
            answer = self.complete(prompt=prompt, echo=True, max_tokens=0, logprobs=1)
            seen.append(answer.choices[0].logprobs.to_dict())
            self.assertEqual(answer.choices[0].text, prompt)
            self.assertEqual(answer.usage.completion_tokens, 0)
            self.complete(prompt=prompt, max_tokens=1)  # warms the cache
        self.assertIsNone(seen[0]["token_logprobs"][0])
        self.assertEqual(seen[1:], seen[:1] * 2)

    def test_models_and_errors(self):
        self.assertEqual(self.openai.models.retrieve(self.model).id, self.model)
        with self.assertRaises(openai.NotFoundError) as raised:
            self.openai.models.retrieve("no-such-model")
        self.assertEqual((raised.exception.code, raised.exception.param), ("model_not_found", "model"))
        with self.assertRaises(openai.NotFoundError):
            self.openai.completions.create(model="no-such-model", prompt="x")
        with self.assertRaises(openai.BadRequestError) as raised:
            self.complete(temperature=3)
        self.assertEqual((raised.exception.code, raised.exception.param), ("invalid_value", "temperature"))
        self.assertEqual(raised.exception.type, "invalid_request_error")
        wrong = self.openai.with_options(api_key="wrong")
        with self.assertRaises(openai.AuthenticationError) as raised:
            wrong.models.list()
        self.assertEqual(raised.exception.code, "invalid_api_key")
        with self.assertRaises(openai.NotFoundError) as raised:  # a status from 500 on would be retried
            self.openai.images.generate(model=self.model, prompt="x")
        self.assertEqual(raised.exception.code, "unknown_url")
        self.assertIn("POST /v1/completions", raised.exception.message)

    def respond(self, **fields):
        return self.openai.responses.create(**{"model": self.model, "input": PROMPT, "max_output_tokens": 8, "temperature": 0,
                                               **fields})

    def test_a_response(self):
        answer = self.respond(instructions="Be brief.", metadata={"a": "b"})
        self.assertEqual((answer.object, answer.model, answer.status), ("response", self.model, "incomplete"))
        self.assertEqual((answer.incomplete_details.reason, answer.usage.output_tokens), ("max_output_tokens", 8))
        self.assertEqual((answer.instructions, answer.metadata), ("Be brief.", {"a": "b"}))
        self.assertTrue(answer.output_text)
        self.assertEqual(self.openai.responses.retrieve(answer.id).output_text, answer.output_text)
        self.assertEqual(self.openai.responses.input_items.list(answer.id).data[0].content[0].text, PROMPT)
        after = self.respond(input="And?", previous_response_id=answer.id)
        self.assertGreater(after.usage.input_tokens, answer.usage.input_tokens)
        sent_back = self.respond(input=[{"role": "user", "content": PROMPT}, *answer.output, {"role": "user", "content": "And?"}],
                                 store=False)
        self.assertLess(sent_back.usage.input_tokens, after.usage.input_tokens + 1)
        self.openai.responses.delete(answer.id)
        with self.assertRaises(openai.NotFoundError):
            self.openai.responses.retrieve(answer.id)

    def test_streams_of_responses(self):
        whole = self.respond()
        text = "".join(event.delta for event in self.respond(stream=True) if event.type == "response.output_text.delta")
        self.assertEqual(text, whole.output_text)
        with self.openai.responses.stream(model=self.model, input=PROMPT, max_output_tokens=60, temperature=0, store=False) as stream:
            types = [event.type for event in stream]
        self.assertEqual(types[0], "response.created")
        self.assertIn(types[-1], ("response.completed", "response.incomplete"))

    def test_background_and_compaction(self):
        begun = self.respond(background=True)
        self.assertEqual(begun.status, "queued")
        self.assertTrue(until(lambda: self.openai.responses.retrieve(begun.id).status == "incomplete"))
        long = self.respond(background=True, max_output_tokens=900, extra_body={"ignore_eos": True})
        self.assertEqual(self.openai.responses.cancel(long.id).status, "cancelled")
        compacted = self.openai.responses.compact(model=self.model, input=PROMPT)
        self.assertEqual(compacted.output[0].type, "compaction")
        self.assertTrue(self.respond(input=[*compacted.output, {"role": "user", "content": "And?"}]).output_text)
        self.assertGreater(self.openai.responses.input_tokens.count(model=self.model, input=PROMPT).input_tokens, 0)

    def test_a_message_goes_back_as_the_client_dumps_it(self):
        messages = [{"role": "user", "content": PROMPT}]
        for _ in range(2):
            answer = self.openai.chat.completions.create(model=self.model, messages=messages, max_tokens=4, seed=1)
            messages.append(answer.choices[0].message.model_dump())
            messages.append({"role": "user", "content": "More."})
        self.assertIn("annotations", messages[1])


class SmallServerTest(ContractCase):
    options = ("--max-requests", "1")

    def holder(self):
        """A stream that takes the only place."""
        response = self.client.open("POST", "/v1/completions", {"prompt": PROMPT, "max_tokens": 1900, "stream": True,
                                                                "ignore_eos": True, "n": 16, "seed": 1})
        self.assertEqual(response.status, 200)
        return response.connection

    def ask_openai(self, retries):
        with openai.OpenAI(base_url=self.server.url + "/v1", api_key="none", max_retries=retries) as client:
            return client.completions.create(model=self.client.get("/v1/models").json["data"][0]["id"], prompt=PROMPT,
                                             max_tokens=2)

    def test_no_room_is_tried_again(self):
        connection = self.holder()
        try:
            with self.assertRaises(openai.RateLimitError) as raised:
                self.ask_openai(retries=0)
            self.assertEqual(raised.exception.code, "queue_full")
            self.assertGreaterEqual(float(raised.exception.response.headers["Retry-After"]), 1)
        finally:
            releasing = threading.Timer(0.3, connection.close)
            releasing.start()
        begin = time.monotonic()
        self.assertEqual(len(self.ask_openai(retries=10).choices), 1)
        self.assertLess(time.monotonic() - begin, 45)
        releasing.join()


class ShortServerTest(ContractCase):
    options = ("--request-timeout", "1")  # long enough to begin the stream

    def test_a_stream_that_breaks_off_raises(self):
        with openai.OpenAI(base_url=self.server.url + "/v1", api_key="none", max_retries=0) as client:
            model = client.models.list().data[0].id
            for create, fields in [(client.completions.create, {"prompt": PROMPT}),
                                   (client.chat.completions.create, {"messages": MESSAGES})]:
                with self.assertRaises(openai.APIError) as raised:
                    for _ in create(model=model, max_tokens=1500, n=16, stream=True, extra_body={"ignore_eos": True},
                                    **fields):
                        pass
                self.assertNotIsInstance(raised.exception, openai.APIStatusError)
                self.assertEqual((raised.exception.code, raised.exception.type), ("request_timeout", "server_error"))


if __name__ == "__main__":
    unittest.main()
