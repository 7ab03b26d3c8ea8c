"""Structured output of `paceline serve`, asked for by Instructor, which wants other versions of packages than the rest."""
import asyncio
import unittest

import instructor
import openai
from contract_case import ContractCase
from pydantic import BaseModel, ConfigDict, Field
from structured_test import QUESTION, TEMPLATE, Mood

# Without additionalProperties: false in the schema an object may have any further members.
CLOSED = ConfigDict(extra="forbid")
MODES = (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA)


class Person(BaseModel):
    model_config = CLOSED
    name: str = Field(max_length=12)
    mood: Mood
    tags: list[bool] = Field(max_length=3)


class House(BaseModel):
    """Says which house it is."""
    model_config = CLOSED
    street: str = Field(max_length=16)
    is_empty: bool


class InstructorTest(ContractCase):
    options = ("--chat-template", str(TEMPLATE))

    def setUp(self):
        self.url = self.server.url + "/v1"
        self.model = self.client.get("/v1/models").json["data"][0]["id"]
        # The bundled model knows no JSON: without this it would write blanks as long as it may.
        tokens = self.client.post("/tokenize", {"content": "\n", "add_special": False}).json["tokens"]
        self.no_breaks = {str(token): -100 for token in tokens}

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


if __name__ == "__main__":
    unittest.main()
