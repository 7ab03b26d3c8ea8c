"""Agents' packages over Responses, Messages and Ollama's API: OpenAI Agents SDK, LangChain, Pydantic AI."""
import asyncio
import os
import unittest

# Nothing is reported to LangSmith from a test, whatever the caller's environment says.
os.environ.update(LANGSMITH_TRACING="false", LANGCHAIN_TRACING_V2="false")

import agents
import anthropic
import openai
import pydantic_ai
from agent_case import KEY, QUESTION, AgentCase, over_templates
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_ollama import ChatOllama, OllamaEmbeddings
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, ConfigDict
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider

NUM_TOKENS = 600
ROUTES = {"responses": "/v1/responses", "messages": "/v1/messages", "ollama": "/api/chat"}
agents.set_tracing_disabled(True)


class House(BaseModel):
    """Says how the house is."""
    model_config = ConfigDict(extra="forbid")
    is_old: bool
    is_empty: bool


class OpenAiAgentsCase:
    """The Agents SDK as it comes: Responses, whole histories, its own loop."""
    routes = ("/v1/responses",)

    def setUp(self):
        client = openai.AsyncOpenAI(base_url=self.url + "/v1", api_key=KEY, max_retries=0, timeout=60)
        agents.set_default_openai_client(client, use_for_tracing=False)
        self.calls = []

        @agents.function_tool
        def find_house(is_old: bool) -> str:
            """Finds a house."""
            self.calls.append(is_old)
            return "It is empty."
        self.tool = find_house

    def agent(self, **settings):
        """Its answers have a type: the package takes a response that max_output_tokens ends for a failure."""
        settings = agents.ModelSettings(max_tokens=NUM_TOKENS, reasoning={"effort": "none"}, **settings)
        return agents.Agent(name="Teller", instructions="You tell stories.", model=self.model, model_settings=settings,
                            output_type=House)

    def test_a_run(self):
        answer = agents.Runner.run_sync(self.agent(), QUESTION)
        self.assertIsInstance(answer.final_output, House)
        self.assertGreater(answer.raw_responses[0].usage.output_tokens, 0)
        again = agents.Runner.run_sync(self.agent(), [*answer.to_input_list(), {"role": "user", "content": "And now?"}])
        self.assertIsInstance(again.final_output, House)

    def test_a_tool_and_what_follows(self):
        agent = self.agent(tool_choice="required", parallel_tool_calls=False)
        agent.tools, agent.output_type, agent.tool_use_behavior = [self.tool], None, "stop_on_first_tool"
        answer = agents.Runner.run_sync(agent, QUESTION, max_turns=3)
        self.assertEqual(len(self.calls), 1)
        self.assertTrue(answer.final_output)

    def test_a_stream(self):
        async def run():
            result = agents.Runner.run_streamed(self.agent(), QUESTION)
            pieces = [event.data.delta async for event in result.stream_events()
                      if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"]
            return "".join(pieces), result.final_output
        told, final = asyncio.run(run())
        self.assertEqual(House.model_validate_json(told), final)

    def test_a_stored_conversation(self):
        first = agents.Runner.run_sync(self.agent(), QUESTION)
        second = agents.Runner.run_sync(self.agent(), "And now?", previous_response_id=first.last_response_id)
        self.assertGreater(second.raw_responses[0].usage.input_tokens, first.raw_responses[0].usage.input_tokens)


class LangChainCase:
    def chats(self):
        yield "responses", ChatOpenAI(base_url=self.url + "/v1", api_key=KEY, model=self.model, use_responses_api=True, max_retries=0,
                                      max_tokens=NUM_TOKENS, reasoning={"effort": "none"}, temperature=0, stream_usage=True)
        yield "messages", ChatAnthropic(base_url=self.url, api_key=KEY, model=self.model, max_retries=0, max_tokens=NUM_TOKENS,
                                        temperature=0, thinking={"type": "disabled"})
        yield "ollama", ChatOllama(base_url=self.url, model=self.model, num_predict=NUM_TOKENS, temperature=0, reasoning=False,
                                   client_kwargs={"headers": {"Authorization": f"Bearer {KEY}"}})

    def each(self):
        for name, chat in self.chats():
            if ROUTES[name] in self.paths:
                with self.subTest(api=name):
                    yield name, chat

    def test_a_chat_whole_and_streamed(self):
        for name, chat in self.each():
            short = {}
            if name == "ollama":
                short["options"] = {"num_predict": 12, "temperature": 0}
            else:
                chat = chat.model_copy(update={"max_tokens": 12})
            whole = chat.invoke(QUESTION, **short)
            self.assertTrue(whole.text)
            self.assertEqual(whole.usage_metadata["output_tokens"], 12)
            sum_ = None
            for piece in chat.stream(QUESTION, **short):
                sum_ = piece if sum_ is None else sum_ + piece
            self.assertEqual(sum_.text, whole.text)
            self.assertEqual(sum_.usage_metadata["output_tokens"], 12)

    def test_a_structured_output(self):
        for name, chat in self.each():
            bound = chat.with_structured_output(House, method="json_schema", include_raw=True)
            answer = bound.invoke(QUESTION)
            self.assertIsInstance(answer["parsed"], House, answer)

    def test_tools(self):
        for name, chat in self.each():
            if name == "ollama":
                continue  # its API can't force a call, which the bundled model wouldn't make
            bound = chat.bind_tools([House], tool_choice="any", parallel_tool_calls=False)
            whole = bound.invoke(QUESTION)
            [call] = whole.tool_calls
            House.model_validate(call["args"])
            sum_ = None
            for piece in bound.stream(QUESTION):
                sum_ = piece if sum_ is None else sum_ + piece
            self.assertEqual([one["args"] for one in sum_.tool_calls], [call["args"]])
            told = chat.bind_tools([House], tool_choice="none" if name == "responses" else {"type": "none"}).invoke(
                [HumanMessage(QUESTION), whole, ToolMessage("It is empty.", tool_call_id=call["id"])], max_tokens=8)
            self.assertTrue(told.text)

    def test_embeddings(self):
        if "/api/embed" not in self.paths:
            self.skipTest("the server has no /api/embed")
        made = OllamaEmbeddings(base_url=self.url, model=self.model,
                                client_kwargs={"headers": {"Authorization": f"Bearer {KEY}"}}).embed_documents(["a fox", "a river"])
        self.assertEqual(len(made), 2)


class PydanticAiCase:
    def models(self):
        client = openai.AsyncOpenAI(base_url=self.url + "/v1", api_key=KEY, max_retries=0, timeout=60)
        common = {"max_tokens": NUM_TOKENS, "parallel_tool_calls": False}
        yield "responses", OpenAIResponsesModel(
            self.model, provider=OpenAIProvider(openai_client=client),
            settings=OpenAIResponsesModelSettings(openai_reasoning_effort="none", **common))
        yield "messages", AnthropicModel(
            self.model, provider=AnthropicProvider(anthropic_client=anthropic.AsyncAnthropic(
                base_url=self.url, api_key=KEY, max_retries=0)),
            settings=AnthropicModelSettings(anthropic_thinking={"type": "disabled"}, **common))
        yield "ollama", OllamaModel(self.model, provider=OllamaProvider(base_url=self.url + "/v1", api_key=KEY),
                                    settings={"extra_body": {"reasoning_effort": "none"}, **common})

    def each(self):
        for name, model in self.models():
            if ROUTES[name] in self.paths:
                with self.subTest(api=name):
                    yield model

    def test_an_output_by_a_tool(self):
        for model in self.each():
            answer = pydantic_ai.Agent(model, output_type=pydantic_ai.ToolOutput(House), retries=0).run_sync(QUESTION)
            self.assertIsInstance(answer.output, House)
            self.assertGreater(answer.usage.output_tokens, 0)
            again = pydantic_ai.Agent(model, output_type=House, retries=0).run_sync("And now?", message_history=answer.all_messages())
            self.assertIsInstance(again.output, House)

    def test_a_text_whole_and_streamed(self):
        async def both(model):
            agent = pydantic_ai.Agent(model, model_settings={"max_tokens": 10, "temperature": 0})
            whole = await agent.run(QUESTION)
            async with agent.run_stream(QUESTION) as answer:
                return whole.output, "".join([text async for text in answer.stream_text(delta=True)])
        for model in self.each():
            whole, streamed = asyncio.run(both(model))
            self.assertTrue(whole)
            self.assertEqual(streamed, whole)


over_templates(__name__, OpenAiAgentsCase, LangChainCase, PydanticAiCase)

if __name__ == "__main__":
    unittest.main()
