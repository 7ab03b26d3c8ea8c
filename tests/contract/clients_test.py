"""Structured output and tool calls of `paceline serve`, asked for by LangChain and Pydantic AI."""
import asyncio
import os
import unittest

# LangChain reports nothing to LangSmith from a test, whatever the caller's environment says.
os.environ.update(LANGSMITH_TRACING="false", LANGCHAIN_TRACING_V2="false")

import openai
import pydantic_ai
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.providers.openai import OpenAIProvider
from structured_case import QUESTION, House, Person, StructuredCase

TEXT = QUESTION[0]["content"]
NUM_TOKENS = 300


class LangChainTest(StructuredCase):
    def setUp(self):
        super().setUp()
        self.chat = ChatOpenAI(base_url=self.url, api_key="none", model=self.model, seed=3, max_retries=0, timeout=60,
                               stream_usage=True, max_completion_tokens=NUM_TOKENS, reasoning_effort="none",
                               logit_bias=self.no_breaks)

    def test_with_structured_output(self):
        for method, kind in (("json_schema", Person), ("function_calling", Person), ("json_schema", House),
                             ("function_calling", House)):
            answer = self.chat.with_structured_output(kind, method=method, include_raw=True).invoke(TEXT)
            self.assertIsNone(answer["parsing_error"], (method, answer))
            self.assertIsInstance(answer["parsed"], kind)
            raw = answer["raw"]
            if method == "json_schema":
                self.assertEqual(kind.model_validate_json(raw.content), answer["parsed"])
            else:
                self.assertEqual(kind.model_validate(raw.tool_calls[0]["args"]), answer["parsed"])

    def test_with_structured_output_as_a_stream(self):
        for method in ("json_schema", "function_calling"):
            bound = self.chat.with_structured_output(House, method=method)
            self.assertEqual(list(bound.stream(TEXT))[-1], bound.invoke(TEXT), method)

    def check_call(self, message):
        self.assertEqual(message.invalid_tool_calls, [])
        self.assertEqual(message.response_metadata["finish_reason"], "tool_calls")
        call, = message.tool_calls
        self.assertEqual(call["name"], "House")
        self.assertTrue(call["id"])
        return House.model_validate(call["args"])

    def test_bind_tools(self):
        for choice in ("required", "any", "House"):
            bound = self.chat.bind_tools([House], tool_choice=choice, parallel_tool_calls=False)
            message = bound.invoke(TEXT)
            house = self.check_call(message)
            usage = message.usage_metadata
            self.assertEqual(usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"])
            chunks = list(bound.stream(TEXT))
            self.assertGreater(len(chunks), 2)
            streamed = chunks[0]
            for chunk in chunks[1:]:
                streamed += chunk
            self.assertEqual(self.check_call(streamed), house)
            self.assertEqual(streamed.usage_metadata["output_tokens"], usage["output_tokens"])

    def test_a_conversation_goes_on_behind_a_call(self):
        message = self.chat.bind_tools([House], tool_choice="required", parallel_tool_calls=False).invoke(TEXT)
        answer = self.chat.bind_tools([House], tool_choice="none").bind(max_completion_tokens=8).invoke(
            [HumanMessage(TEXT), message, ToolMessage("It is empty.", tool_call_id=message.tool_calls[0]["id"])])
        self.assertIsInstance(answer, AIMessage)
        self.assertTrue(answer.content)
        self.assertEqual(answer.tool_calls, [])


class PydanticAiTest(StructuredCase):
    def agent(self, output):
        inner = openai.AsyncOpenAI(base_url=self.url, api_key="none", max_retries=0, timeout=60)
        model = OpenAIChatModel(self.model, provider=OpenAIProvider(openai_client=inner))
        settings = OpenAIChatModelSettings(seed=3, max_tokens=NUM_TOKENS, logit_bias=self.no_breaks,
                                           openai_reasoning_effort="none", parallel_tool_calls=False)
        return pydantic_ai.Agent(model, output_type=output, model_settings=settings, retries=0)

    def test_an_output_by_a_tool(self):
        # strict=True would make Pydantic AI leave maxLength out of the schema that it sends.
        for output in (House, pydantic_ai.ToolOutput(House, name="found", strict=False)):
            answer = self.agent(output).run_sync(TEXT)
            self.assertIsInstance(answer.output, House)
            self.assertGreater(answer.usage.output_tokens, 0)

    def test_an_output_by_a_schema(self):
        answer = self.agent(pydantic_ai.NativeOutput(Person)).run_sync(TEXT)
        self.assertIsInstance(answer.output, Person)
        self.assertEqual(Person.model_validate_json(answer.all_messages()[-1].parts[0].content), answer.output)

    def test_a_streamed_output(self):
        async def stream(agent):
            async with agent.run_stream(TEXT) as answer:
                outputs = [output async for output in answer.stream_output(debounce_by=None)]
            return outputs, answer.usage

        for output in (House, pydantic_ai.NativeOutput(House)):
            whole = self.agent(output).run_sync(TEXT)
            outputs, usage = asyncio.run(stream(self.agent(output)))
            self.assertEqual(outputs[-1], whole.output)
            self.assertEqual(usage.output_tokens, whole.usage.output_tokens)

    def test_a_conversation_goes_on_behind_a_call(self):
        agent = self.agent(House)
        first = agent.run_sync(TEXT)
        second = agent.run_sync("Is there another?", message_history=first.all_messages())
        self.assertIsInstance(second.output, House)
        self.assertGreater(second.usage.input_tokens, first.usage.input_tokens)


if __name__ == "__main__":
    unittest.main()
