"""Codex CLI's requests, as this program documents and sends them, replayed turn by turn."""
import json
import unittest

import zstandard
from agent_case import KEY, OTHER_KEY, RULES, SHELL, events_of, over_templates

PATCH = """start: begin_patch hunk end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?
hunk: "*** Delete File: " filename LF
filename: /[a-z]{1,8}/
%import common.LF
"""


class CodexCase:
    """Codex CLI: twelve fields, streamed, the whole history each turn."""
    routes = ("/v1/responses",)

    HEADERS = {"Authorization": f"Bearer {KEY}", "Accept": "text/event-stream", "originator": "codex_cli_rs",
               "User-Agent": "codex_cli_rs/0.150.0 (Debian 12; x86_64) xterm", "session_id": "0199-a", "conversation_id": "0199-a",
               "version": "0.150.0", "x-codex-turn-metadata": '{"turn_id":"1"}'}
    TOOLS = [
        {"type": "function", "name": "shell_command", "description": "Runs a command.", "strict": False, "parameters": SHELL},
        {"type": "function", "name": "update_plan", "description": "Updates the plan.", "strict": False, "parameters": {
            "type": "object", "required": ["plan"], "additionalProperties": False, "properties": {
                "explanation": {"type": "string"}, "plan": {"type": "array", "items": {
                    "type": "object", "required": ["step", "status"], "additionalProperties": False, "properties": {
                        "step": {"type": "string"}, "status": {"type": "string", "description": "pending or completed"}}}}}}},
        {"type": "custom", "name": "apply_patch", "description": "Edits files.",
         "format": {"type": "grammar", "syntax": "lark", "definition": PATCH}},
        {"type": "web_search", "external_web_access": False},
        {"type": "image_generation", "output_format": "png"},
        {"type": "namespace", "name": "mcp__files", "description": "Files.", "tools": [
            {"type": "function", "name": "read", "description": "Reads.", "strict": False, "parameters": {
                "type": "object", "properties": {"path": {"type": "string"}}}}]},
    ]

    @staticmethod
    def message(role, *texts):
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text} for text in texts]}

    def turn(self, items, **fields):
        body = {"model": self.model, "instructions": RULES, "tools": self.TOOLS, "tool_choice": "auto",
                "parallel_tool_calls": False, "reasoning": {"effort": "medium", "summary": "auto"}, "store": False, "stream": True,
                "include": ["reasoning.encrypted_content"], "prompt_cache_key": "0199-a",
                "client_metadata": {"x-codex-installation-id": "0199-b"}, "input": [
                    self.message("developer", "<permissions instructions>Ask before writing.</permissions instructions>"),
                    self.message("user", "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nWrite tests.\n</INSTRUCTIONS>",
                                 "<environment_context>\n  <cwd>/tmp</cwd>\n  <shell>bash</shell>\n</environment_context>"),
                    *items], **fields}
        return {name: value for name, value in body.items() if value is not None}

    def post(self, body, **headers):
        packed = zstandard.ZstdCompressor().compress(json.dumps(body).encode())
        answer = self.client.post("/v1/responses", packed, headers={**self.HEADERS, "Content-Encoding": "zstd", **headers})
        self.assertEqual(answer.status, 200, answer.body)
        return answer

    def items_of(self, answer):
        """The items of a turn, and the response at its end; checks what Codex reads of the events."""
        events = events_of(answer)
        self.assertEqual(events[0][0], "response.created")
        self.assertEqual([data["sequence_number"] for _, data in events], list(range(len(events))))
        self.assertIn(events[-1][0], ("response.completed", "response.incomplete"))
        response = events[-1][1]["response"]
        added = [data["item"]["id"] for name, data in events if name == "response.output_item.added"]
        done = [data["item"] for name, data in events if name == "response.output_item.done"]
        self.assertEqual(added, [item["id"] for item in done])
        self.assertEqual(done, response["output"])
        for item in done:
            deltas = "".join(data["delta"] for name, data in events
                             if name in ("response.output_text.delta", "response.function_call_arguments.delta",
                                         "response.custom_tool_call_input.delta") and data["item_id"] == item["id"])
            if item["type"] == "message":
                self.assertEqual(deltas, "".join(part["text"] for part in item["content"]))
            elif item["type"] in ("function_call", "custom_tool_call"):
                self.assertEqual(deltas, item["arguments"] if item["type"] == "function_call" else item["input"])
                self.assertNotEqual(item["id"], item["call_id"])
        self.assertGreater(response["usage"]["input_tokens"], 0)
        return done, response

    def test_a_probe(self):
        for probe in [{"input": [], "max_output_tokens": 1}, {"input": "", "max_output_tokens": 1}]:
            answer = self.client.post("/v1/responses", {"model": self.model, **probe})
            self.assertEqual(answer.status, 200, answer.body)

    def test_the_list_of_models(self):
        listed = self.client.get("/v1/models?client_version=0.150.0").json
        self.assertIn(self.model, [one["id"] for one in listed["data"]])
        self.assertIsInstance(listed["models"], list)

    def test_two_turns_with_a_command(self):
        """A forced call stands for one that the bundled model wouldn't make."""
        ask = self.message("user", "List the files.")
        forced = {"type": "function", "name": "shell_command"}
        items, first = self.items_of(self.post(self.turn([ask], tool_choice=forced, max_output_tokens=500,
                                                         reasoning={"effort": "none"})))
        [call] = [item for item in items if item["type"] == "function_call"]
        self.assertEqual((call["name"], call["status"]), ("shell_command", "completed"))
        self.assertIsInstance(json.loads(call["arguments"])["command"], str)
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "main.cc\ntest.cc"}
        kept = [{name: value for name, value in item.items() if name not in ("id", "status")} for item in items]
        items, second = self.items_of(self.post(self.turn([ask, *kept, result], max_output_tokens=12)))
        self.assertTrue(items)
        # The second turn finds the first in the cache, but for where its answer began and the rest of a block of 16 tokens.
        self.assertGreaterEqual(second["usage"]["input_tokens_details"]["cached_tokens"], first["usage"]["input_tokens"] - 32)

    def test_a_patch_in_its_grammar(self):
        items, _ = self.items_of(self.post(self.turn([self.message("user", "Delete it.")], max_output_tokens=500,
                                                     tool_choice={"type": "custom", "name": "apply_patch"},
                                                     reasoning={"effort": "none"})))
        [call] = [item for item in items if item["type"] == "custom_tool_call"]
        self.assertRegex(call["input"], r"\A\*\*\* Begin Patch\n\*\*\* Delete File: [a-z]{1,8}\n\*\*\* End Patch\n?\Z")
        result = {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "done"}
        items, _ = self.items_of(self.post(self.turn([self.message("user", "Delete it."), call, result], max_output_tokens=6)))
        self.assertTrue(items)

    def test_a_past_with_reasoning(self):
        items, _ = self.items_of(self.post(self.turn([self.message("user", "Think.")], max_output_tokens=20)))
        again = [{**item, "content": None} if item["type"] == "reasoning" else item for item in items]
        for item in again:
            item.pop("id")
        items, _ = self.items_of(self.post(self.turn([self.message("user", "Think."), *again, self.message("user", "Go on.")],
                                                     max_output_tokens=6)))
        self.assertTrue(items)

    def test_compaction(self):
        talk = [self.message("user", "List the files."),
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "main.cc"}]}]
        body = {"model": self.model, "instructions": RULES, "input": talk, "tools": self.TOOLS, "parallel_tool_calls": False}
        first = self.client.post("/v1/responses/compact", body)
        self.assertEqual(first.status, 200, first.body)
        [compacted] = [item for item in first.json["output"] if item["type"] in ("compaction", "compaction_summary")]
        items, _ = self.items_of(self.post(self.turn([compacted, self.message("user", "Go on.")], max_output_tokens=6)))
        self.assertTrue(items)
        items, _ = self.items_of(self.post(self.turn([*talk, {"type": "compaction_trigger"}])))
        self.assertEqual([item["type"] for item in items], ["compaction"])
        stolen = self.client.post("/v1/responses", {"model": self.model, "input": [compacted, self.message("user", "x")],
                                                    "max_output_tokens": 2}, headers={"Authorization": f"Bearer {OTHER_KEY}"})
        self.assertIn(stolen.status, (200, 400))  # what a client keeps is its own to give away

    def test_a_web_socket_is_refused(self):
        answer = self.client.get("/v1/responses", headers={
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
        self.assertIn(answer.status, range(400, 500))
        self.assertIn("error", answer.json)


over_templates(__name__, CodexCase)

if __name__ == "__main__":
    unittest.main()
