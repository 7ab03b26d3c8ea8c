"""Claude Code's requests, as this program documents and sends them, replayed turn by turn."""
import json
import unittest

from agent_case import KEY, RULES, SHELL, events_of, over_templates


class ClaudeCodeCase:
    """Claude Code: a billing line that changes with each request, tools, a token countdown, streams."""

    HEADERS = {"x-api-key": KEY, "anthropic-version": "2023-06-01", "x-app": "cli", "User-Agent": "claude-cli/2.1.37 (external, cli)",
               "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,"
                                 "prompt-caching-scope-2026-01-05,effort-2025-11-24",
               "anthropic-dangerous-direct-browser-access": "true", "x-stainless-lang": "js", "x-stainless-retry-count": "0"}
    CACHED = {"cache_control": {"type": "ephemeral"}}
    TOOLS = [
        {"name": "Bash", "description": "Runs a command.", "input_schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema", **SHELL}},
        {"name": "Read", "description": "Reads a file.", "input_schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "required": ["file_path"],
            "additionalProperties": False, "properties": {
                "file_path": {"type": "string"}, "offset": {"type": "number"}, "limit": {"type": "number"}}}},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
    ]
    num_requests = 0

    def turn(self, messages, **fields):
        self.num_requests += 1
        system = [
            {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.37.0d9; cc_entrypoint=cli; cch={self.num_requests:05x};"},
            {"type": "text", "text": "You are Claude Code, Anthropic's official CLI for Claude.", **self.CACHED},
            {"type": "text", "text": RULES, **self.CACHED}]
        body = {"model": self.model, "messages": messages, "system": system, "tools": self.TOOLS, "max_tokens": 12,
                "metadata": {"user_id": "user_1_account__session_2"}, "thinking": {"type": "adaptive"}, "stream": True,
                "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
                "output_config": {"effort": "high"}, **fields}
        answer = self.client.post("/v1/messages?beta=true", body, headers=self.HEADERS)
        self.assertEqual(answer.status, 200, answer.body)
        return self.message_of(answer)

    def message_of(self, answer):
        """The message that the events make; checks their order."""
        events = [data for name, data in events_of(answer) if name != "ping"]
        self.assertEqual(events[0]["type"], "message_start")
        self.assertEqual([event["type"] for event in events[-2:]], ["message_delta", "message_stop"])
        message = {**events[0]["message"], **events[-2]["delta"]}
        message["usage"] = {**message["usage"], **events[-2]["usage"]}
        blocks, written = [], {}
        for event in events[1:-2]:
            index = event["index"]
            if event["type"] == "content_block_start":
                self.assertEqual(index, len(blocks))
                blocks.append(dict(event["content_block"]))
                written[index] = ""
            elif event["type"] == "content_block_delta":
                for kind, member in [("text_delta", "text"), ("thinking_delta", "thinking"), ("signature_delta", "signature")]:
                    if event["delta"]["type"] == kind:
                        blocks[index][member] = blocks[index].get(member, "") + event["delta"][member]
                written[index] += event["delta"].get("partial_json", "")
            else:
                self.assertEqual(event["type"], "content_block_stop")
        for index, block in enumerate(blocks):
            if block["type"] == "tool_use":
                block["input"] = json.loads(written[index])
        return {**message, "content": blocks}

    def prompt_tokens(self, message):
        usage = message["usage"]
        return usage["input_tokens"] + usage["cache_read_input_tokens"] + usage.get("cache_creation_input_tokens", 0)

    def asking(self, text, left):
        return {"role": "user", "content": [
            {"type": "text", "text": "<system-reminder>\nToday's date is 2026-11-28.\n</system-reminder>\n"},
            {"type": "text", "text": text, **self.CACHED},
            {"type": "text", "text": f"<system-reminder>\n<total_tokens>{left} tokens left</total_tokens>\n</system-reminder>"}]}

    def test_two_turns_with_a_command(self):
        ask = self.asking("List the files.", 199000)
        first = self.turn([ask], max_tokens=500, thinking={"type": "disabled"},
                          tool_choice={"type": "tool", "name": "Bash", "disable_parallel_tool_use": True})
        self.assertEqual(first["stop_reason"], "tool_use")
        self.assertGreater(self.prompt_tokens(first), 0)
        [call] = [block for block in first["content"] if block["type"] == "tool_use"]
        self.assertEqual(call["name"], "Bash")
        result = {"role": "user", "content": [
            {"tool_use_id": call["id"], "type": "tool_result", "content": "main.cc", "is_error": False, **self.CACHED},
            {"type": "text", "text": "<system-reminder>\n<total_tokens>150000 tokens left</total_tokens>\n</system-reminder>"}]}
        # The first message's countdown has changed by now.
        second = self.turn([self.asking("List the files.", 150000), {"role": "assistant", "content": first["content"]}, result])
        self.assertGreaterEqual(second["usage"]["cache_read_input_tokens"], self.prompt_tokens(first) - 32)

    def test_turns_of_text(self):
        messages, before = [], 0
        for number in range(4):
            messages.append(self.asking(f"Question {number}: what is in the house by the river?", 190000 - number))
            answer = self.turn(messages)
            self.assertIn(answer["stop_reason"], ("max_tokens", "end_turn"))
            if before:
                self.assertGreaterEqual(answer["usage"]["cache_read_input_tokens"], before - 32)
            before = self.prompt_tokens(answer)
            messages.append({"role": "assistant", "content": answer["content"]})

    def test_its_smaller_requests(self):
        quota = self.client.post("/v1/messages?beta=true", {
            "model": self.model, "max_tokens": 1, "messages": [{"role": "user", "content": "quota"}],
            "metadata": {"user_id": "user_1"}}, headers=self.HEADERS)
        self.assertEqual((quota.status, quota.json["usage"]["output_tokens"]), (200, 1), quota.body)
        title = self.turn([{"role": "user", "content": [{"type": "text", "text": "Title?"}]}], tools=[], max_tokens=600, temperature=1,
                          thinking={"type": "disabled"}, output_config={"format": {"type": "json_schema", "schema": {
                              "type": "object", "required": ["title"], "additionalProperties": False,
                              "properties": {"title": {"type": "string", "enum": ["a", "b"]}}}}})
        self.assertIn(json.loads(title["content"][-1]["text"])["title"], ("a", "b"))
        counted = self.client.post("/v1/messages/count_tokens?beta=true", {
            "model": self.model, "messages": [{"role": "user", "content": "foo"}], "tools": self.TOOLS}, headers=self.HEADERS)
        self.assertGreater(counted.json["input_tokens"], 50)

    def test_room_for_more_than_is_left(self):
        """It asks for 32,000 tokens whatever the context; the client leaves after some events."""
        response = self.client.open("POST", "/v1/messages?beta=true", {
            "model": self.model, "max_tokens": 32000, "stream": True, "system": RULES, "tools": self.TOOLS,
            "messages": [self.asking("Tell a long story. " * 300, 1)]}, headers=self.HEADERS)
        with response.connection:
            self.assertEqual(response.status, 200)
            self.assertTrue(response.readline().startswith(b"event: message_start"))


over_templates(__name__, ClaudeCodeCase)

if __name__ == "__main__":
    unittest.main()
