"""Decisions of `paceline serve`, asked for by the openai package and by Pydantic AI's decision models."""
import asyncio
import unittest
from typing import Literal

import openai
import pydantic_ai
from agent_case import KEY, AgentCase, over_templates
from pydantic import BaseModel, Field
from pydantic_ai.models.openai_decisions import OpenAIDecisionsModel
from pydantic_ai.models.system_one import SystemOneModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.system_one import SystemOneProvider

TEXT = "The house by the river is old and nobody lives there."


class House(BaseModel):
    """Says how the house is."""
    is_empty: bool = Field(description="Nobody lives in the house.")
    place: Literal["river", "hill", "town"] = Field(description="Where the house is.")


class DecisionsCase:
    """Mixed into AgentCase, once for each template."""

    def setUp(self):
        self.openai = openai.OpenAI(base_url=self.url + "/v1", api_key=KEY, max_retries=0, timeout=60)
        self.addCleanup(self.openai.close)

    def test_every_kind_of_question(self):
        questions = [
            {"type": "predicate", "instructions": "The house is empty.", "name": "empty"},
            {"type": "choice", "instructions": "Who lives there?", "choices": [
                {"value": "a fox"}, {"value": "true"}, {"value": True, "description": "somebody"}]},
            {"type": "score", "instructions": "How old is it?", "levels": [
                {"label": "new"}, {"label": "old", "description": "a century"}, {"label": "ancient"}]}]
        answer = self.openai.decisions.create(model=self.model, input="The house by the river is old.", questions=questions)
        predicate, choice, score = answer.answers
        self.assertEqual((predicate.type, predicate.name), ("predicate", "empty"))
        self.assertTrue(0 < predicate.probability < 1)
        self.assertEqual([(type(one.value), one.value) for one in choice.probabilities],
                         [(str, "a fox"), (str, "true"), (bool, True)])
        self.assertEqual(choice.choice, max(choice.probabilities, key=lambda one: one.probability).value)
        self.assertEqual([(one.label, one.value) for one in score.probabilities], [("new", 0), ("old", 1), ("ancient", 2)])
        for question in (choice, score):
            self.assertAlmostEqual(sum(one.probability for one in question.probabilities), 1, places=5)
            self.assertTrue(0 <= question.confidence <= 1)
        self.assertGreater(answer.usage.input_tokens, 0)
        alone = self.openai.decisions.create(model=self.model, input="The house by the river is old.", questions=questions[::-1])
        self.assertEqual(alone.answers[::-1], answer.answers)

    def test_messages_as_input(self):
        talk = [{"role": "system", "content": "You judge houses."}, {"role": "user", "content": [
            {"type": "input_text", "text": "It is old."}]}, {"role": "assistant", "content": "I see."}]
        question = {"type": "predicate", "instructions": "The house is old."}
        answer = self.openai.decisions.create(model=self.model, input=talk, questions=[question] * 3)
        self.assertEqual([one.name for one in answer.answers], [None] * 3)
        self.assertEqual(len({one.probability for one in answer.answers}), 1)

    def test_pydantic_ais_models(self):
        async def decide(model):
            return await pydantic_ai.Agent(model, output_type=House).run(TEXT)
        client = openai.AsyncOpenAI(base_url=self.url + "/v1", api_key=KEY, max_retries=0)
        made = []
        for model in [OpenAIDecisionsModel(self.model, provider=OpenAIProvider(openai_client=client)),
                      SystemOneModel(self.model, provider=SystemOneProvider(base_url=self.url, api_key=KEY))]:
            with self.subTest(model=type(model).__name__):
                answer = asyncio.run(decide(model))
                self.assertIsInstance(answer.output, House)
                self.assertGreater(answer.usage.input_tokens, 0)
                made.append(answer.output)
        self.assertEqual(*made)

    def test_errors(self):
        question = {"type": "predicate", "instructions": "It is old."}
        choice = {"type": "choice", "instructions": "Which?", "choices": [{"value": "a"}, {"value": "a"}]}
        for kind, fields in [(openai.NotFoundError, {"model": "none"}), (openai.BadRequestError, {"questions": []}),
                             (openai.BadRequestError, {"questions": [question] * 401}), (openai.BadRequestError, {"questions": [choice]}),
                             (openai.BadRequestError, {"questions": [{**choice, "choices": choice["choices"][:1]}]}),
                             (openai.BadRequestError, {"questions": [{"type": "essay", "instructions": "x"}]}),
                             (openai.BadRequestError, {"input": [{"role": "user", "content": [
                                 {"type": "input_image", "image_url": "data:image/png;base64,aGk="}]}]})]:
            with self.subTest(**fields), self.assertRaises(kind):
                self.openai.decisions.create(**{"model": self.model, "input": TEXT, "questions": [question], **fields})


over_templates(__name__, DecisionsCase)

if __name__ == "__main__":
    unittest.main()
