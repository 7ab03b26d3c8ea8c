"""The openai package with `paceline serve`: structured output, tool calls and reasoning."""
import json
import unittest

import openai
from pydantic import BaseModel, Field
from structured_case import QUESTION, Mood, StructuredCase


class Person(BaseModel):
    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=120)
    mood: Mood
    tags: list[bool] = Field(max_length=3)


class Find(BaseModel):
    """Finds a house."""
    street: str = Field(max_length=16)
    number: int = Field(ge=1, le=99)


def function(name, parameters):
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


FIND = function("find_house", {"type": "object", "required": ["street", "number"], "additionalProperties": False,
                               "properties": {"street": {"type": "string", "maxLength": 16},
                                              "number": {"type": "integer", "minimum": 1, "maximum": 99}}})
WAIT = function("wait", {"type": "object", "properties": {}, "additionalProperties": False})


class StructuredTest(StructuredCase):
    def setUp(self):
        super().setUp()
        self.openai = openai.OpenAI(base_url=self.url, api_key="none", max_retries=0, timeout=60)
        self.addCleanup(self.openai.close)

    def fields(self, **fields):
        return {"model": self.model, "messages": QUESTION, "seed": 3, "max_completion_tokens": 300,
                "reasoning_effort": "none", "logit_bias": self.no_breaks, **fields}

    def test_an_answer_is_parsed(self):
        for seed in range(3):
            answer = self.openai.chat.completions.parse(response_format=Person, **self.fields(seed=seed))
            message = answer.choices[0].message
            self.assertIsInstance(message.parsed, Person)
            self.assertEqual(answer.choices[0].finish_reason, "stop")
            self.assertEqual(Person.model_validate_json(message.content), message.parsed)

    def test_a_streamed_answer_is_parsed(self):
        with self.openai.chat.completions.stream(response_format=Person, **self.fields()) as stream:
            kinds = {event.type for event in stream}
            parsed = stream.get_final_completion().choices[0].message.parsed
        self.assertTrue({"content.delta", "content.done"} <= kinds, kinds)
        self.assertEqual(parsed, self.openai.chat.completions.parse(
            response_format=Person, **self.fields()).choices[0].message.parsed)

    def test_other_constraints(self):
        for extra, check in (({"guided_choice": ["left", "right"]}, lambda text: text in ("left", "right")),
                             ({"structured_outputs": {"regex": "[a-z]{3}-[0-9]{2}"}}, lambda text: text[3] == "-"),
                             ({"grammar": 'root ::= "(" [a-c]{1,9} ")" | "x"'}, lambda text: text.strip("()abc") in ("x", ""))):
            answer = self.openai.chat.completions.create(**self.fields(extra_body=extra))
            self.assertTrue(check(answer.choices[0].message.content), (extra, answer))
            answer = self.openai.completions.create(model=self.model, prompt="It was", seed=1, max_tokens=200,
                                                    extra_body=extra)
            self.assertTrue(check(answer.choices[0].text), (extra, answer))
        text = self.openai.chat.completions.create(response_format={"type": "json_object"}, **self.fields(
            max_completion_tokens=9)).choices[0]
        self.assertEqual(text.finish_reason, "length")
        self.assertTrue(text.message.content.lstrip().startswith("{"))

    def check_call(self, message, name=None):
        self.assertEqual(message.content, None)
        call = message.tool_calls[0]
        self.assertTrue(call.id)
        self.assertIn(call.function.name, [name] if name else ["find_house", "wait"])
        arguments = json.loads(call.function.arguments)
        if call.function.name == "find_house":
            Find.model_validate(arguments)
        else:
            self.assertEqual(arguments, {})
        return call

    def test_a_call_that_must_come(self):
        for seed in range(4):
            answer = self.openai.chat.completions.create(tools=[FIND, WAIT], tool_choice="required",
                                                         parallel_tool_calls=False, **self.fields(seed=seed))
            self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
            self.check_call(answer.choices[0].message)
        named = {"type": "function", "function": {"name": "find_house"}}
        answer = self.openai.chat.completions.create(tools=[FIND, WAIT], tool_choice=named, **self.fields())
        self.assertEqual(len(answer.choices[0].message.tool_calls), 1)
        self.check_call(answer.choices[0].message, "find_house")

    def test_a_streamed_call(self):
        fields = self.fields(tools=[FIND], tool_choice="required", parallel_tool_calls=False)
        whole = self.openai.chat.completions.create(**fields).choices[0].message.tool_calls[0].function
        chunks = list(self.openai.chat.completions.create(stream=True, **fields))
        deltas = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or []]
        first, *rest = deltas
        self.assertEqual((first.index, first.type, first.function.name, first.function.arguments),
                         (0, "function", "find_house", ""))
        self.assertTrue(first.id)
        self.assertEqual({(call.index, call.id, call.function.name) for call in rest}, {(0, None, None)})
        self.assertEqual("".join(call.function.arguments for call in rest), whole.arguments)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "tool_calls")
        tool = openai.pydantic_function_tool(Find, name="find_house")
        with self.openai.chat.completions.stream(**self.fields(tools=[tool], tool_choice="required",
                                                               parallel_tool_calls=False)) as stream:
            kinds = {event.type for event in stream}
            message = stream.get_final_completion().choices[0].message
        self.assertIn("tool_calls.function.arguments.done", kinds)
        self.assertIsInstance(message.tool_calls[0].function.parsed_arguments, Find)

    def test_calls_that_may_come(self):
        plain = self.openai.chat.completions.create(**self.fields(max_completion_tokens=20)).choices[0].message
        self.assertIsNone(plain.tool_calls)
        hidden = self.openai.chat.completions.create(tools=[FIND], tool_choice="none",
                                                     **self.fields(max_completion_tokens=20)).choices[0].message
        self.assertEqual(hidden.content, plain.content)
        answer = self.openai.chat.completions.create(tools=[FIND], **self.fields(max_completion_tokens=20))
        [choice] = answer.choices
        self.assertEqual(choice.finish_reason == "tool_calls", bool(choice.message.tool_calls))
        self.assertTrue(choice.message.content or choice.message.tool_calls)

    def test_a_conversation_goes_on_behind_a_call(self):
        call = self.check_call(self.openai.chat.completions.create(
            tools=[FIND], tool_choice="required", parallel_tool_calls=False, **self.fields()).choices[0].message)
        messages = [*QUESTION, {"role": "assistant", "content": None, "tool_calls": [call.model_dump()]},
                    {"role": "tool", "tool_call_id": call.id, "content": "It is empty."}]
        answer = self.openai.chat.completions.create(tools=[FIND], tool_choice="none", **{
            **self.fields(max_completion_tokens=8), "messages": messages})
        self.assertTrue(answer.choices[0].message.content)

    def test_reasoning(self):
        # The constraint holds for what follows the reasoning; a bias makes the model begin with it.
        tokens = self.client.post("/tokenize", {"content": "<think>", "add_special": False}).json["tokens"]
        answer = self.openai.chat.completions.create(**self.fields(extra_body={"guided_regex": "[a-z]{4}"}))
        self.assertRegex(answer.choices[0].message.content, "^[a-z]{4}$")
        self.assertIsNone(answer.usage.completion_tokens_details)
        fields = self.fields(logit_bias={str(tokens[0]): 40}, extra_body={"guided_regex": "[a-z]{4}"},
                             reasoning_effort="low", max_completion_tokens=40)
        answer = self.openai.chat.completions.create(**fields)
        message = answer.choices[0].message
        self.assertTrue(message.reasoning_content, answer)
        self.assertFalse(hasattr(message, "reasoning"))
        self.assertGreater(answer.usage.completion_tokens_details.reasoning_tokens, 0)
        chunks = list(self.openai.chat.completions.create(stream=True, **fields))
        self.assertEqual("".join(getattr(chunk.choices[0].delta, "reasoning_content", None) or "" for chunk in chunks),
                         message.reasoning_content)

    def test_what_cannot_be_enforced_is_refused(self):
        for fields, param in (
                ({"response_format": {"type": "json_schema", "json_schema": {
                    "name": "x", "strict": True, "schema": {"type": "array", "uniqueItems": True}}}},
                 "response_format.json_schema.schema"),
                ({"extra_body": {"guided_regex": "(a"}}, "guided_regex"),
                ({"extra_body": {"guided_regex": "a", "guided_choice": ["b"]}}, "guided_choice"),
                ({"tools": [function("f", {"type": 5})]}, "tools"),
                ({"tools": [FIND], "tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice"),
                ({"tool_choice": "required"}, "tool_choice")):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.openai.chat.completions.create(**self.fields(**fields))
            self.assertEqual(caught.exception.param, param, caught.exception.message)


class ToldCallsTest(StructuredTest):
    """The same with a template that writes no calls and no reasoning."""
    options = ("--chat-template", "gemma")
    test_reasoning = None

    def test_the_prompt_tells_of_tools(self):
        prompt = self.client.post("/apply-template", {"messages": QUESTION, "tools": [FIND]}).json["prompt"]
        self.assertTrue(prompt.startswith("<start_of_turn>user\n# Tools\n"), prompt)
        self.assertIn("find_house", prompt)
        self.assertIn(QUESTION[0]["content"], prompt)


if __name__ == "__main__":
    unittest.main()
