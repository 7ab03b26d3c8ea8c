"""`chat`: single turns, piped turns, --jsonl, and a conversation on a terminal."""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

import program
from program import BINARY, BUNDLED, ProgramTest, lines

GREEDY = ["--temperature", "0", "--max-tokens", "16"]


class ChatTest(ProgramTest):
    def chat(self, *arguments, **options):
        return self.succeed("chat", "-m", BUNDLED, "-q", *arguments, **options)

    def rendered(self, *messages):
        turns = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
        return turns + "<|im_start|>assistant\n"

    def test_a_turn_is_the_templates_prompt_continued(self):
        answer = self.chat("-p", "The old house", *GREEDY).stdout
        prompt = self.rendered({"role": "user", "content": "The old house"})
        same = self.succeed("generate", "-m", BUNDLED, "-q", "-p", prompt, "--no-special", *GREEDY).stdout
        self.assertEqual(answer, same)
        self.assertEqual(self.succeed("run", "-m", BUNDLED, "-q", "-p", "The old house", *GREEDY).stdout, answer)

    def test_piped_lines_are_the_turns_of_one_conversation(self):
        piped = self.chat(*GREEDY, stdin="The old house\nA dog\n").stdout
        first = self.chat("-p", "The old house", *GREEDY).stdout
        self.assertTrue(piped.startswith(first))
        messages = [{"role": "user", "content": "The old house"},
                    {"role": "assistant", "content": first[:-1]}, {"role": "user", "content": "A dog"}]
        second = self.answers("chat", "-m", BUNDLED, *GREEDY, stdin=lines({"messages": messages}))[0]
        self.assertEqual(piped, first + second["message"]["content"] + "\n")

    def test_a_system_message_and_kwargs_reach_the_template(self):
        template = self.write("t.jinja", "{{ messages | map(attribute='role') | join(',') }} {{ colour }} was it")
        answers = {}
        for name, options in {"plain": [], "system": ["--system", "Be brief."],
                              "kwargs": ["--chat-template-kwargs", '{"colour": "red and green"}']}.items():
            done = self.succeed("chat", "-m", BUNDLED, "--chat-template", template, "-p", "x", "-v", *GREEDY, *options)
            answers[name] = done.stderr.split("prefill: ")[1].split(" tokens")[0]
        self.assertEqual(len(set(answers.values())), 3, answers)

    def test_a_system_prompt_is_the_system_message_of_those_that_bring_none(self):
        text = "Answer as the keeper of the lighthouse would, in one sentence. Be kind and brief."
        file = self.write("system.txt", text + "\n")
        own, user = {"role": "system", "content": "Be loud."}, {"role": "user", "content": "The old house"}
        given = self.succeed("chat", "-m", BUNDLED, "-p", "The old house", "-v", *GREEDY, "--system-prompt", file)
        self.assertRegex(given.stderr, r"system prompt: (16|32|48) tokens kept")
        self.assertEqual(given.stdout, self.chat("-p", "The old house", "--system", text, *GREEDY).stdout)
        self.assertEqual(self.chat("-p", "The old house", "--system", "Be loud.", *GREEDY).stdout,
                         self.chat("-p", "The old house", "--system", "Be loud.", *GREEDY, "--system-prompt", file).stdout)
        brings_none, brings_one = ({"messages": [user]}, {"messages": [own, user]})
        answers = self.answers("chat", "-m", BUNDLED, *GREEDY, "--system-prompt", file,
                               stdin=lines(brings_none, brings_one))
        expected = self.answers("chat", "-m", BUNDLED, *GREEDY, stdin=lines(
            {"messages": [{"role": "system", "content": text}, user]}, brings_one))
        self.assertEqual([a["token_ids"] for a in answers], [a["token_ids"] for a in expected])

    def test_a_system_prompt_that_cannot_be(self):
        error = self.fail_with(1, "chat", "-m", BUNDLED, "-p", "x", "--system-prompt", self.directory / "none.txt")
        self.assertIn("none.txt", error)
        template = self.write("t.jinja", "{% for m in messages %}{% if 'kind' in m.content %}{{ raise_exception('no such text') }}"
                                         "{% endif %}{% endfor %}{{ messages[0].content }}")
        error = self.fail_with(1, "chat", "-m", BUNDLED, "-p", "x", "--chat-template", template,
                               "--system-prompt", self.write("system.txt", "Be kind."))
        self.assertIn("--system-prompt", error)
        self.assertIn("no such text", error)

    def test_lines_fail_alone(self):
        user = [{"role": "user", "content": "Hi"}]
        good, unknown, none, not_a_list, bad_kwargs = self.answers(
            "chat", "-m", BUNDLED, *GREEDY, code=1,
            stdin=lines({"messages": user, "seed": 1}, {"messages": user, "max_token": 1}, {"max_tokens": 1},
                        {"messages": "Hi"}, {"messages": user, "chat_template_kwargs": [1]}))
        self.assertEqual(good["message"], {"role": "assistant", "content": good["text"]})
        self.assertEqual(good["usage"]["completion_tokens"], len(good["token_ids"]) + (good["finish_reason"] == "stop"))
        self.assertIn("max_tokens", unknown["error"]["message"])
        self.assertIn("messages", none["error"]["message"])
        self.assertIn("messages", not_a_list["error"]["message"])
        self.assertIn("kwargs", bad_kwargs["error"]["message"])

    def test_an_answer_goes_on_to_the_end_of_the_context(self):
        answer = self.answers("chat", "-m", BUNDLED, "-c", "64", "--ignore-eos", "--temperature", "0",
                              stdin=lines({"messages": [{"role": "user", "content": "Hi"}]}))[0]
        self.assertEqual(answer["finish_reason"], "length")
        self.assertEqual(answer["usage"]["total_tokens"], 64)

    def test_a_model_without_template_or_turn_tokens_says_so(self):
        model = self.bundled_copy(without=("chat_template.jinja", "tokenizer.json"))
        tokenizer = json.loads((BUNDLED / "tokenizer.json").read_text())
        for token in tokenizer["added_tokens"]:
            token["content"] = token["content"].replace("im_", "turn_")
        for name in [t for t in tokenizer["model"]["vocab"] if t.startswith("<|im_")]:
            tokenizer["model"]["vocab"][name.replace("im_", "turn_")] = tokenizer["model"]["vocab"].pop(name)
        self.write("copy/tokenizer.json", json.dumps(tokenizer))
        error = self.fail_with(1, "chat", "-m", model, "-p", "x", "-q")
        self.assertIn("--chat-template", error)

    def test_a_model_without_template_takes_the_format_of_its_tokens(self):
        model = self.bundled_copy(without=("chat_template.jinja",))
        done = self.succeed("chat", "-m", model, "-p", "The old house", *GREEDY)
        self.assertIn("chatml", done.stderr)
        self.assertEqual(done.stdout, self.chat("-p", "The old house", *GREEDY).stdout)

    def test_a_wanted_template_that_does_not_exist(self):
        error = self.fail_with(1, "chat", "-m", BUNDLED, "--chat-template", "nothing", "-p", "x")
        self.assertIn("nothing", error)
        self.assertIn("chatml", error)


class Terminal:
    """A chat on a pseudo-terminal; without `columns`, one whose width isn't known."""

    def __init__(self, *arguments, columns=0):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
        self.child = subprocess.Popen([BINARY, "chat", "-m", BUNDLED, *map(str, arguments)], stdin=slave, stdout=slave,
                                      stderr=slave, env=program.environment(TERM="xterm"), start_new_session=True,
                                      preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.shown = ""

    def read_until(self, text, start=0, timeout=60):
        deadline = time.monotonic() + timeout
        while text not in self.shown[start:]:
            if not select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{text!r} not shown: {self.shown[start:]!r}")
            try:
                self.shown += os.read(self.master, 65536).decode("utf-8", "replace")
            except OSError:
                raise AssertionError(f"{text!r} not shown before the end: {self.shown[start:]!r}") from None
        return len(self.shown)

    def read_some(self, timeout=60):
        if not select.select([self.master], [], [], timeout)[0]:
            raise AssertionError(f"nothing more is shown: {self.shown!r}")
        self.shown += os.read(self.master, 65536).decode("utf-8", "replace")

    def type(self, text):
        os.write(self.master, text.encode())

    def command(self, text, expected):
        start = len(self.shown)
        self.type(text + "\r")
        self.read_until(expected, start)
        self.read_until("> ", self.shown.index(expected, start))
        return self.shown[start:]

    def close(self):
        os.close(self.master)
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()


class ChatTerminalTest(ProgramTest):
    def start(self, *arguments, **options):
        terminal = Terminal(*arguments, **options)
        self.addCleanup(terminal.close)
        terminal.read_until("> ")
        return terminal

    def finish(self, terminal, code=0):
        self.assertEqual(terminal.child.wait(60), code)

    def saved(self, terminal, name):
        terminal.command(f"/save {self.directory / name}", "messages")
        return json.loads((self.directory / name).read_text())["messages"]

    def test_a_conversation(self):
        terminal = self.start(*GREEDY)
        terminal.command("/system Be brief.", "is set")
        terminal.command("The old house", "\n")
        terminal.command("/stats", "prefill")
        messages = self.saved(terminal, "a.json")
        self.assertEqual([m["role"] for m in messages], ["system", "user", "assistant"])
        self.assertEqual(messages[1]["content"], "The old house")
        terminal.command("/reset", "new conversation")
        self.assertEqual(len(self.saved(terminal, "b.json")), 1)
        # What was counted before belongs to the conversation before.
        self.assertIn("0 messages; 0 of 1024 tokens", terminal.command("/stats", "context used"))
        terminal.command(f"/load {self.directory / 'a.json'}", "3 messages")
        self.assertIn("2 messages; the next answer counts the tokens", terminal.command("/stats", "context"))
        self.assertEqual(self.saved(terminal, "c.json"), messages)
        terminal.command("/rest", "/reset")
        for line in ["/exit now", "/stats all", "/reset it", "/help me"]:
            terminal.command(line, "takes no argument")
        terminal.command("/save", "needs a file name")
        terminal.command(f"/load {self.directory / 'none.json'}", "No such file")
        self.assertEqual(self.saved(terminal, "d.json"), messages)
        terminal.type("/exit\r")
        self.finish(terminal)

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        terminal = self.start("--ignore-eos", "--max-kv-size", "64", "--max-tokens", "1000000")
        start = len(terminal.shown)
        terminal.type("Tell me\r")
        terminal.read_until("\n", start)
        while len(terminal.shown) < start + 60:  # the answer has begun
            terminal.read_some()
        terminal.type("\x03")
        terminal.read_until("(stopped", start)
        terminal.read_until("> ", terminal.shown.index("(stopped"))
        messages = self.saved(terminal, "a.json")
        self.assertEqual(len(messages), 2)
        self.assertTrue(messages[1]["content"])
        start = len(terminal.shown)
        terminal.type("half a line\x03")
        terminal.read_until("/exit leaves", start)
        terminal.read_until("> ", terminal.shown.index("/exit leaves", start))
        terminal.type("\x04")
        self.finish(terminal)

    def answer(self, terminal, question):
        """What is shown of the answer."""
        start = len(terminal.shown)
        terminal.type(question + "\r")
        terminal.read_until("\n", start)
        start = terminal.shown.index("\n", start) + 1
        end = terminal.read_until("\n> ", start)
        return terminal.shown[start:end - len("\n> ")].replace("\r\n", "\n").rstrip("\r")

    def test_no_word_is_cut_at_the_edge(self):
        options = ["--temperature", "0", "--max-tokens", "200", "--ignore-eos"]
        shown = self.answer(self.start(*options, columns=24), "The old house").split("\n(cut off")[0]
        broken = shown.split("\n")
        self.assertGreater(len(broken), 12)
        self.assertLessEqual(max(map(len, broken)), 24)
        unbroken = self.answer(self.start(*options), "The old house").split("\n(cut off")[0]
        self.assertEqual(shown.split(), unbroken.split())
        self.assertLess(unbroken.count("\n"), shown.count("\n"))
        single = Terminal("-q", *options, "-p", "The old house", columns=24)
        self.addCleanup(single.close)
        self.finish(single)
        single.read_some()
        self.assertLessEqual(max(map(len, single.shown.split("\r\n"))), 24)
        self.assertEqual(single.shown.split(), unbroken.split())

    def test_keys_that_are_typed_during_an_answer_wait(self):
        terminal = self.start("--ignore-eos", "--max-kv-size", "4096", "--max-tokens", "1500", "-q")
        start = len(terminal.shown)
        terminal.type("Tell me\r")
        terminal.read_until("\n", start)
        while len(terminal.shown) < start + 60:  # the answer has begun
            terminal.read_some()
        terminal.type("/system Be qu\x7f\x7fkind.\r/syst")
        end = terminal.read_until("\n> ", start)
        self.assertNotIn("/system", terminal.shown[start:terminal.shown.index("\n> ", start)])
        terminal.read_until("is set", end - 2)
        terminal.read_until("/syst", terminal.shown.index("is set"))
        terminal.command("em", "Be kind.")

    def test_saving_asks_before_it_overwrites(self):
        terminal = self.start(*GREEDY, "-q")
        file = self.write("a.json", "mine")
        for reply, kept in (("", True), ("n", True), ("\x03", True), ("y", False)):
            start = len(terminal.shown)
            terminal.type(f"/save {file}\r")
            terminal.read_until("a.json exists. Overwrite it? [y/N] ", start)
            start = len(terminal.shown)
            terminal.type(reply if reply == "\x03" else reply + "\r")
            terminal.read_until("not saved" if kept else "0 messages", start)
            terminal.read_until("> ", len(terminal.shown) - 2)
            self.assertEqual(file.read_text() == "mine", kept)
        terminal.type("\x1b[A")  # the replies aren't in the history
        terminal.read_until("/save", len(terminal.shown) - 5)

    def test_an_answer_is_made_again(self):
        terminal = self.start("--max-tokens", "40", "--temperature", "1", "-s", "3", "-q")
        terminal.command("/regenerate", "no answer yet")
        first = self.answer(terminal, "The old house")
        second = self.answer(terminal, "/regenerate")
        third = self.answer(terminal, "/regenerate")
        self.assertEqual(len({first, second, third}), 3)
        messages = self.saved(terminal, "a.json")
        self.assertEqual([m["role"] for m in messages], ["user", "assistant"])
        self.assertEqual(messages[1]["content"].split(), third.split("\n(cut off")[0].split())

    def test_clearing_begins_anew_on_an_empty_screen(self):
        terminal = self.start(*GREEDY)
        terminal.command("The old house", "\n")
        self.assertIn("\x1b[2J", terminal.command("/clear", "new conversation"))
        self.assertEqual(self.saved(terminal, "a.json"), [])

    def test_a_full_context_names_the_way_out(self):
        terminal = self.start("-c", "64", "--max-tokens", "1000", "--ignore-eos")
        self.assertIn("(cut off: the context of 64 tokens is full; /reset starts a new conversation)",
                      self.answer(terminal, "The old house"))
        self.assertIn("; /reset starts a new conversation", self.answer(terminal, "And then?"))
        self.assertEqual(len(self.saved(terminal, "a.json")), 2)
        terminal.command("/reset", "new conversation")
        self.assertIn("is full", self.answer(terminal, "The old house"))

    def test_a_refused_question_is_dropped(self):
        template = self.write("t.jinja", "{% for m in messages %}{% if 'rude' in m.content %}{{ raise_exception('no manners') }}"
                                         "{% endif %}{{ m.content }}\n{% endfor %}")
        terminal = self.start(*GREEDY, "--chat-template", template)
        terminal.command("a rude word", "no manners")
        self.assertEqual(self.saved(terminal, "a.json"), [])
        terminal.command("The old house", "\n")
        self.assertEqual(len(self.saved(terminal, "b.json")), 2)

    def test_pasted_lines_are_one_text(self):
        terminal = self.start(*GREEDY)
        start = len(terminal.shown)
        terminal.type("\x1b[200~one\ntwo caf\u00e9\n\x1b[201~\r")
        terminal.read_until("caf\u00e9", start)
        terminal.read_until("> ", terminal.shown.index("caf\u00e9", start) + 10)
        self.assertEqual(self.saved(terminal, "a.json")[0]["content"], "one\ntwo caf\u00e9")
        terminal.command("/reset", "new conversation")
        terminal.type('"""first\r')
        terminal.read_until("... ", len(terminal.shown) - 5)
        terminal.command('second"""', "\n")
        self.assertEqual(self.saved(terminal, "b.json")[0]["content"], "first\nsecond")

    def test_the_history_brings_a_line_back(self):
        terminal = self.start(*GREEDY)
        terminal.command("/system first", "is set")
        terminal.command("/reset", "new conversation")
        start = len(terminal.shown)
        terminal.type("\x1b[A\x1b[A")
        terminal.read_until("/system first", start)
        terminal.type("\x1b[D!\r")  # before the last letter
        terminal.read_until("is set", start)
        terminal.command("/system", "firs!t")

    def test_a_termination_ends_it_with_the_terminal_restored(self):
        terminal = self.start()
        terminal.child.send_signal(signal.SIGTERM)
        self.finish(terminal, 128 + signal.SIGTERM)
        for flag in (termios.ECHO, termios.ICANON):
            self.assertTrue(termios.tcgetattr(terminal.master)[3] & flag)


if __name__ == "__main__":
    unittest.main()
