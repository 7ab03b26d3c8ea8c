"""`paceline serve`: what an agent's conversation computes in each turn, beyond what the prefix cache has."""
import json
import os
import random
import shutil
import tempfile
import unittest
from pathlib import Path

from program import BUNDLED
from serving import Client, Server

CONTEXT = 32768
FIRST_TOKENS, TURN_TOKENS = 8000, 600
MOST = 1.1  # tokens computed for each new one
# How many are computed doesn't depend on the model's depth.
IS_FULL = os.environ.get("PACELINE_TEST_SCALE") == "full"
NUM_TURNS = 20 if IS_FULL else 8
SHAPE = {"max_position_embeddings": CONTEXT, **({} if IS_FULL else {"num_hidden_layers": 1, "layer_types": ["full_attention"]})}
# Both begin an answer's reasoning, as its generation prompt. One shows it in later turns, too; the other, as Qwen 3's, only
# after the last question of the user.
TEMPLATE = """{%- set last = namespace(query=-1) %}
{%- for message in messages %}
{%- if message.role == 'user' %}{%- set last.query = loop.index0 %}{%- endif %}
{%- endfor %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'assistant' and message.reasoning_content and (KEEPS or preserve_thinking or loop.index0 > last.query) %}
{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}
{%- endif %}
{{- message.content or '' }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments | tojson + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n' }}{%- endif %}
"""
TOOL = {"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}


class Conversation:
    """Grows by a turn at a time, as Claude Code's does."""

    def __init__(self, client, **fields):
        self.client = client
        self.random = random.Random(3)
        self.words = [line.strip() for line in (BUNDLED / "tokenizer.json").read_text().split('"') if line.isascii() and line.isalpha() and len(line) > 3]
        self.fields = {"max_tokens": 48, "seed": 1, "tools": [TOOL], "stream": True, **fields}
        self.messages = []
        self.totals, self.computed = [], []
        self.system = self.text(FIRST_TOKENS)

    def text(self, tokens):
        words = " ".join(self.random.choices(self.words, k=tokens))
        count = self.client.post("/tokenize", {"content": words}).json["tokens"]
        return words[:len(words) * tokens // len(count)]

    def ask(self, content):
        """The blocks of the answer, as the client sends them back."""
        self.messages.append({"role": "user", "content": content})
        turn = len(self.totals)
        body = {**self.fields, "messages": self.messages, "system": [
            {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.280.1f0; cc_entrypoint=cli; cch={turn:05x};"},
            {"type": "text", "text": self.system, "cache_control": {"type": "ephemeral"}}]}
        response = self.client.open("POST", "/v1/messages", body)
        with response.connection:
            assert response.status == 200, response.read()
            events = [json.loads(event.split("data: ")[1]) for event in response.read().decode().split("\n\n")[:-1]
                      if "event: ping" not in event]
        usage = events[0]["message"]["usage"]
        assert usage["input_tokens"] == events[-2]["usage"]["input_tokens"]
        self.computed.append(usage["input_tokens"])
        self.totals.append(usage["input_tokens"] + usage["cache_read_input_tokens"])
        reasoning = "".join(event["delta"].get("thinking", "") for event in events if event["type"] == "content_block_delta")
        signature, = [event["delta"]["signature"] for event in events if "signature" in event.get("delta", {})]
        return {"type": "thinking", "thinking": reasoning, "signature": signature}

    def answer(self, *blocks):
        self.messages.append({"role": "assistant", "content": list(blocks)})

    def factor(self):
        """Tokens computed for each new one, after the first turn, and the new ones of each."""
        new = [after - before for before, after in zip(self.totals, self.totals[1:])]
        return sum(self.computed[1:]) / sum(new), new


class MessagesCacheTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.model = Path(directory.name) / "long"
        shutil.copytree(BUNDLED, cls.model, ignore=shutil.ignore_patterns("model.safetensors"))
        config = json.loads((BUNDLED / "config.json").read_text())
        (cls.model / "config.json").write_text(json.dumps({**config, **SHAPE}))

    def conversation(self, keeps, **fields):
        template = self.model / f"keeps_{keeps}.jinja"
        template.write_text(TEMPLATE.replace("KEEPS", str(keeps).lower()))
        server = Server("--load-format", "dummy", "--chat-template", template, "--max-num-seqs", "1", model=self.model)
        self.addCleanup(server.stop)
        return Conversation(Client(server.port), **fields)

    def questions(self, talk):
        for _ in range(NUM_TURNS + 1):
            thinking = talk.ask([{"type": "text", "text": talk.text(TURN_TOKENS - 100)}])
            talk.answer(thinking, {"type": "text", "text": talk.text(40)})

    def tool_loops(self, talk):
        """Four calls and their results after each question."""
        content = [{"type": "text", "text": talk.text(TURN_TOKENS)}]
        for step in range(NUM_TURNS + 1):
            thinking = talk.ask(content)
            if step % 5 == 4:
                talk.answer(thinking, {"type": "text", "text": talk.text(40)})
                content = [{"type": "text", "text": talk.text(TURN_TOKENS - 100)}]
            else:
                talk.answer(thinking, {"type": "tool_use", "id": f"toolu_{step}", "name": "read", "input": {"path": "a"}})
                content = [{"type": "tool_result", "tool_use_id": f"toolu_{step}", "content": talk.text(TURN_TOKENS - 100)},
                           {"type": "text", "text": f"<total_tokens>{15000000 - step} tokens left</total_tokens>"}]

    def expect(self, what, talk, most=MOST):
        factor, new = talk.factor()
        print(f"{what}: {talk.totals[0]} to {talk.totals[-1]} tokens in {NUM_TURNS} turns, {factor:.3f} computed for each new one")
        self.assertLessEqual(factor, most)
        return new

    def test_questions_compute_what_is_new(self):
        for keeps in (True, False):
            with self.subTest(keeps=keeps):
                talk = self.conversation(keeps)
                self.questions(talk)
                new = self.expect(f"questions, earlier reasoning {'kept' if keeps else 'dropped'}", talk)
                self.assertGreaterEqual(min(new), 300)
                self.assertGreater(talk.totals[0], 7500)
                self.assertGreater(talk.totals[-1], 7500 + 525 * NUM_TURNS)

    @unittest.skipUnless(IS_FULL, "nightly")
    def test_tool_loops_compute_what_is_new(self):
        kept = {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}
        for what, keeps, fields in [("kept", True, {}), ("kept as Claude Code asks", False, kept)]:
            with self.subTest(what):
                talk = self.conversation(keeps, **fields)
                self.tool_loops(talk)
                self.expect(f"tool loops, earlier reasoning {what}", talk)

    @unittest.skipUnless(IS_FULL, "nightly")
    def test_a_question_changes_the_prompt_from_the_first_reasoning_that_is_dropped_on(self):
        talk = self.conversation(False)
        self.tool_loops(talk)
        self.expect("tool loops, earlier reasoning dropped", talk, most=2)
        for turn, computed in enumerate(talk.computed):
            if turn == 0:
                continue
            # Only a question drops reasoning; what stood in front of the last one is still in the cache.
            loop = 5 if turn % 5 == 0 else 1
            self.assertLess(computed, talk.totals[turn] - talk.totals[max(turn - loop, 0)] + 64, turn)


if __name__ == "__main__":
    unittest.main()
