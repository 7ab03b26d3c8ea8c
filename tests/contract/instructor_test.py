"""Structured output of `paceline serve`, asked for by Instructor, which wants other versions of packages than the rest."""
import asyncio
import unittest

import instructor
import openai
from agent_case import KEY, QUESTION as AGENT_QUESTION, AgentCase
from structured_case import QUESTION, House, Person, StructuredCase

MODES = (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA)


class InstructorTest(StructuredCase):
    def asking(self, mode, client=openai.OpenAI):
        return instructor.from_openai(client(base_url=self.url, api_key="none", max_retries=0, timeout=60), mode=mode)

    def fields(self, **fields):
        return {"model": self.model, "messages": QUESTION, "seed": 3, "max_completion_tokens": 300, "max_retries": 0,
                "reasoning_effort": "none", "logit_bias": self.no_breaks, **fields}

    def test_an_answer(self):
        for mode in MODES:
            for kind in (Person, House):
                answer, completion = self.asking(mode).chat.completions.create_with_completion(
                    response_model=kind, **self.fields())
                self.assertIsInstance(answer, kind)
                message = completion.choices[0].message
                written = message.tool_calls[0].function.arguments if mode == instructor.Mode.TOOLS else message.content
                self.assertEqual(kind.model_validate_json(written).model_dump(), answer.model_dump())

    def test_a_partial_answer(self):
        for mode in MODES:
            parts = list(self.asking(mode).chat.completions.create_partial(response_model=House, **self.fields()))
            self.assertGreater(len(parts), 2, mode)
            self.assertIsInstance(House.model_validate(parts[-1].model_dump()), House)

    def test_async(self):
        async def ask(seed):
            client = self.asking(instructor.Mode.TOOLS, openai.AsyncOpenAI)
            return await client.chat.completions.create(response_model=House, **self.fields(seed=seed))

        async def ask_all():
            return await asyncio.gather(*(ask(seed) for seed in range(4)))

        for house in asyncio.run(ask_all()):
            self.assertIsInstance(house, House)


class InstructorsResponsesTest(AgentCase):
    routes = ("/v1/responses",)

    def test_an_answer(self):
        client = openai.OpenAI(base_url=self.url + "/v1", api_key=KEY, max_retries=0, timeout=60)
        asking = instructor.from_openai(client, mode=instructor.Mode.RESPONSES_TOOLS)
        answer = asking.responses.create(model=self.model, input=AGENT_QUESTION, response_model=House, max_output_tokens=600,
                                         reasoning={"effort": "none"}, parallel_tool_calls=False, max_retries=0)
        self.assertIsInstance(answer, House)


if __name__ == "__main__":
    unittest.main()
