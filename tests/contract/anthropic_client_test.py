"""The anthropic package with `paceline serve`: messages, streams, tools, counts, errors."""
import unittest

import anthropic
from contract_case import ContractCase
from pydantic import BaseModel
from serving import Client
from structured_case import CLOSED, TEMPLATE

KEY = "sk-contract"
QUESTION = [{"role": "user", "content": "Tell me about the old house by the river."}]
FIND = {"name": "find_house", "description": "Finds a house.", "input_schema": {
    "type": "object", "required": ["number"], "additionalProperties": False,
    "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 99}}}}


class Answer(BaseModel):
    model_config = CLOSED
    ok: bool


class AnthropicClientTest(ContractCase):
    options = ("--api-key", KEY, "--chat-template", str(TEMPLATE))

    def setUp(self):
        self.client = Client(self.server.port, KEY)
        self.anthropic = anthropic.Anthropic(base_url=self.server.url, api_key=KEY, max_retries=0, timeout=60)
        self.addCleanup(self.anthropic.close)
        self.model = self.client.get("/v1/models").json["data"][0]["id"]
        # The bundled model knows no JSON: without this it would write blanks as long as it may.
        breaks = self.client.post("/tokenize", {"content": "\n", "add_special": False}).json["tokens"]
        self.fields = {"model": self.model, "max_tokens": 24, "messages": QUESTION,
                       "extra_body": {"seed": 7, "logit_bias": {str(token): -100 for token in breaks}}}

    def create(self, **fields):
        message = self.anthropic.messages.create(**{**self.fields, **fields})
        self.assertEqual((message.type, message.role, message.model), ("message", "assistant", self.model))
        self.assertTrue(message._request_id)
        return message

    def stream(self, **fields):
        """The last message of the package's own helper, and the texts that came."""
        with self.anthropic.messages.stream(**{**self.fields, **fields}) as stream:
            texts = list(stream.text_stream)
            return stream.get_final_message(), texts

    def expect_same(self, **fields):
        whole, (streamed, texts) = self.create(**fields), self.stream(**fields)
        self.assertEqual((whole.stop_reason, whole.stop_sequence), (streamed.stop_reason, streamed.stop_sequence))
        self.assertEqual([block.type for block in whole.content], [block.type for block in streamed.content])
        for one, other in zip(whole.content, streamed.content):
            self.assertEqual(one.to_dict() | {"id": ""}, other.to_dict() | {"id": ""})
        self.assertEqual("".join(block.text for block in whole.content if block.type == "text"), "".join(texts))
        for usage in (whole.usage, streamed.usage):
            self.assertGreater(usage.input_tokens + usage.cache_read_input_tokens, 8)
            self.assertGreater(usage.output_tokens, 0)
        return whole

    def test_a_message(self):
        message = self.expect_same(system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
                                   metadata={"user_id": "u"})
        self.assertEqual(message.stop_reason, "max_tokens")
        word = message.content[0].text.split()[2]
        stopped = self.expect_same(system="Be brief.", stop_sequences=[word])
        self.assertEqual((stopped.stop_reason, stopped.stop_sequence), ("stop_sequence", word))

    def test_tools(self):
        fields = {"tools": [FIND], "tool_choice": {"type": "tool", "name": "find_house", "disable_parallel_tool_use": True}, "max_tokens": 100,
                  "thinking": {"type": "disabled"}}
        message = self.expect_same(**fields)
        self.assertEqual(message.stop_reason, "tool_use")
        call, = message.content
        self.assertIn(call.input["number"], range(1, 100))
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "It is empty."}]}]
        self.create(messages=[*QUESTION, {"role": "assistant", "content": message.content},
                              {"role": "user", "content": results}], tools=[FIND])

    def test_a_parsed_answer(self):
        message = self.anthropic.messages.parse(**{**self.fields, "max_tokens": 60}, output_format=Answer,
                                                thinking={"type": "disabled"})
        self.assertIsInstance(message.parsed_output.ok, bool)

    def test_a_count(self):
        count = self.anthropic.messages.count_tokens(model=self.model, messages=QUESTION, system="Be brief.", tools=[FIND])
        usage = self.create(system="Be brief.", tools=[FIND]).usage
        self.assertEqual(count.input_tokens, usage.input_tokens + usage.cache_read_input_tokens)

    def test_errors(self):
        for error, fields in [(anthropic.NotFoundError, {"model": "claude-opus-5"}),
                              (anthropic.BadRequestError, {"max_tokens": -1}),
                              (anthropic.BadRequestError, {"messages": [{"role": "user", "content": [
                                  {"type": "image", "source": {"type": "url", "url": "https://a.example"}}]}]})]:
            with self.assertRaises(error) as caught:
                self.create(**fields)
            self.assertTrue(caught.exception.request_id.startswith("req_"))
        with self.assertRaises(anthropic.AuthenticationError):
            self.anthropic.with_options(api_key="no").messages.create(**self.fields)


if __name__ == "__main__":
    unittest.main()
