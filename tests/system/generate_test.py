"""`paceline generate` with the bundled model: streaming, seeds, stops, interruption."""
import json
import os
import pty
import re
import signal
import subprocess
import time
import unittest

import program
from program import BINARY, BUNDLED, ProgramTest, lines

PROMPT = "It was a dark and stormy night"
NOTE = "note: the text is continued as it stands; the model's chat template is not applied\n"


class GenerateTest(ProgramTest):
    def generate(self, *arguments, **options):
        return self.succeed("generate", "-m", BUNDLED, *arguments, **options)

    def answer(self, **item):
        item = {"prompt": PROMPT, "max_tokens": 12, "temperature": 0, **item}
        return self.answers("generate", "-m", BUNDLED, stdin=lines(item))[0]

    def start(self, *arguments, **options):
        command = [BINARY, "generate", "-m", BUNDLED, *arguments]
        return subprocess.Popen(list(map(str, command)), env=program.environment(), stdin=subprocess.DEVNULL,
                                **options)

    def test_streams_what_jsonl_answers(self):
        answer = self.answer()
        self.assertEqual(list(answer), ["text", "token_ids", "finish_reason", "stop_reason", "logprobs", "usage", "seed"])
        self.assertEqual(len(answer["token_ids"]), 12)
        self.assertEqual((answer["finish_reason"], answer["stop_reason"], answer["logprobs"]), ("length", None, None))
        usage = answer["usage"]
        self.assertEqual(usage["completion_tokens"], 12)
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + 12)
        done = self.generate("-p", PROMPT, "-n", "12", "--temp", "0")
        self.assertEqual(done.stdout, answer["text"].rstrip("\n") + "\n")
        self.assertEqual(done.stderr, NOTE)

    def test_same_seed_same_text(self):
        seeded = [self.generate("-p", PROMPT, "-n", "12", "-s", seed, "-q", *more).stdout
                  for seed, more in [(1, []), (1, ["-t", "1"]), (1, ["-b", "2"]), (2, [])]]
        self.assertEqual(seeded[0], seeded[1])
        self.assertEqual(seeded[0], seeded[2])
        self.assertNotEqual(seeded[0], seeded[3])

    def test_the_seed_used_is_returned_and_repeats_the_text(self):
        first = self.answer(temperature=1)
        again = self.answer(temperature=1, seed=first["seed"])
        self.assertEqual(first, again)
        self.assertNotEqual(first["seed"], self.answer(temperature=1)["seed"])

    def test_stop_strings_are_never_shown(self):
        text = self.answer(max_tokens=40)["text"]
        for begin, length in [(1, 1), (9, 3), (20, 7), (33, 12)]:  # inside and across tokens
            stop = text[begin:begin + length]
            expected = text[:text.index(stop)]
            answer = self.answer(max_tokens=40, stop=["never written", stop])
            self.assertEqual(answer["text"], expected)
            self.assertEqual((answer["finish_reason"], answer["stop_reason"]), ("stop", stop))
            streamed = self.generate("-p", PROMPT, "-n", "40", "--temp", "0", "--stop", stop, "-q").stdout
            self.assertEqual(streamed, expected if expected.endswith("\n") else expected + "\n")

    def test_a_stop_string_that_only_begins_is_shown(self):
        text = self.answer(max_tokens=20)["text"]
        self.assertEqual(self.answer(max_tokens=20, stop=text[-5:] + "never written")["text"], text)

    def test_stop_token_ids(self):
        ids = self.answer()["token_ids"]
        stop = ids[5]
        answer = self.answer(stop_token_ids=[stop])
        self.assertEqual(answer["token_ids"], ids[:ids.index(stop)])
        self.assertEqual((answer["finish_reason"], answer["stop_reason"]), ("stop", stop))

    def test_allowed_and_banned_tokens(self):
        ids = self.answer()["token_ids"]
        answer = self.answer(allowed_token_ids=[300, 17])
        self.assertLessEqual(set(answer["token_ids"]), {300, 17})
        word = self.answer()["text"].split()[0]
        banned = self.answer(bad_words=[word])
        self.assertNotEqual(banned["token_ids"], ids)
        flags = ["--bad-words", word, "--bad-words", "zq"]
        streamed = self.generate("-p", PROMPT, "-n", "12", "--temp", "0", *flags, "-q").stdout
        self.assertEqual(streamed.rstrip("\n"), banned["text"].rstrip("\n"))
        one = self.generate("-p", PROMPT, "-n", "3", "--temp", "0", "--allowed-token-ids", "300", "-q").stdout
        self.assertEqual(one.rstrip("\n"), self.answer(allowed_token_ids=[300], max_tokens=3)["text"].rstrip("\n"))

    def test_logprobs(self):
        answer = self.answer(logprobs=3)
        self.assertEqual([e["id"] for e in answer["logprobs"]], answer["token_ids"])
        self.assertEqual("".join(e["token"] for e in answer["logprobs"]), answer["text"])
        for entry in answer["logprobs"]:
            self.assertEqual(set(entry), {"id", "token", "logprob", "top"})
            self.assertEqual(len(entry["top"]), 3)
            self.assertEqual(entry["top"][0]["id"], entry["id"])  # greedy
            self.assertEqual(entry["top"][0]["logprob"], entry["logprob"])
            values = [top["logprob"] for top in entry["top"]]
            self.assertEqual(values, sorted(values, reverse=True))
        self.assertEqual(self.answer(logprobs=0)["logprobs"][0]["top"], [])

    def test_logit_bias_and_penalties_act(self):
        first = self.answer()["token_ids"][0]
        self.assertNotEqual(self.answer(logit_bias={str(first): -100})["token_ids"][0], first)
        self.assertEqual(set(self.answer(logit_bias={"65": 100}, ignore_eos=True)["token_ids"]), {65})
        plain = self.answer(max_tokens=60)["token_ids"]
        penalised = self.answer(max_tokens=60, frequency_penalty=2, presence_penalty=2)["token_ids"]
        self.assertGreater(len(set(penalised)), len(set(plain)))

    def test_prompt_ids_are_taken_as_given(self):
        ids = [int(i) for i in self.succeed("tokenize", "-m", BUNDLED, "-p", PROMPT).stdout.split()]
        self.assertEqual(self.answer(prompt=None, prompt_ids=ids, seed=1), self.answer(seed=1))
        done = self.generate("--prompt-ids", ",".join(map(str, ids)), "-n", "12", "--temp", "0", "-q")
        self.assertEqual(done.stdout, self.generate("-p", PROMPT, "-n", "12", "--temp", "0", "-q").stdout)

    def test_prompts_come_from_options_files_and_pipes(self):
        options = ["-n", "5", "--temp", "0", "-q"]
        expected = self.generate("-p", PROMPT, *options).stdout
        self.assertEqual(self.generate("-f", self.write("p.txt", PROMPT + "\n"), *options).stdout, expected)
        self.assertEqual(self.generate("-f", self.write("p.txt", PROMPT), *options).stdout, expected)
        self.assertEqual(self.generate("-f", "-", *options, stdin=PROMPT).stdout, expected)
        self.assertEqual(self.generate(*options, stdin=PROMPT + "\n").stdout, expected)

    def test_several_prompts_are_set_apart(self):
        options = ["-n", "5", "--temp", "0", "-q"]
        alone = [self.generate("-p", p, *options).stdout for p in (PROMPT, "The sea")]
        self.assertEqual(self.generate("-p", PROMPT, "-p", "The sea", *options).stdout, "\n".join(alone))

    def test_verbose_says_how_it_went(self):
        done = self.generate("-p", PROMPT, "-n", "5", "-v", "-s", "7")
        for word in ["model:", "qwen3", "tok/s", "first token after", "peak memory", "seed 7", "finished by length"]:
            self.assertIn(word, done.stderr)
        self.assertNotIn("tok/s", done.stdout)

    def test_verbose_beside_jsonl_says_how_each_line_went(self):
        items = [{"prompt": PROMPT, "max_tokens": n, "ignore_eos": True} for n in (3, 40)]
        done = self.generate("--jsonl", "-v", stdin=lines(*items))
        figures = re.findall(r"decode: (\d+) tokens, ([\d,.]+) tok/s; first token after (\d\S*) m?s;", done.stderr)
        self.assertEqual([count for count, _, _ in figures], ["3", "40"])
        for _, rate, first_token in figures:
            self.assertGreater(float(rate.replace(",", "")), 0)
            self.assertGreater(float(first_token), 0)

    def test_nothing_is_left_for_zero_tokens(self):
        answer = self.answer(max_tokens=0)
        self.assertEqual((answer["text"], answer["token_ids"], answer["finish_reason"]), ("", [], "length"))

    def test_a_terminal_sees_the_prompt_before_its_continuation(self):
        reader, writer = pty.openpty()
        child = self.start("-p", PROMPT, "-n", "3", "--temp", "0", "-q", stdout=writer, stderr=subprocess.PIPE)
        self.assertEqual(child.wait(program.TIMEOUT), 0)
        os.close(writer)
        shown = os.read(reader, 4096).decode()
        os.close(reader)
        self.assertIn(PROMPT, shown)
        child.stderr.close()

    def test_interrupt_keeps_what_came(self):
        child = self.start("-p", PROMPT, "--ignore-eos", "--max-kv-size", "64", "-n", "1000000", stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
        first = child.stdout.read(8)
        child.send_signal(signal.SIGINT)
        rest, errors = child.communicate(timeout=program.TIMEOUT)
        self.assertEqual(child.returncode, 130)
        self.assertEqual(len(first), 8)
        self.assertTrue((first + rest).endswith(b"\n"))
        self.assertEqual(errors.decode(), NOTE + "paceline: interrupted\n")

    def test_interrupt_ends_the_lines_after_a_cancelled_answer(self):
        long = {"prompt": PROMPT, "max_tokens": 1000000, "ignore_eos": True}
        items = lines({**long, "max_tokens": 1}, long, long)
        command = [BINARY, "generate", "-m", BUNDLED, "--jsonl", "-q", "--max-kv-size", "64"]
        child = subprocess.Popen(list(map(str, command)), env=program.environment(), stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        child.stdin.write(items)
        child.stdin.close()
        answers = [json.loads(child.stdout.readline())]  # the model is loaded, the second is begun
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        answers += [json.loads(line) for line in child.stdout.read().splitlines()]
        child.stdout.close()
        self.assertEqual(child.wait(program.TIMEOUT), 130)
        self.assertEqual([a["finish_reason"] for a in answers], ["length", "cancelled", "cancelled"])

    def test_who_waits_for_an_answer_before_asking_again_gets_it(self):
        command = [BINARY, "generate", "-m", BUNDLED, "--jsonl", "-q"]
        child = subprocess.Popen(list(map(str, command)), env=program.environment(), stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        for size in (1, 3):
            child.stdin.write(lines({"prompt": PROMPT, "max_tokens": size, "ignore_eos": True}))
            child.stdin.flush()
            self.assertEqual(len(json.loads(child.stdout.readline())["token_ids"]), size)
        child.stdin.close()
        self.assertEqual(child.stdout.read(), b"")
        child.stdout.close()
        self.assertEqual(child.wait(program.TIMEOUT), 0)

    def test_a_reader_that_goes_away_ends_it_quietly(self):
        child = self.start("-p", PROMPT, "--ignore-eos", "--max-kv-size", "64", "-n", "1000000", "-q",
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdout.read(4)
        child.stdout.close()
        self.assertEqual(child.stderr.read(), b"")
        child.stderr.close()
        self.assertEqual(child.wait(program.TIMEOUT), -signal.SIGPIPE)

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            child = self.start("-p", PROMPT, "-n", "2", "-q", stdout=full, stderr=subprocess.PIPE)
            errors = child.stderr.read().decode()
            child.stderr.close()
            self.assertEqual(child.wait(program.TIMEOUT), 1)
        self.assertIn("standard output: No space left on device", errors)


if __name__ == "__main__":
    unittest.main()
