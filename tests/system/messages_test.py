"""`paceline serve`: Anthropic's Messages API, whole and streamed."""
import json
import tempfile
import unittest
from pathlib import Path

from program import BUNDLED, ROOT
from serving import Client, Server, ServerCase

TOOL_TEMPLATE = ROOT / "tests/contract/tool_template.jinja"
# Its generation prompt begins the answer's reasoning.
THINKING_TEMPLATE = """{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'assistant' and message.reasoning_content %}
{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}
{%- endif %}
{{- message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n' }}{%- endif %}
"""
QUESTION = [{"role": "user", "content": "Tell me about the old house by the river."}]
ASKED = {"max_tokens": 24, "seed": 5, "messages": QUESTION}
FIND = {"name": "find_house", "description": "Finds a house.", "input_schema": {
    "type": "object", "required": ["number"], "additionalProperties": False,
    "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 99}}}}
# The bundled model knows no JSON: without this it would write blanks as long as it may.
VOCABULARY = json.loads((BUNDLED / "tokenizer.json").read_text())["model"]["vocab"]
NO_BLANKS = {str(token): -100 for text, token in VOCABULARY.items() if not text.strip("ĉĊčĠ")}
CALL = {**ASKED, "max_tokens": 60, "logit_bias": NO_BLANKS, "tools": [FIND], "tool_choice": {"type": "any"}, "thinking": {"type": "disabled"}}


def events_of(client, body):
    """The events of a stream, whose lines say their types."""
    response = client.open("POST", "/v1/messages", {**body, "stream": True})
    with response.connection:
        assert response.status == 200, response.read()
        assert response.headers["Content-Type"] == "text/event-stream"
        events = []
        for event in response.read().decode().split("\n\n")[:-1]:
            name, data = event.split("\n")
            events.append(json.loads(data.removeprefix("data: ")))
            assert name == "event: " + events[-1]["type"], event
        return events


def message_of(events):
    """The message that a stream's events make, as Anthropic's client puts them together."""
    message = events[0]["message"]
    inputs = {}
    for event in events[1:]:
        if event["type"] == "content_block_start":
            assert event["index"] == len(message["content"])
            message["content"].append(event["content_block"])
        elif event["type"] == "content_block_delta":
            block, delta = message["content"][event["index"]], event["delta"]
            if delta["type"] == "input_json_delta":
                inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
                continue
            member = delta["type"].removesuffix("_delta")
            block[member] += delta[member]
        elif event["type"] == "message_delta":
            message.update(event["delta"], usage=event["usage"])
    for index, text in inputs.items():
        message["content"][index]["input"] = json.loads(text)
    return message


class MessagesTest(ServerCase):
    options = ("--chat-template", TOOL_TEMPLATE)

    def ask(self, body, status=200, path="/v1/messages", **options):
        answer = self.client.post(path, body, **options)
        self.assertEqual(answer.status, status, answer.body)
        self.assertEqual(answer.headers["request-id"], answer.headers["x-request-id"])
        return answer.json

    def expect_same_streamed(self, body):
        whole = self.ask(body)
        events = events_of(self.client, body)
        streamed = message_of(events)
        for message in (whole, streamed):
            self.assertTrue(message.pop("id").startswith("msg_"))
        # The second request finds the first one's prompt in the cache.
        usages = [message.pop("usage") for message in (whole, streamed)]
        self.assertEqual(*[usage["input_tokens"] + usage["cache_read_input_tokens"] for usage in usages])
        self.assertEqual(usages[0]["output_tokens"], usages[1]["output_tokens"])
        for block in [*whole["content"], *streamed["content"]]:
            block.pop("id", None)
        self.assertEqual(whole, streamed)
        return whole, events

    def test_a_text(self):
        message, events = self.expect_same_streamed(ASKED)
        self.assertEqual(message["stop_reason"], "max_tokens")
        self.assertEqual([block["type"] for block in message["content"]], ["text"])
        types = [event["type"] for event in events]
        self.assertEqual(types[:2] + types[-3:], ["message_start", "content_block_start", "content_block_stop",
                                                  "message_delta", "message_stop"])
        self.assertEqual(set(types[2:-3]), {"content_block_delta"})
        chat = self.client.post("/v1/chat/completions", ASKED).json["choices"][0]["message"]
        self.assertEqual(chat["content"], message["content"][0]["text"])

    def test_the_start_of_a_stream_says_what_was_cached(self):
        body = {**ASKED, "system": "Be brief. " * 20}
        self.ask(body)
        start = events_of(self.client, body)[0]["message"]["usage"]
        self.assertGreater(start["cache_read_input_tokens"], 64)
        count = self.ask({"messages": QUESTION, "system": body["system"]}, path="/v1/messages/count_tokens")
        self.assertEqual(count["input_tokens"], start["input_tokens"] + start["cache_read_input_tokens"])

    def test_stop_sequences(self):
        text = self.ask(ASKED)["content"][0]["text"]
        word = text.split()[3]
        message, _ = self.expect_same_streamed({**ASKED, "stop_sequences": [word]})
        self.assertEqual((message["stop_reason"], message["stop_sequence"]), ("stop_sequence", word))

    def test_the_answer_goes_on_with_a_last_message_of_the_assistant(self):
        open_answer = {"role": "assistant", "content": "The old house"}
        message, _ = self.expect_same_streamed({**ASKED, "messages": [*QUESTION, open_answer]})
        chat = self.client.post("/v1/chat/completions", {
            **ASKED, "messages": [*QUESTION, open_answer], "add_generation_prompt": False, "continue_final_message": True})
        self.assertEqual(message["content"][0]["text"], chat.json["choices"][0]["message"]["content"])

    def test_a_tool_is_called_and_answered(self):
        message, _ = self.expect_same_streamed(CALL)
        self.assertEqual(message["stop_reason"], "tool_use")
        self.assertEqual([block["type"] for block in message["content"]], ["tool_use"] * len(message["content"]))
        self.assertEqual(set(message["content"][0]["input"]), {"number"})
        answer = self.ask(CALL)
        results = [{"type": "tool_result", "tool_use_id": block["id"], "content": "It is empty."}
                   for block in answer["content"]]
        after = self.ask({**CALL, "tool_choice": {"type": "auto"}, "messages": [
            *QUESTION, {"role": "assistant", "content": answer["content"]}, {"role": "user", "content": results}]})
        self.assertGreater(after["usage"]["cache_read_input_tokens"], 0)

    def test_a_format(self):
        schema = {"type": "object", "required": ["ok"], "additionalProperties": False,
                  "properties": {"ok": {"type": "boolean"}}}
        message, _ = self.expect_same_streamed({
            **ASKED, "max_tokens": 60, "output_config": {"format": {"type": "json_schema", "schema": schema}}})
        if message["stop_reason"] == "end_turn":
            self.assertIsInstance(json.loads(message["content"][0]["text"])["ok"], bool)

    def test_errors(self):
        for body, status, kind, words in [
                ({**ASKED, "stop_sequence": ["x"]}, 400, "invalid_request_error", "did you mean stop_sequences?"),
                ({"messages": QUESTION}, 400, "invalid_request_error", "max_tokens: missing"),
                ({**ASKED, "model": "claude"}, 404, "not_found_error", "claude"),
                ({**ASKED, "messages": [{"role": "user", "content": "long " * 4000}]}, 400, "invalid_request_error", "context"),
                (b"{", 400, "invalid_request_error", "")]:
            error = self.ask(body, status)
            self.assertEqual((error["type"], error["error"]["type"]), ("error", kind))
            self.assertIn(words, error["error"]["message"])
            self.assertTrue(error["request_id"].startswith("req_"))

    def test_no_tokens_fill_the_cache(self):
        body = {**ASKED, "system": "Speak of houses. " * 20}
        first = self.ask({**body, "max_tokens": 0})
        self.assertEqual((first["content"], first["usage"]["output_tokens"]), ([], 0))
        self.assertGreater(self.ask(body)["usage"]["cache_read_input_tokens"], 64)


class ThinkingTest(unittest.TestCase):
    def test_reasoning_comes_back_by_its_signature(self):
        with tempfile.TemporaryDirectory() as directory:
            template = Path(directory) / "thinking.jinja"
            template.write_text(THINKING_TEMPLATE)
            server = Server("--chat-template", template)
            self.addCleanup(server.stop)
            client = Client(server.port)
        whole = client.post("/v1/messages", ASKED).json["content"]
        streamed = message_of(events_of(client, ASKED))["content"]
        self.assertEqual([block["type"] for block in whole], ["thinking"])
        self.assertEqual(whole, streamed)
        self.assertTrue(whole[0]["signature"].startswith("pls1_"))
        hidden = client.post("/v1/messages", {**ASKED, "thinking": {"type": "adaptive", "display": "omitted"}})
        self.assertEqual(hidden.json["content"], [{**whole[0], "thinking": ""}])

        def count(block):
            return client.post("/v1/messages/count_tokens", {"messages": [
                *QUESTION, {"role": "assistant", "content": [block]}, *QUESTION]}).json["input_tokens"]
        self.assertEqual(count(whole[0]), count(hidden.json["content"][0]))
        self.assertLess(count({"type": "thinking", "thinking": "", "signature": "foreign"}), count(whole[0]))


class KeysTest(unittest.TestCase):
    def test_the_key_may_be_in_either_header(self):
        server = Server("--api-key", "k")
        self.addCleanup(server.stop)
        client = Client(server.port)
        for headers, status in [({"x-api-key": "k", "anthropic-version": "2023-06-01"}, 200), ({"x-api-key": "l"}, 401),
                                ({"Authorization": "Bearer k"}, 200), ({}, 401)]:
            answer = client.post("/v1/messages", ASKED, headers=headers)
            self.assertEqual(answer.status, status)
            if status == 401:
                self.assertEqual(answer.json["error"]["type"], "authentication_error")


class CountersTest(unittest.TestCase):
    """What Claude Code changes with each request is left out, so that a turn finds the one before in the cache."""

    def cached(self, *options):
        server = Server("--chat-template", TOOL_TEMPLATE, *options)
        self.addCleanup(server.stop)
        client = Client(server.port)
        messages, cached = [*QUESTION], []
        for turn in range(2):
            usage = client.post("/v1/messages", {
                **ASKED, "system": [
                    {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.37.0d9; cc_entrypoint=cli; cch=fa69{turn};"},
                    {"type": "text", "text": "You are an agent. " * 20}],
                "messages": [*messages, {"role": "system", "content": [
                    {"type": "text", "text": f"<total_tokens>{15000000 - turn} tokens left</total_tokens>"}]}]}).json["usage"]
            cached.append(usage["cache_read_input_tokens"])
            messages += [{"role": "assistant", "content": "It is old."}, {"role": "user", "content": "And?"}]
        return cached[1]

    def test_client_counters(self):
        self.assertGreater(self.cached(), 64)
        self.assertLessEqual(self.cached("--keep-client-counters"), 48)


if __name__ == "__main__":
    unittest.main()
