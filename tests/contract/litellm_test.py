"""LiteLLM over OpenAI's, Anthropic's and Ollama's APIs and Responses, and smolagents' agents. Run by `make nightly`."""
import os
import unittest

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_MODE="PRODUCTION")

import litellm
import smolagents
from agent_case import KEY, QUESTION, AgentCase, over_templates

MESSAGES = [{"role": "user", "content": QUESTION}]
FIND = {"type": "function", "function": {"name": "find_house", "description": "Finds a house.", "parameters": {
    "type": "object", "required": ["is_old"], "additionalProperties": False, "properties": {"is_old": {"type": "boolean"}}}}}
litellm.telemetry = False
litellm.drop_params = True


class LiteLlmCase:
    def asking(self, api):
        base = self.url + "/v1" if api == "openai" else self.url
        return {"model": f"{api}/{self.model}", "api_base": base, "api_key": KEY, "num_retries": 0, "timeout": 60}

    def test_a_chat_whole_and_streamed(self):
        for api in ("openai", "anthropic", *(("ollama", "ollama_chat") if "/api/chat" in self.paths else ())):
            with self.subTest(api=api):
                asked = {**self.asking(api), "messages": MESSAGES, "max_tokens": 12, "temperature": 0}
                whole = litellm.completion(**asked)
                self.assertTrue(whole.choices[0].message.content)
                self.assertEqual(whole.usage.completion_tokens, 12)
                pieces = [piece.choices[0].delta.content or "" for piece in litellm.completion(**asked, stream=True)]
                self.assertEqual("".join(pieces), whole.choices[0].message.content)

    def test_a_tool(self):
        for api in ("openai", "anthropic"):
            with self.subTest(api=api):
                answer = litellm.completion(**self.asking(api), messages=MESSAGES, max_tokens=400, tools=[FIND],
                                            tool_choice="required", parallel_tool_calls=False, temperature=0)
                [call] = answer.choices[0].message.tool_calls
                self.assertEqual(call.function.name, "find_house")

    def test_a_response(self):
        if "/v1/responses" not in self.paths:
            self.skipTest("the server has no /v1/responses")
        asked = {**self.asking("openai"), "input": QUESTION, "max_output_tokens": 16, "temperature": 0}
        whole = litellm.responses(**asked)
        self.assertEqual(whole.status, "incomplete")
        text = whole.output[-1].content[0].text
        pieces = [event.delta for event in litellm.responses(**asked, stream=True) if event.type == "response.output_text.delta"]
        self.assertEqual("".join(pieces), text)

    def test_embeddings(self):
        made = litellm.embedding(**self.asking("openai"), input=["a fox", "a river"])
        self.assertEqual(len(made.data), 2)


class SmolagentsCase:
    def test_a_model_with_tools(self):
        @smolagents.tool
        def find_house(is_old: bool) -> str:
            """Finds a house.

            Args:
                is_old: whether it is old
            """
            return "It is empty."
        model = smolagents.OpenAIModel(model_id=self.model, api_base=self.url + "/v1", api_key=KEY, max_tokens=400,
                                       parallel_tool_calls=False, client_kwargs={"max_retries": 0})
        message = model.generate([smolagents.ChatMessage(role="user", content=[{"type": "text", "text": QUESTION}])],
                                 tools_to_call_from=[find_house])
        [call] = message.tool_calls
        self.assertEqual(call.function.name, "find_house")
        agent = smolagents.ToolCallingAgent(tools=[find_house], model=model, max_steps=2, verbosity_level=0)
        self.assertTrue(str(agent.run(QUESTION)))
        calls = [call for step in agent.memory.steps for call in getattr(step, "tool_calls", None) or []]
        self.assertTrue(calls)

    def test_a_model_by_litellm(self):
        model = smolagents.LiteLLMModel(model_id=f"openai/{self.model}", api_base=self.url + "/v1", api_key=KEY, max_tokens=12)
        message = model.generate([smolagents.ChatMessage(role="user", content=[{"type": "text", "text": QUESTION}])])
        self.assertTrue(message.content)


over_templates(__name__, LiteLlmCase, SmolagentsCase)

if __name__ == "__main__":
    unittest.main()
