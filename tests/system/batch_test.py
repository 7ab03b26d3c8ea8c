"""`paceline batch`: mixed files, equal answers, results after kills, full disks and malformed lines."""
import json
import os
import random
import resource
import signal
import subprocess
import time
import unittest

import program
from program import BINARY, BUNDLED, ProgramTest, lines, run, run_on_terminal

SEED = 20261121
NUM_KILLS = 20


def request(custom_id, url, **body):
    return {"custom_id": custom_id, "method": "POST", "url": f"/v1/{url}", "body": body}


def completion(custom_id, prompt, **body):
    return request(custom_id, "completions", prompt=prompt, **body)


def chat(custom_id, text, **body):
    return request(custom_id, "chat/completions", messages=[{"role": "user", "content": text}], **body)


def stripped(record):
    """A record without the fields that differ in every run."""
    record = json.loads(json.dumps(record))
    del record["id"]
    if record["response"]:
        del record["response"]["request_id"]
        body = record["response"]["body"]
        body.pop("id", None)
        body.pop("created", None)
        body.get("usage", {}).pop("prompt_tokens_details", None)  # depends on what is in the cache
    return record


class BatchTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.output = self.directory / "results.jsonl"

    def command(self, *options):
        return ["batch", "-m", BUNDLED, "-i", self.directory / "requests.jsonl", "-o", self.output, *options]

    def requests(self, *items):
        return self.write("requests.jsonl", lines(*items))

    def records(self):
        return [json.loads(line) for line in self.output.read_text().splitlines()]

    def batch(self, *items, options=()):
        """The records of a run that succeeds, by custom_id (wrong lines: by number)."""
        self.requests(*items)
        self.summary = self.succeed(*self.command(*options)).stderr
        records = self.records()
        by_name = {r["error"]["line"] if r["error"] else r["custom_id"]: r for r in records}
        self.assertEqual(len(by_name), len(records))
        return by_name

    def body_of(self, item, options=()):
        record = self.batch(item, options=options)[item["custom_id"]]
        self.assertEqual(record["response"]["status_code"], 200, record)
        return record["response"]["body"]

    def error_of(self, item):
        """Status and error object of a request that fails."""
        self.output.unlink(missing_ok=True)
        response = self.batch(item)[item["custom_id"]]["response"]
        self.assertEqual(list(response["body"]), ["error"])
        self.assertEqual(list(response["body"]["error"]), ["message", "type", "param", "code"])
        return response["status_code"], response["body"]["error"]

    def start(self, *options, env=None, **popen):
        return subprocess.Popen([BINARY, *map(str, self.command(*options))], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=program.environment(**(env or {})), **popen)

    # What comes out.

    def test_a_mixed_file_has_the_answers_of_the_single_commands(self):
        sampling = {"seed": 7, "max_tokens": 12, "temperature": 0.9, "top_p": 0.9, "top_k": 50, "min_p": 0.01,
                    "repetition_penalty": 1.1, "frequency_penalty": 0.2, "presence_penalty": 0.1,
                    "logit_bias": {"65": 1.5}, "ignore_eos": True, "stop": ["zebra"]}
        prompts = ["The sea", "It was a dark and stormy night", "A house", [10, 20, 30]]
        items = [completion(f"g{i}", p, logprobs=2, **sampling) for i, p in enumerate(prompts)]
        items += [chat(f"c{i}", p, logprobs=True, top_logprobs=2, **sampling) for i, p in enumerate(prompts[:3])]
        texts = ["What a lovely morning", "The film was a bore. It was"]
        items += [request("k", "classify", input=texts, labels=[" good", " bad"])]
        items += [request("t", "classify", input=texts, temperature=0)]
        answers = self.batch(*items)
        self.assertEqual(len(answers), len(items))

        def alone(command, *asked, options=()):
            return self.answers(command, "-m", BUNDLED, *options, stdin=lines(*asked))

        asked = [{**({"prompt": p} if isinstance(p, str) else {"prompt_ids": p}), "logprobs": 2, **sampling}
                 for p in prompts]
        for i, expected in enumerate(alone("generate", *asked)):
            choice, = answers[f"g{i}"]["response"]["body"]["choices"]
            self.assertEqual((choice["text"], choice["finish_reason"], choice["seed"]),
                             (expected["text"], expected["finish_reason"], 7))
            self.assertEqual(choice["logprobs"]["token_logprobs"], [e["logprob"] for e in expected["logprobs"]])
            self.assertEqual(choice["logprobs"]["tokens"], [e["token"] for e in expected["logprobs"]])
            for shown, entry in zip(choice["logprobs"]["top_logprobs"], expected["logprobs"]):
                self.assertEqual(shown, {**{t["token"]: t["logprob"] for t in entry["top"]},
                                         entry["token"]: entry["logprob"]})
            usage = answers[f"g{i}"]["response"]["body"]["usage"]
            self.assertEqual({k: usage[k] for k in expected["usage"]}, expected["usage"])
        asked = [{"messages": [{"role": "user", "content": p}], "logprobs": 2, **sampling} for p in prompts[:3]]
        for i, expected in enumerate(alone("chat", *asked)):
            choice, = answers[f"c{i}"]["response"]["body"]["choices"]
            self.assertEqual(choice["message"], {**expected["message"], "refusal": None})
            content = choice["logprobs"]["content"]
            self.assertEqual([t["logprob"] for t in content], [e["logprob"] for e in expected["logprobs"]])
            self.assertEqual([[t["logprob"] for t in one["top_logprobs"]] for one in content],
                             [[t["logprob"] for t in e["top"]] for e in expected["logprobs"]])
        asked = [{"text": text, "labels": [" good", " bad"]} for text in texts]
        for got, expected in zip(answers["k"]["response"]["body"]["data"], alone("classify", *asked), strict=True):
            self.assertEqual((got["label"], got["scores"]), (expected["label"], expected["scores"]))
        drawn = alone("classify", *({"text": text} for text in texts), options=["--temp", "0"])
        for got, expected in zip(answers["t"]["response"]["body"]["data"], drawn, strict=True):
            self.assertEqual((got["token_id"], got["token"]), (expected["token_id"], expected["token"]))

    def test_records_have_the_fields_of_the_api(self):
        record = self.batch(chat("a", "Hi", max_tokens=3, ignore_eos=True))["a"]
        self.assertEqual(list(record), ["id", "custom_id", "response", "error"])
        self.assertIsNone(record["error"])
        self.assertEqual(list(record["response"]), ["status_code", "request_id", "body"])
        body = record["response"]["body"]
        self.assertEqual(body["object"], "chat.completion")
        self.assertEqual(body["model"], "paceline-10m")
        self.assertLess(abs(body["created"] - time.time()), 600)
        choice, = body["choices"]
        self.assertEqual(choice["message"]["role"], "assistant")
        self.assertIsNone(choice["logprobs"])
        self.assertEqual(choice["finish_reason"], "length")
        self.assertEqual(body["usage"]["completion_tokens"], 3)
        self.assertIn("cached_tokens", body["usage"]["prompt_tokens_details"])

    def test_choices_are_the_requests_with_the_next_seeds(self):
        common = {"max_tokens": 8, "temperature": 1, "ignore_eos": True}
        many = self.batch(completion("n", ["The sea", "A house"], n=3, seed=40, **common),
                          *(completion(f"{p}{s}", p, seed=s, **common) for p in ("The sea", "A house") for s in (40, 41, 42)))
        body = many["n"]["response"]["body"]
        alone = [many[f"{p}{s}"]["response"]["body"]["choices"][0] for p in ("The sea", "A house") for s in (40, 41, 42)]
        self.assertEqual([c["index"] for c in body["choices"]], list(range(6)))
        self.assertEqual([(c["text"], c["seed"]) for c in body["choices"]], [(c["text"], c["seed"]) for c in alone])
        usages = [many[f"{p}40"]["response"]["body"]["usage"] for p in ("The sea", "A house")]
        self.assertEqual(body["usage"]["prompt_tokens"], sum(u["prompt_tokens"] for u in usages))
        self.assertEqual(body["usage"]["completion_tokens"], 6 * 8)

    def test_echo_scores_the_prompt(self):
        text = "The quick brown fox — and \U0001F600."
        scored, = self.answers("score", "-m", BUNDLED, stdin=lines({"text": text}))
        body = self.body_of(completion("e", text, echo=True, max_tokens=0, logprobs=1))
        choice, = body["choices"]
        self.assertEqual(choice["text"], text)
        self.assertEqual(choice["logprobs"]["token_logprobs"], scored["logprobs"])
        self.assertIsNone(choice["logprobs"]["top_logprobs"][0])
        offsets = choice["logprobs"]["text_offset"]
        self.assertEqual(offsets, sorted(offsets))
        self.assertLess(offsets[-1], len(text))
        self.assertEqual(body["usage"]["completion_tokens"], 0)

    def test_echo_of_token_ids(self):
        ids = [int(i) for i in self.succeed("tokenize", "-m", BUNDLED, "-p", "The sea").stdout.split()]
        choice, = self.body_of(completion("e", ids, echo=True, max_tokens=2, temperature=0, logprobs=0))["choices"]
        self.assertTrue(choice["text"].startswith("The sea"))
        self.assertEqual(choice["text"], "".join(choice["logprobs"]["tokens"]))
        self.assertEqual(choice["logprobs"]["text_offset"][1], 3)

    def test_token_ids_and_prompt_logprobs(self):
        choice, = self.body_of(completion("e", "The sea", max_tokens=2, temperature=0, return_token_ids=True,
                                          return_tokens_as_token_ids=True, logprobs=1, prompt_logprobs=2))["choices"]
        self.assertEqual(choice["logprobs"]["tokens"], [f"token_id:{i}" for i in choice["token_ids"]])
        self.assertTrue(all(len(top) == 1 for top in choice["logprobs"]["top_logprobs"]))
        self.assertIsNone(choice["prompt_logprobs"][0])
        self.assertIn(len(choice["prompt_logprobs"][1]), (2, 3))

    def test_no_two_calls_of_a_file_have_one_id(self):
        tool = {"type": "function", "function": {"name": "look", "parameters": {
            "type": "object", "properties": {"x": {"enum": [1]}}, "required": ["x"], "additionalProperties": False}}}
        vocabulary = json.loads((BUNDLED / "tokenizer.json").read_text())["model"]["vocab"]
        no_blanks = {str(token_id): -100 for token, token_id in vocabulary.items() if set(token) <= set("ĠĊĉč")}
        records = self.batch(*[chat(name, "Look!", tools=[tool], logit_bias=no_blanks, tool_choice="required",
                                    parallel_tool_calls=False, n=2, reasoning_effort="none", max_tokens=80, seed=1)
                                    for name in "abc"])
        ids = [call["id"] for record in records.values() for choice in record["response"]["body"]["choices"]
               for call in choice["message"]["tool_calls"]]
        self.assertEqual((len(ids), len(set(ids))), (6, 6), ids)

    def test_content_in_parts_is_one_text(self):
        parts = [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}]
        common = {"max_tokens": 5, "temperature": 0}
        answers = self.batch(chat("p", parts, **common), chat("s", "One\ntwo", **common))
        self.assertEqual(*(answers[k]["response"]["body"]["choices"][0]["message"] for k in "ps"))

    def test_a_request_without_a_seed_takes_the_options(self):
        choice, = self.body_of(completion("a", "The sea", max_tokens=4), ["--seed", "9"])["choices"]
        self.assertEqual(choice["seed"], 9)

    def test_logits_of_a_model_without_a_tokenizer(self):
        self.requests(request("l", "classify", input=[[1, 2], [3]], with_logits=True),
                      completion("i", [1, 2], max_tokens=2, ignore_eos=True, logprobs=1),
                      completion("t", "text"))
        self.succeed("batch", "-m", self.tiny_model(), "--load-format", "dummy", "-i", self.directory / "requests.jsonl",
                     "-o", self.output)
        answers = {r["custom_id"]: r["response"] for r in self.records()}
        self.assertEqual([len(one["logits"]) for one in answers["l"]["body"]["data"]], [300, 300])
        choice, = answers["i"]["body"]["choices"]
        self.assertEqual((choice["text"], len(choice["token_ids"])), (None, 2))
        self.assertTrue(choice["logprobs"]["tokens"][0].startswith("token_id:"))
        self.assertEqual(answers["t"]["status_code"], 501)
        self.assertIn("tokenizer.json", answers["t"]["body"]["error"]["message"])

    # What is wrong with requests and lines.

    def test_a_wrong_request_is_answered_with_its_field(self):
        good = {"max_tokens": 1}
        for item, param, code in [
                (completion("x", "a", max_token=1), "max_token", "unknown_parameter"),
                (completion("x", "a", temperature=3), "temperature", "invalid_value"),
                (completion("x", "a", stream=True), "stream", "unsupported_parameter"),
                (completion("x", "a", suffix="b"), "suffix", "unsupported_parameter"),
                (completion("x", "", **good), "prompt", "invalid_value"),
                (completion("x", ["a", ""], **good), "prompt[1]", "invalid_value"),
                (completion("x", [[1], [2, 99999]], **good), "prompt[1][1]", "invalid_value"),
                (completion("x", [1] * 1025, **good), "prompt", "context_length_exceeded"),
                (completion("x", "a", guided_regex="a("), "guided_regex", "invalid_value"),
                (chat("x", "a", structured_outputs={"regex": "a("}), "structured_outputs.regex", "invalid_value"),
                (completion("x", "a", stop_token_ids=[99999]), "stop_token_ids[0]", "invalid_value"),
                (completion("x", "a", logit_bias={"99999": 1}), "logit_bias", "invalid_value"),
                (request("x", "chat/completions", messages=[]), "messages", "invalid_value"),
                (request("x", "chat/completions"), "messages", "missing_required_parameter"),
                (request("x", "classify", input="a", labels=[""]), "labels[0]", "invalid_value")]:
            with self.subTest(item=item["body"]):
                status, error = self.error_of(item)
                self.assertEqual((status, error["type"]), (400, "invalid_request_error"))
                self.assertEqual((error["param"], error["code"]), (param, code), error)
        status, error = self.error_of(completion("x", "a", model="gpt-4o"))
        self.assertEqual((status, error["param"], error["code"]), (404, "model", "model_not_found"))
        self.assertIn("paceline-10m", error["message"])

    def test_models_have_the_names_that_are_given_to_them(self):
        for name in ("paceline-10m", str(BUNDLED)):
            self.output.unlink(missing_ok=True)
            self.assertEqual(self.body_of(completion("x", "a", model=name, max_tokens=1))["model"], name)
        self.output.unlink()
        names = ["--served-model-name", "one", "--served-model-name", "two"]
        self.assertEqual(self.body_of(completion("x", "a", model="two", max_tokens=1), names)["model"], "two")
        self.output.unlink()
        self.assertEqual(self.body_of(completion("x", "a", max_tokens=1), names)["model"], "one")

    def test_wrong_lines_are_reported_and_nothing_else_is_lost(self):
        good = [completion(f"g{i}", "The sea", max_tokens=1) for i in range(4)]
        too_long = completion("long", "x" * (8 << 20))
        answers = self.batch(good[0], "not json", good[1], "", completion("g0", "again"), {**good[2], "method": "GET"},
                             {**good[2], "url": "/v1/images"}, {"custom_id": "b"}, b'{"custom_id": "\xff"}',
                             too_long, "[]", good[2], b"\xef\xbb\xbf", good[3])
        for item in good:
            self.assertEqual(answers[item["custom_id"]]["response"]["status_code"], 200)
        codes = {k: v["error"]["code"] for k, v in answers.items() if v["error"]}
        self.assertEqual(codes, {2: "invalid_json_line", 5: "duplicate_custom_id", 6: "invalid_method", 7: "invalid_url",
                                 8: "missing_required_parameter", 9: "invalid_json_line", 10: "invalid_json_line",
                                 11: "invalid_value", 13: "invalid_json_line"})
        for number in codes:
            self.assertTrue(answers[number]["error"]["message"].startswith(f"line {number}: "))
            self.assertIsNone(answers[number]["response"])
        self.assertEqual(answers[5]["custom_id"], "g0")
        self.assertIsNone(answers[2]["custom_id"])
        self.assertIn("batch: 4 answered, 0 failed, 9 malformed lines\n", self.summary)
        before = self.output.read_bytes()
        self.assertIn("0 answered, 0 failed, 13 done before", self.succeed(*self.command()).stderr)
        self.assertEqual(self.output.read_bytes(), before)

    def test_a_corrected_line_is_done(self):
        good = completion("a", "The sea", max_tokens=1)
        self.batch({**good, "url": "/v1/completion"})
        self.requests(good)
        self.succeed(*self.command())
        self.assertEqual([bool(r["error"]) for r in self.records()], [True, False])

    def test_the_summary_counts(self):
        items = [completion(f"g{i}", "The sea", max_tokens=5, ignore_eos=True) for i in range(3)]
        self.batch(*items, completion("bad", "", max_tokens=1))
        tokens = [r["response"]["body"]["usage"] for r in self.records() if r["custom_id"] != "bad"]
        prompts = sum(u["prompt_tokens"] for u in tokens)
        self.assertRegex(self.summary, rf"\Abatch: 3 answered, 1 failed\n{prompts} prompt tokens \(\d+ cached\) and "
                                       r"15 output tokens in \d+\.\d s, [\d.,]+ tok/s\n\Z")
        self.assertEqual(self.succeed(*self.command("-q")).stderr, "")

    def test_an_empty_input_is_done_at_once(self):
        self.batch()
        self.assertEqual(self.output.read_bytes(), b"")
        self.assertIn("batch: 0 answered", self.summary)

    def test_progress_is_for_terminals(self):
        self.requests(*(completion(f"g{i}", "The sea", max_tokens=20, ignore_eos=True) for i in range(150)))
        code, output, shown = run_on_terminal(*self.command("--max-num-seqs", "1"))
        self.assertEqual((code, output), (0, ""))
        self.assertIn(" requests/s ", shown)
        self.assertIn(" left", shown)
        self.assertIn("batch: 150 answered", shown)

    # Files.

    def test_files_that_will_not_do(self):
        self.requests(completion("a", "x", max_tokens=1))
        requests = self.directory / "requests.jsonl"
        self.assertIn("give --input FILE", self.fail_with(2, "batch", "-o", self.output))
        self.assertIn("give --output FILE", self.fail_with(2, "batch", "-i", requests))
        self.assertIn("nowhere.jsonl: No such file", self.fail_with(1, "batch", "-i", "nowhere.jsonl", "-o", self.output))
        self.assertIn("not a regular file", self.fail_with(1, "batch", "-i", self.directory, "-o", self.output))
        self.assertIn("not a regular file", self.fail_with(1, "batch", "-i", "/dev/null", "-o", self.output))
        self.assertFalse(self.output.exists())
        link = self.directory / "link.jsonl"
        os.link(requests, link)
        before = requests.read_bytes()
        for output in (requests, link):
            self.assertIn("both the input and the output", self.fail_with(1, "batch", "-i", requests, "-o", output))
        self.assertEqual(requests.read_bytes(), before)
        self.assertIn("Is a directory", self.fail_with(1, "batch", "-i", requests, "-o", self.directory))

    def test_a_file_of_something_else_is_left_alone(self):
        self.requests(completion("a", "x", max_tokens=1))
        self.output.write_text("my thesis\n")
        self.assertIn("not the output of a batch", self.fail_with(1, *self.command()))
        self.assertEqual(self.output.read_text(), "my thesis\n")

    def test_one_run_at_a_time(self):
        self.requests(*(completion(f"g{i}", "The sea", max_tokens=500, ignore_eos=True) for i in range(200)))
        first = self.start("--max-num-seqs", "1")
        while not self.output.exists() or self.output.stat().st_size == 0:
            time.sleep(0.01)
        self.assertIn("another `paceline batch` is writing to it", self.fail_with(1, *self.command()))
        first.kill()
        first.communicate()

    def test_a_torn_line_is_cut_off_and_done_again(self):
        items = [completion(f"g{i}", "The sea", max_tokens=3, seed=i) for i in range(4)]
        whole = self.batch(*items)
        text = self.output.read_bytes()
        generator = random.Random(SEED)
        for _ in range(5):
            size = generator.randrange(len(text))
            self.output.write_bytes(text[:size])
            again = self.batch(*items)
            self.assertEqual({k: stripped(v) for k, v in again.items()}, {k: stripped(v) for k, v in whole.items()})
            kept = text[:size].rfind(b"\n") + 1
            self.assertEqual(self.output.read_bytes()[:kept], text[:kept])

    def test_a_system_prompt_is_kept_for_chats_that_bring_none(self):
        text = "Answer as the keeper of the lighthouse would, in one sentence. Be kind and brief."
        system = {"role": "system", "content": text}
        own = {"role": "system", "content": "Be loud."}
        user = {"role": "user", "content": "The old house"}
        def chats(*conversations):
            return [request(f"c{i}", "chat/completions", messages=c, seed=i, max_tokens=8)
                    for i, c in enumerate(conversations)]
        expected = self.batch(*chats([system, user], [own, user]))
        self.output.unlink()
        found = self.batch(*chats([user], [own, user]),
                           options=["--system-prompt", self.write("system.txt", text + "\n")])
        self.assertEqual({k: stripped(v) for k, v in found.items()}, {k: stripped(v) for k, v in expected.items()})
        usage = found["c0"]["response"]["body"]["usage"]
        self.assertGreaterEqual(usage["prompt_tokens_details"]["cached_tokens"], 16)

    def test_nothing_is_lost_or_done_twice_by_kills(self):
        generator = random.Random(SEED)
        items = []
        for i in range(300):
            kind = generator.choice(["completion", "chat", "classify", "wrong"])
            count = generator.randrange(1, 30)
            items.append(completion(f"id{i}", f"Chapter {i}", max_tokens=count, seed=i, ignore_eos=True)
                         if kind == "completion" else chat(f"id{i}", f"Question {i}", max_tokens=count, seed=i)
                         if kind == "chat" else request(f"id{i}", "classify", input=f"Text {i}", labels=[" a", " b"])
                         if kind == "classify" else f"wrong line {i}" if i % 2 else completion(f"id{i}", "x", n=0))
        alone = {k: stripped(v) for k, v in self.batch(*items).items()}
        self.assertEqual(len(alone), len(items))
        self.output.unlink()
        kills = 0
        while kills < NUM_KILLS:
            child = self.start("--max-num-seqs", "2")
            size = self.output.stat().st_size if self.output.exists() else 0
            target = size + generator.choice([0, 1, 1500, 3000])
            deadline = time.monotonic() + 60
            while (not self.output.exists() or self.output.stat().st_size < target) and time.monotonic() < deadline:
                if child.poll() is not None:
                    break
                time.sleep(0.001)
            time.sleep(generator.uniform(0, 0.03))
            child.send_signal(signal.SIGKILL)
            child.communicate()
            kills += 1
            if child.returncode == 0:  # it was done before the signal came
                break
            whole = self.output.read_bytes().split(b"\n")[:-1] if self.output.exists() else []
            for line in whole:
                json.loads(line)
        self.assertGreaterEqual(kills, NUM_KILLS, "the work was done too soon")
        final = {k: stripped(v) for k, v in self.batch(*items).items()}  # each once, or it fails
        self.assertEqual(final, alone)

    def test_an_interruption_leaves_the_rest_to_the_next_run(self):
        items = [completion(f"g{i}", "The sea", max_tokens=60, seed=i, ignore_eos=True) for i in range(60)]
        self.requests(*items)
        child = self.start("--max-num-seqs", "2")
        while not self.output.exists() or self.output.stat().st_size == 0:
            time.sleep(0.001)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=program.TIMEOUT)
        self.assertEqual(child.returncode, 130)
        self.assertIn(b"paceline: interrupted; run the same command again to do the rest\n", errors)
        done = self.records()
        self.assertLess(len(done), 60)
        self.assertTrue(all(r["response"]["status_code"] == 200 for r in done))
        self.assertTrue(all(r["response"]["body"]["choices"][0]["finish_reason"] == "length" for r in done))
        self.assertEqual(len(self.batch(*items)), 60)

    def test_a_full_disk_stops_the_run_and_loses_nothing(self):
        items = [completion(f"g{i}", "The sea", max_tokens=3, seed=i) for i in range(12)]
        whole = {k: stripped(v) for k, v in self.batch(*items).items()}
        size = self.output.stat().st_size
        for share in (0.0, 0.3, 0.31, 0.7):
            self.output.unlink()
            limit = int(size * share)
            # ThreadSanitizer writes a file of its own before main(), but only if there is a directory for it.
            child = self.start(env={"TMPDIR": "/nonexistent"},
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            _, errors = child.communicate(timeout=program.TIMEOUT)
            self.assertEqual(child.returncode, 1)
            self.assertIn(b"results.jsonl: File too large; the results so far are valid", errors)
            text = self.output.read_bytes()
            self.assertTrue(text == b"" or text.endswith(b"\n"))
            self.assertLessEqual(len(text), limit)
            records = self.records()
            again = {k: stripped(v) for k, v in self.batch(*items).items()}
            self.assertEqual(again, whole)
            self.assertEqual([stripped(r) for r in self.records()[:len(records)]], [stripped(r) for r in records])

    def test_a_device_without_room(self):
        self.requests(completion("a", "The sea", max_tokens=1))
        done = run("batch", "-m", BUNDLED, "-i", self.directory / "requests.jsonl", "-o", "/dev/full")
        self.assertEqual((done.returncode, done.stderr), (1, "paceline: /dev/full: No space left on device\n"))
        self.succeed("batch", "-m", BUNDLED, "-i", self.directory / "requests.jsonl", "-o", "/dev/null")


if __name__ == "__main__":
    unittest.main()
