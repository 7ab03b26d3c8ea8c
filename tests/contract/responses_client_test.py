"""The openai package with `paceline serve`: responses (whole, streamed, parsed, stored, in the background)."""
import json
import unittest

import openai
from agent_case import KEY, OTHER_KEY, QUESTION, AgentCase, over_templates
from pydantic import BaseModel, ConfigDict, Field
from serving import until

FIND = {"type": "function", "name": "find_house", "description": "Finds a house.", "strict": True, "parameters": {
    "type": "object", "required": ["number"], "additionalProperties": False,
    "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 99}}}}
CALLING = {"tools": [FIND], "tool_choice": "required", "parallel_tool_calls": False, "max_output_tokens": 400,
           "reasoning": {"effort": "none"}}


class House(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: int = Field(ge=1, le=99)
    is_empty: bool


class ResponsesCase:
    """Mixed into AgentCase, once for each template."""
    routes = ("/v1/responses",)

    def setUp(self):
        self.openai = openai.OpenAI(base_url=self.url + "/v1", api_key=KEY, max_retries=0, timeout=60)
        self.addCleanup(self.openai.close)

    def ask(self, **fields):
        return self.openai.responses.create(**{"model": self.model, "input": QUESTION, "max_output_tokens": 16, "temperature": 0,
                                               "reasoning": {"effort": "none"}, **fields})

    def test_a_response(self):
        answer = self.ask(instructions="You tell stories.", metadata={"a": "b"})
        self.assertEqual((answer.object, answer.model, answer.status), ("response", self.model, "incomplete"))
        self.assertEqual(answer.incomplete_details.reason, "max_output_tokens")
        self.assertEqual((answer.metadata, answer.instructions, answer.error), ({"a": "b"}, "You tell stories.", None))
        self.assertTrue(answer.output_text)
        self.assertEqual(answer.usage.output_tokens, 16)
        self.assertEqual(answer.usage.total_tokens, answer.usage.input_tokens + 16)
        items = [{"role": "developer", "content": "You tell stories."},
                 {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]
        self.assertEqual(self.ask(input=items).output_text, answer.output_text)

    def test_a_chat_has_the_same_text(self):
        chat = self.openai.chat.completions.create(model=self.model, messages=[{"role": "user", "content": QUESTION}],
                                                   max_completion_tokens=16, temperature=0, reasoning_effort="none")
        self.assertEqual(self.ask().output_text, chat.choices[0].message.content)

    def test_a_stream(self):
        whole = self.ask()
        events = list(self.ask(stream=True))
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        kinds = [event.type for event in events]
        self.assertEqual([kind for kind in kinds if kind != "response.output_text.delta"], [
            "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
            "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.incomplete"])
        deltas = [event for event in events if event.type == "response.output_text.delta"]
        self.assertEqual("".join(event.delta for event in deltas), whole.output_text)
        self.assertEqual({event.item_id for event in deltas}, {events[-1].response.output[0].id})
        self.assertEqual(events[-1].response.usage.output_tokens, 16)
        self.assertEqual({event.response.id for event in events if hasattr(event, "response")}, {events[0].response.id})

    def test_the_streams_helper(self):
        with self.openai.responses.stream(model=self.model, input=QUESTION, max_output_tokens=400, temperature=0,
                                          reasoning={"effort": "none"}, text_format=House) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_response()
        self.assertIn("response.output_text.delta", kinds)
        self.assertIsInstance(final.output_parsed, House)

    def test_a_parsed_response(self):
        answer = self.openai.responses.parse(model=self.model, input=QUESTION, max_output_tokens=400, temperature=0,
                                             reasoning={"effort": "none"}, text_format=House)
        self.assertIsInstance(answer.output_parsed, House)
        self.assertEqual(answer.status, "completed")

    def called(self, answer):
        [call] = [item for item in answer.output if item.type == "function_call"]
        self.assertEqual((call.name, call.status, answer.status), ("find_house", "completed", "completed"), answer)
        self.assertIn(json.loads(call.arguments)["number"], range(1, 100))
        self.assertNotEqual(call.id, call.call_id)
        return call

    def test_a_tool_whole_and_streamed(self):
        call = self.called(self.ask(**CALLING))
        events = list(self.ask(stream=True, **CALLING))
        streamed = self.called(events[-1].response)
        self.assertEqual(streamed.arguments, call.arguments)
        deltas = [event for event in events if event.type == "response.function_call_arguments.delta"]
        self.assertEqual("".join(event.delta for event in deltas), call.arguments)
        self.assertEqual({event.item_id for event in deltas}, {streamed.id})
        [done] = [event for event in events if event.type == "response.function_call_arguments.done"]
        self.assertEqual(done.arguments, call.arguments)

    def test_tools_that_are_chosen(self):
        other = {**FIND, "name": "sell_house"}
        for choice in [{"type": "function", "name": "find_house"},
                       {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "find_house"}]}]:
            self.called(self.ask(**{**CALLING, "tools": [other, FIND], "tool_choice": choice}))
        self.assertTrue(self.ask(tools=[FIND], tool_choice="none").output_text)
        hosted = [{"type": "web_search"}, {"type": "image_generation"}]
        self.called(self.ask(**{**CALLING, "tools": [*hosted, FIND]}))
        with self.assertRaises(openai.BadRequestError):
            self.ask(tools=hosted, tool_choice={"type": "web_search"})

    def test_a_conversation_goes_on_after_a_call(self):
        first = self.ask(**CALLING)
        result = {"type": "function_call_output", "call_id": self.called(first).call_id, "output": "It is empty."}
        told = self.ask(tools=[FIND], tool_choice="none", input=[{"role": "user", "content": QUESTION}, *first.output, result])
        self.assertTrue(told.output_text)
        stored = self.ask(tools=[FIND], tool_choice="none", input=[result], previous_response_id=first.id)
        self.assertEqual(stored.output_text, told.output_text)
        self.assertEqual(stored.previous_response_id, first.id)

    def test_what_is_stored(self):
        first = self.ask(input="Who are you?", metadata={"a": "b"})
        again = self.openai.responses.retrieve(first.id)
        self.assertEqual(again.to_dict(), first.to_dict())
        [item] = self.openai.responses.input_items.list(first.id).data
        self.assertEqual((item.role, item.content[0].text), ("user", "Who are you?"))
        second = self.ask(input="And now?", previous_response_id=first.id)
        self.assertGreater(second.usage.input_tokens, first.usage.input_tokens + 16)
        stranger = openai.OpenAI(base_url=self.url + "/v1", api_key=OTHER_KEY, max_retries=0)
        self.addCleanup(stranger.close)
        for look in [lambda client: client.responses.retrieve(first.id), lambda client: client.responses.delete(first.id),
                     lambda client: client.responses.cancel(first.id), lambda client: client.responses.input_items.list(first.id),
                     lambda client: client.responses.create(model=self.model, input="x", previous_response_id=first.id)]:
            with self.assertRaises(openai.NotFoundError):
                look(stranger)
        self.openai.responses.delete(first.id)
        for look in [lambda: self.openai.responses.retrieve(first.id), lambda: self.openai.responses.delete(first.id),
                     lambda: self.ask(previous_response_id=first.id)]:
            with self.assertRaises(openai.NotFoundError):
                look()
        unkept = self.ask(store=False)
        with self.assertRaises(openai.NotFoundError):
            self.openai.responses.retrieve(unkept.id)

    def test_the_background(self):
        begun = self.ask(background=True, max_output_tokens=60)
        self.assertIn(begun.status, ("queued", "in_progress", "incomplete"))
        self.assertTrue(until(lambda: self.openai.responses.retrieve(begun.id).status == "incomplete"))
        self.assertEqual(self.openai.responses.retrieve(begun.id).output_text, self.ask(max_output_tokens=60).output_text)
        begun = self.ask(background=True, max_output_tokens=20000)
        self.assertEqual(self.openai.responses.cancel(begun.id).status, "cancelled")
        self.assertTrue(until(lambda: self.openai.responses.retrieve(begun.id).status == "cancelled"))

    def test_counting(self):
        counted = self.openai.responses.input_tokens.count(model=self.model, input=QUESTION, reasoning={"effort": "none"})
        self.assertEqual(counted.input_tokens, self.ask().usage.input_tokens)

    def test_compaction(self):
        talk = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "A fox."}]
        compacted = self.openai.responses.compact(model=self.model, input=talk)
        [item] = [item for item in compacted.output if item.type == "compaction"]
        answer = self.ask(input=[item.to_dict(), {"role": "user", "content": "And now?"}])
        self.assertTrue(answer.output_text)
        with self.assertRaises(openai.BadRequestError):
            self.ask(input=[{**item.to_dict(), "encrypted_content": item.encrypted_content[:-6] + "AAAAAA"},
                            {"role": "user", "content": "x"}])


class ResponsesErrorsTest(AgentCase):
    routes = ("/v1/responses",)

    def test_errors(self):
        client = openai.OpenAI(base_url=self.url + "/v1", api_key=KEY, max_retries=0)
        self.addCleanup(client.close)
        for kind, param, fields in [
                (openai.NotFoundError, "model", {"model": "none"}), (openai.BadRequestError, "temperature", {"temperature": 9}),
                (openai.BadRequestError, "conversation", {"conversation": "conv_1"}),
                (openai.BadRequestError, "no_such_field", {"extra_body": {"no_such_field": 1}}),
                (openai.BadRequestError, "previous_response_id", {"previous_response_id": 7})]:
            with self.subTest(**fields), self.assertRaises(kind) as caught:
                client.responses.create(**{"model": self.model, "input": "x", **fields})
            self.assertEqual(caught.exception.param, param)
        with self.assertRaises(openai.NotFoundError):
            client.responses.retrieve("resp_none")

    def test_reasoning_that_another_server_sealed(self):
        client = openai.OpenAI(base_url=self.url + "/v1", api_key=KEY, max_retries=0)
        self.addCleanup(client.close)
        item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABforeign"}
        with self.assertRaises(openai.BadRequestError):
            client.responses.create(model=self.model, input=[item, {"role": "user", "content": "x"}])


over_templates(__name__, ResponsesCase)

if __name__ == "__main__":
    unittest.main()
