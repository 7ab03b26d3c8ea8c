"""The anthropic package with `paceline serve`: messages, streams, tools, thinking, counting, errors."""
import json
import unittest

import anthropic
from agent_case import KEY, OTHER_KEY, OWN_TEMPLATE, QUESTION, AgentCase, over_templates
from pydantic import BaseModel, ConfigDict

MESSAGES = [{"role": "user", "content": QUESTION}]
SYSTEM = [{"type": "text", "text": "You tell stories.", "cache_control": {"type": "ephemeral"}}]
FIND = {"name": "find_house", "description": "Finds a house.", "cache_control": {"type": "ephemeral"}, "input_schema": {
    "type": "object", "required": ["number"], "additionalProperties": False,
    "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 99}}}}
CALLING = {"tools": [FIND], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}, "max_tokens": 400}
GREEDY = {"temperature": 0}  # which the package's methods no longer name
EVENTS = ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
          "message_stop"]


class House(BaseModel):
    model_config = ConfigDict(extra="forbid")
    is_old: bool
    is_empty: bool


class MessagesCase:
    """Mixed into AgentCase, once for each template."""

    def setUp(self):
        self.anthropic = anthropic.Anthropic(base_url=self.url, api_key=KEY, max_retries=0, timeout=60)
        self.addCleanup(self.anthropic.close)

    def ask(self, **fields):
        return self.anthropic.messages.create(
            **{"model": self.model, "max_tokens": 12, "messages": MESSAGES, "extra_body": GREEDY, **fields})

    def test_a_message(self):
        answer = self.ask(system=SYSTEM)
        self.assertEqual((answer.type, answer.role, answer.model, answer.stop_reason), ("message", "assistant", self.model, "max_tokens"))
        self.assertTrue(answer.id.startswith("msg_"), answer.id)
        [block] = answer.content
        self.assertEqual(block.type, "text")
        self.assertTrue(block.text)
        self.assertEqual(answer.usage.output_tokens, 12)
        self.assertGreater(answer.usage.input_tokens + (answer.usage.cache_read_input_tokens or 0), 5)
        self.assertTrue(answer._request_id)
        parts = [{"role": "user", "content": [{"type": "text", "text": QUESTION, "cache_control": {"type": "ephemeral"}}]}]
        self.assertEqual(self.ask(system="You tell stories.", messages=parts).content, answer.content)

    def test_a_stop_sequence(self):
        whole = self.ask(max_tokens=30).content[0].text
        word = whole.split()[2]
        answer = self.ask(max_tokens=30, stop_sequences=[word])
        self.assertEqual((answer.stop_reason, answer.stop_sequence), ("stop_sequence", word))
        self.assertEqual(answer.content[0].text if answer.content else "", whole[:whole.index(word)])

    def test_a_stream(self):
        whole = self.ask()
        events = list(self.ask(stream=True))
        kinds = [event.type for event in events if event.type != "ping"]
        self.assertEqual([kind for i, kind in enumerate(kinds) if kind != kinds[i - 1]], EVENTS)
        start = events[0].message
        usage = start.usage
        self.assertGreater(usage.input_tokens + (usage.cache_read_input_tokens or 0), 0)
        self.assertEqual((start.content, start.stop_reason, start.model), ([], None, self.model))
        self.assertEqual("".join(event.delta.text for event in events if event.type == "content_block_delta"),
                         whole.content[0].text)
        [delta] = [event for event in events if event.type == "message_delta"]
        self.assertEqual((delta.delta.stop_reason, delta.usage.output_tokens), ("max_tokens", 12))

    def test_the_streams_helper(self):
        with self.anthropic.messages.stream(model=self.model, max_tokens=12, messages=MESSAGES, extra_body=GREEDY) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, final.content[0].text)
        self.assertEqual(text, self.ask().content[0].text)
        self.assertEqual(final.usage.output_tokens, 12)

    def called(self, message):
        [block] = [block for block in message.content if block.type == "tool_use"]
        self.assertEqual((block.name, message.stop_reason), ("find_house", "tool_use"), message)
        self.assertIn(block.input["number"], range(1, 100))
        self.assertTrue(block.id)
        return block

    def test_a_tool_whole_and_streamed(self):
        call = self.called(self.ask(**CALLING))
        with self.anthropic.messages.stream(model=self.model, messages=MESSAGES, extra_body=GREEDY, **CALLING) as stream:
            pieces = [event for event in stream]
            streamed = self.called(stream.get_final_message())
        self.assertEqual(streamed.input, call.input)
        written = "".join(event.delta.partial_json for event in pieces
                          if event.type == "content_block_delta" and event.delta.type == "input_json_delta")
        self.assertEqual(json.loads(written), call.input)

    def test_a_named_tool_and_none(self):
        other = {**FIND, "name": "sell_house"}
        self.called(self.ask(**{**CALLING, "tools": [other, FIND],
                                "tool_choice": {"type": "tool", "name": "find_house", "disable_parallel_tool_use": True}}))
        answer = self.ask(tools=[FIND], tool_choice={"type": "none"})
        self.assertEqual([block.type for block in answer.content], ["text"])

    def test_a_conversation_goes_on_after_a_call(self):
        first = self.ask(**CALLING)
        call = self.called(first)
        for content in ["It is empty.", [{"type": "text", "text": "It is empty."}], None]:
            result = {"type": "tool_result", "tool_use_id": call.id, **({"content": content} if content else {})}
            answer = self.ask(tools=[FIND], tool_choice={"type": "none"}, messages=[
                *MESSAGES, {"role": "assistant", "content": first.content}, {"role": "user", "content": [
                    {**result, "is_error": content is None}, {"type": "text", "text": "And now?"}]}])
            self.assertEqual(answer.stop_reason, "max_tokens")
            self.assertTrue(answer.content[0].text)

    def test_counting(self):
        for fields in [{}, {"system": "You tell stories."}, {"tools": [FIND]}]:
            counted = self.anthropic.messages.count_tokens(model=self.model, messages=MESSAGES, **fields)
            usage = self.ask(**fields).usage
            self.assertEqual(counted.input_tokens, usage.input_tokens + (usage.cache_read_input_tokens or 0)
                             + (usage.cache_creation_input_tokens or 0))

    def test_a_parsed_answer(self):
        """The package leaves bounds of numbers out of the schema that it sends."""
        asked = {"model": self.model, "max_tokens": 600, "messages": MESSAGES, "thinking": {"type": "disabled"},
                 "extra_body": GREEDY, "output_format": House}
        answer = self.anthropic.messages.parse(**asked)
        self.assertIsInstance(answer.parsed_output, House)
        with self.anthropic.messages.stream(**asked) as stream:
            self.assertEqual(stream.get_final_message().parsed_output, answer.parsed_output)

    def test_models(self):
        [model] = [one for one in self.anthropic.models.list().data if one.id == self.model]
        self.assertEqual(self.anthropic.models.retrieve(self.model).id, model.id)


class MessagesErrorsTest(AgentCase):
    template = OWN_TEMPLATE

    def error(self, kind, **fields):
        client = anthropic.Anthropic(base_url=self.url, api_key=fields.pop("key", KEY), max_retries=0, timeout=60)
        with client, self.assertRaises(kind) as caught:
            client.messages.create(**{"model": self.model, "max_tokens": 4, "messages": MESSAGES, **fields})
        error = caught.exception
        self.assertEqual(error.body["type"], "error")
        self.assertEqual(set(error.body["error"]), {"type", "message"})
        self.assertTrue(error.body["request_id"])
        self.assertEqual(error.body["request_id"], error.request_id)
        return error.body["error"]

    def test_errors(self):
        for kind, name, fields in [
                (anthropic.AuthenticationError, "authentication_error", {"key": "sk-none"}),
                (anthropic.NotFoundError, "not_found_error", {"model": "none"}),
                (anthropic.BadRequestError, "invalid_request_error", {"max_tokens": -1}),
                (anthropic.BadRequestError, "invalid_request_error", {"messages": []}),
                (anthropic.BadRequestError, "invalid_request_error", {"messages": [{"role": "robot", "content": "x"}]}),
                (anthropic.BadRequestError, "invalid_request_error", {"extra_body": {"no_such_field": 1}}),
                (anthropic.BadRequestError, "invalid_request_error", {"stream": True, "max_tokens": -1})]:
            with self.subTest(**fields):
                self.assertEqual(self.error(kind, **fields)["type"], name)

    def test_images_are_refused_by_name(self):
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
        self.assertIn("image", self.error(anthropic.BadRequestError, messages=[{"role": "user", "content": [image]}])["message"])

    def test_a_bearers_key(self):
        with anthropic.Anthropic(base_url=self.url, auth_token=OTHER_KEY, max_retries=0) as client:
            self.assertTrue(client.messages.create(model=self.model, max_tokens=2, messages=MESSAGES).content)

    def test_a_thinking_block_of_another_server_is_dropped(self):
        past = [*MESSAGES, {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "Zm9yZWlnbg=="}, {"type": "redacted_thinking", "data": "eA=="},
            {"type": "text", "text": "A fox."}]}, *MESSAGES]
        with anthropic.Anthropic(base_url=self.url, api_key=KEY, max_retries=0) as client:
            for thinking in [{"type": "disabled"}, {"type": "enabled", "budget_tokens": 1024}]:
                answer = client.messages.create(model=self.model, max_tokens=2000, messages=past, thinking=thinking,
                                                stop_sequences=["a"])
                self.assertIn(answer.stop_reason, ("stop_sequence", "max_tokens", "end_turn"))


over_templates(__name__, MessagesCase)

if __name__ == "__main__":
    unittest.main()
