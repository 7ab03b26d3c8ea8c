"""`paceline render`: prompts of the model's template and of others, and lines that fail alone."""
import json
import shutil
import unittest

from program import BUNDLED, ProgramTest, lines

USER = [{"role": "user", "content": "Hi"}]
CHATML = "<|im_start|>user\nHi<|im_end|>\n"


class RenderTest(ProgramTest):
    def render(self, *items, template=None, options=(), code=0):
        """The answers to lines that a file's template, or each line's own, renders without a model."""
        if template is not None:
            options = [*options, "--template", self.write("chat.jinja", template)]
        return self.answers("render", *options, stdin=lines(*items), code=code)

    def one(self, template, **item):
        answer, = self.render({"messages": USER, **item}, template=template)
        self.assertEqual(list(answer), ["rendered"])
        return answer["rendered"]

    def error(self, template, **item):
        answer, = self.render({"messages": USER, **item}, template=template, code=1)
        self.assertEqual(list(answer), ["error"])
        return answer["error"]

    def test_the_models_template(self):
        with_prompt, without, by_default = self.answers(
            "render", "-m", BUNDLED,
            stdin=lines({"messages": USER, "add_generation_prompt": True}, {"messages": USER, "add_generation_prompt": False},
                        {"messages": USER}))
        self.assertEqual(with_prompt, {"rendered": CHATML + "<|im_start|>assistant\n"})
        self.assertEqual(without, {"rendered": CHATML})
        self.assertEqual(by_default, without)

    def test_text_mode_writes_the_prompt_of_one_user_message(self):
        done = self.succeed("render", "-m", BUNDLED, "-p", "Hi")
        self.assertEqual(done.stdout, CHATML + "<|im_start|>assistant\n")
        done = self.succeed("render", "-m", BUNDLED, "--system", "Be brief.", stdin="Hi\n")
        self.assertEqual(done.stdout, "<|im_start|>system\nBe brief.<|im_end|>\n" + CHATML + "<|im_start|>assistant\n")

    def test_only_the_tokenizers_files_are_needed(self):
        folder = self.directory / "tokenizer"
        folder.mkdir()
        for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
            if (BUNDLED / name).exists():
                shutil.copy(BUNDLED / name, folder)
        self.assertIn(CHATML, self.succeed("render", "-m", folder, "-p", "Hi").stdout)

    def test_a_chat_template_by_name_or_file(self):
        done = self.succeed("render", "-m", BUNDLED, "--chat-template", "gemma", "-p", "Hi")
        self.assertIn("<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n", done.stdout)
        path = self.write("mine.jinja", "mine: {{ messages[0].content }}")
        self.assertEqual(self.succeed("render", "-m", BUNDLED, "--chat-template", path, "-p", "Hi").stdout, "mine: Hi\n")
        self.assertIn("alpaca", self.fail_with(1, "render", "-m", BUNDLED, "--chat-template", "alpaca", "-p", "Hi"))

    def test_a_template_file_needs_no_model(self):
        self.assertEqual(self.one("{{ messages[0].role }}: {{ messages[0]['content'] }}"), "user: Hi")
        path = self.write("text.jinja", "<{{ messages[0].content }}>\n")
        done = self.succeed("render", "--template", path, "-p", "Hi", env={"PACELINE_MODEL": str(self.directory / "nothing")})
        self.assertEqual(done.stdout, "<Hi>\n")

    def test_a_line_brings_its_own_template(self):
        first, second = self.render({"messages": USER, "template": "1 {{ messages|length }}"},
                                    {"messages": USER * 2, "template": "2 {{ messages|length }}"})
        self.assertEqual((first, second), ({"rendered": "1 1"}, {"rendered": "2 2"}))

    def test_what_a_template_sees(self):
        tools = [{"type": "function", "function": {"name": "f"}}]
        self.assertEqual(self.one("{{ tools[0].function.name }}{{ documents }}", tools=tools), "fNone")
        self.assertEqual(self.one("{{ tools }}{{ documents[0].title }}", documents=[{"title": "T"}]), "NoneT")
        self.assertEqual(self.one("{{ colour }}{{ n + 1 }}", kwargs={"colour": "red", "n": 2}), "red3")
        self.assertEqual(self.one("{{ bos_token }}|{{ eos_token is defined }}", special_tokens={"bos_token": "<s>"}), "<s>|False")
        self.assertEqual(self.one("{{ messages|length }}{{ add_generation_prompt }}",
                                  kwargs={"messages": [], "add_generation_prompt": True}), "1False")
        extra = [{"role": "assistant", "content": None, "tool_calls": [{"function": {"arguments": {"x": 1.0, "é": "日"}}}]}]
        self.assertEqual(self.one("{{ messages[0].tool_calls[0].function.arguments|tojson }}", messages=extra),
                         '{"x": 1.0, "é": "日"}')

    def test_kwargs_of_the_command_line_are_those_of_lines_without(self):
        first, second = self.render({"messages": USER}, {"messages": USER, "kwargs": {"x": 2}}, template="{{ x }}",
                                    options=["--chat-template-kwargs", '{"x": 1}'])
        self.assertEqual((first["rendered"], second["rendered"]), ("1", "2"))

    def test_the_models_special_tokens_unless_a_line_says_otherwise(self):
        model = self.bundled_copy(without=("chat_template.jinja",))
        self.write("copy/chat_template.jinja", "{{ eos_token }}")
        own, other, none = self.answers(
            "render", "-m", model,
            stdin=lines({"messages": USER}, {"messages": USER, "special_tokens": {"eos_token": "<e>"}},
                        {"messages": USER, "special_tokens": {}}))
        self.assertEqual([a["rendered"] for a in (own, other, none)], ["<|im_end|>", "<e>", ""])

    def test_the_clock(self):
        template = "{{ strftime_now('%d %b %Y %H:%M') }}"
        self.assertEqual(self.one(template, now="2024-02-29T07:05:09"), "29 Feb 2024 07:05")
        self.assertEqual(self.one(template, now="2026-12-31"), "31 Dec 2026 00:00")
        self.assertRegex(self.one(template), r"^\d\d \w{3} 20\d\d \d\d:\d\d$")
        self.assertIn("ISO 8601", self.error(template, now="yesterday")["message"])

    def test_the_templates_own_error_comes_through_alone(self):
        template = "{% if messages[0].role != 'system' %}{{ raise_exception('System first, \"please\"') }}{% endif %}"
        self.assertEqual(self.error(template), {"code": "invalid", "message": 'System first, "please"'})

    def test_errors_say_where(self):
        self.assertRegex(self.error("\n {{ messages + {} }}")["message"], r"chat\.jinja:2:\d+: ")
        answer, = self.render({"messages": USER, "template": "{{ 1 + }}"}, code=1)
        self.assertIn("template:1:8: expected an expression", answer["error"]["message"])
        self.assertEqual(self.error("{% for i in range(99999) %}x{% endfor %}")["code"], "exhausted")

    def error_of_line(self, line):
        answer, = self.render(line, template="x", code=1)
        return answer["error"]["message"]

    def test_lines_that_are_none(self):
        for line, part in [("{", "JSON"), ("[1]", "object"), ({}, "messages: missing"), ({"messages": "Hi"}, "messages"),
                           ({"messages": ["Hi"]}, "messages[0]"), ({"messages": USER, "mesages": 1}, "did you mean messages"),
                           ({"messages": USER, "kwargs": [1]}, "kwargs"), ({"messages": USER, "tools": {}}, "tools"),
                           ({"messages": USER, "add_generation_prompt": "yes"}, "add_generation_prompt"),
                           ({"messages": USER, "special_tokens": {"bos_token": 1}}, "special_tokens.bos_token"),
                           ({"messages": USER, "now": 5}, "now"), (b'{"messages": [{"role": "\xff"}]}', "UTF-8")]:
            with self.subTest(line=line):
                self.assertIn(part, self.error_of_line(line))

    def test_a_line_fails_alone_and_the_exit_code_says_so(self):
        good, bad, last = self.render({"messages": USER}, "{", {"messages": USER}, template="{{ messages[0].content }}", code=1)
        self.assertEqual((good, last), ({"rendered": "Hi"}, {"rendered": "Hi"}))
        self.assertEqual(bad["error"]["code"], "invalid")

    def test_what_ends_the_whole_run(self):
        self.assertIn("nothing.jinja", self.fail_with(1, "render", "--template", self.directory / "nothing.jinja", "-p", "x"))
        bad = self.write("bad.jinja", "a\n{% if %}")
        self.assertIn("bad.jinja:2:7", self.fail_with(1, "render", "--template", bad, "-p", "x"))
        self.assertIn("--chat-template", self.fail_with(1, "render", "-m", self.tokenizer_without_turns(), "-p", "x"))
        self.assertIn("--jsonlines", self.fail_with(2, "render", "--jsonlines"))

    def tokenizer_without_turns(self):
        """The folder of a tokenizer that implies no chat format."""
        tokenizer = json.loads((BUNDLED / "tokenizer.json").read_text())
        tokenizer["added_tokens"] = [t for t in tokenizer["added_tokens"] if "im_" not in t["content"]]
        return self.write("bare/tokenizer.json", json.dumps(tokenizer)).parent


if __name__ == "__main__":
    unittest.main()
