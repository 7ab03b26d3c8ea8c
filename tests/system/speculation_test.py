"""Speculative decoding never changes an answer: a draft model, prompt lookup and predictions, on all ways to ask."""
import json
import os
import random
import re
import unittest
from concurrent.futures import ThreadPoolExecutor

from program import BUNDLED, ROOT, ProgramTest, lines
from serving import Client, Server

DRAFT = ROOT / "models" / "paceline-draft-1m"
# Drafting whatever it costs makes the counts certain; "adapting" is the usual setting.
DRAFTERS = {"model": ("-md", DRAFT, "--no-adaptive-drafts"), "adapting": ("-md", DRAFT),
            "ngram": ("--speculative-method", "ngram", "--prompt-lookup-min", 1, "--no-adaptive-drafts")}
SURE = ("model", "ngram")  # to draft and to accept
# A text that repeats itself, so that prompt lookup finds something.
PROMPT = "The old house by the river, the old house by the sea, the old house by the river, the old house by"
MESSAGES = [{"role": "user", "content": "Tell me about the old house by the river."}]

COMPLETIONS = [
    {"temperature": 0},
    {"temperature": 0.7, "seed": 3},
    {"temperature": 1, "seed": 4, "logprobs": 3},
    {"temperature": 0.7, "seed": 5, "n": 2, "logprobs": 1},
    {"temperature": 0, "stop": [" the", "sea"]},
    {"temperature": 0, "presence_penalty": 1, "repetition_penalty": 1.3},
    {"temperature": 1, "seed": 6, "min_tokens": 20, "top_k": 40, "return_token_ids": True},
    {"temperature": 0, "prompt_logprobs": 1},
]


def figures(client):
    """The counters of speculative decoding by name, with the position of those that have one."""
    text = client.get("/metrics").body.decode()
    found = re.findall(r"^paceline:spec_decode_(\w+)\{model_name=\"[^\"]*\"(?:,position=\"(\d+)\")?\} (\d+)$", text,
                       re.MULTILINE)
    return {name + (f"/{position}" if position else ""): int(value) for name, position, value in found}


def stripped(answer):
    """An answer without what differs in every one."""
    kept = {key: value for key, value in answer.items() if key not in ("id", "created", "system_fingerprint")}
    if kept.get("usage"):
        kept["usage"] = {key: value for key, value in kept["usage"].items() if not key.endswith("_details")}
    return kept


def text_of(events):
    """The text of each choice of a stream."""
    texts = {}
    for event in events:
        for choice in event["choices"]:
            piece = choice["delta"].get("content", "") if "delta" in choice else choice["text"]
            texts[choice["index"]] = texts.get(choice["index"], "") + piece
    return texts


class ServedTest(unittest.TestCase):
    """The same requests to a server without a drafter and to one with each."""

    @classmethod
    def setUpClass(cls):
        cls.clients, cls.servers = {}, {}
        for name, options in {"plain": (), **DRAFTERS}.items():
            server = Server(*options)
            cls.addClassCleanup(server.stop)
            cls.servers[name], cls.clients[name] = server, Client(server.port)

    def each(self, ask):
        """What `ask` makes of the plain server, after checking that it makes the same of the others."""
        expected = ask(self.clients["plain"])
        for name in DRAFTERS:
            with self.subTest(drafter=name):
                self.assertEqual(ask(self.clients[name]), expected)
        return expected

    def complete(self, client, **body):
        answer = client.post("/v1/completions", {"prompt": PROMPT, "max_tokens": 48, "seed": 1, **body})
        self.assertEqual(answer.status, 200, answer.body)
        return stripped(answer.json)

    def test_completions_keep_their_bytes(self):
        for body in COMPLETIONS:
            with self.subTest(body=body):
                self.each(lambda client, body=body: self.complete(client, **body))

    def test_drafts_are_accepted_and_counted(self):
        for name in SURE:
            with self.subTest(drafter=name):
                client = self.clients[name]
                before = figures(client)
                self.complete(client, temperature=0, max_tokens=100, ignore_eos=True)
                after = figures(client)
                gained = {key: after[key] - before[key] for key in after}
                self.assertGreater(gained["num_drafts_total"], 0)
                self.assertGreaterEqual(gained["num_draft_tokens_total"], gained["num_drafts_total"])
                self.assertGreater(gained["num_accepted_tokens_total"], 0)
                by_position = [value for key, value in gained.items() if "per_pos" in key]
                self.assertEqual(len(by_position), 8)
                self.assertEqual(sum(by_position), gained["num_accepted_tokens_total"])
                self.assertEqual(by_position, sorted(by_position, reverse=True))
                self.assertEqual(gained["failures_total"], 0)
        # Of a server without a drafter only predictions have drafts.
        before = figures(self.clients["plain"])
        self.complete(self.clients["plain"], temperature=0)
        self.assertEqual(figures(self.clients["plain"]), before)

    def test_a_request_may_decline(self):
        before = figures(self.clients["model"])
        self.complete(self.clients["model"], temperature=0, speculation=False)
        self.assertEqual(figures(self.clients["model"]), before)

    def test_chats_and_streams(self):
        for body in ({}, {"stream_interval": 5}, {"stop": ["old", "sea"]},
                     {"n": 2, "logprobs": True, "top_logprobs": 2}):
            body = {"messages": MESSAGES, "max_tokens": 40, "temperature": 0.7, "seed": 8, **body}
            with self.subTest(body=body):
                def streamed(client, body=body):
                    events, done = client.stream("/v1/chat/completions", body)
                    self.assertTrue(done)
                    return text_of(events)
                texts = self.each(streamed)
                whole = dict(body)
                whole.pop("stream_interval", None)
                answer = self.each(lambda client, whole=whole: stripped(
                    client.post("/v1/chat/completions", whole).json))
                self.assertEqual(texts, {choice["index"]: choice["message"]["content"] for choice in answer["choices"]})

    def test_a_stream_marks_accepted_text(self):
        body = {"prompt": PROMPT, "max_tokens": 100, "ignore_eos": True, "temperature": 0,
                "stream_options": {"include_accepted": True}}
        for name in ("plain", *SURE):
            with self.subTest(drafter=name):
                events, _ = self.clients[name].stream("/v1/completions", body)
                accepted = ""
                for [choice] in (event["choices"] for event in events):
                    pieces = choice.get("pieces", [])
                    accepted += "".join(piece["text"] for piece in pieces if piece["accepted"])
                    if pieces:
                        self.assertEqual("".join(piece["text"] for piece in pieces), choice["text"])
                self.assertEqual(accepted != "", name != "plain")

    def test_tokens_that_come_together_have_chunks_of_their_own(self):
        body = {"prompt": PROMPT, "max_tokens": 100, "ignore_eos": True, "temperature": 0, "return_token_ids": True}
        for interval in (1, 3):
            # On a busy machine the server may be late once, and merge tokens: not in every one of these streams.
            most = 100
            for _ in range(5):
                before = figures(self.clients["model"])
                events, _ = self.clients["model"].stream("/v1/completions", {**body, "stream_interval": interval})
                self.assertGreater(figures(self.clients["model"])["num_accepted_tokens_total"],
                                   before["num_accepted_tokens_total"])
                counts = [len(event["choices"][0]["token_ids"]) for event in events]
                self.assertEqual(sum(counts), 100)
                most = min(most, max(counts))
                if most == interval:
                    break
            self.assertEqual(most, interval)

    def test_a_prediction(self):
        body = {"messages": MESSAGES, "max_tokens": 60, "temperature": 0, "seed": 1}
        for name, client in self.clients.items():
            plain = client.post("/v1/chat/completions", body).json
            self.assertNotIn("completion_tokens_details", plain["usage"])
            text = plain["choices"][0]["message"]["content"]
            for content in (text, "Nothing of this will be said."):
                with self.subTest(drafter=name, content=content):
                    predicted = {**body, "prediction": {"type": "content", "content": content}}
                    answer = client.post("/v1/chat/completions", predicted).json
                    self.assertEqual(stripped(answer), stripped(plain))
                    details = answer["usage"]["completion_tokens_details"]
                    if name in SURE:
                        self.assertEqual(details["accepted_prediction_tokens"] > 20, content == text)
                    events, _ = client.stream("/v1/chat/completions",
                                              {**predicted, "stream_options": {"include_usage": True}})
                    self.assertEqual(text_of(events)[0], text)
                    self.assertEqual(set(events[-1]["usage"]["completion_tokens_details"]), set(details))

    def test_many_at_once_beside_classification(self):
        bodies = [{"prompt": f"{i} {PROMPT}", "max_tokens": 30, "temperature": i % 3 / 2, "seed": i} for i in range(12)]
        labels = {"input": "The film was a bore. It was", "labels": ["good", "bad"]}

        def all_of(client):
            with ThreadPoolExecutor(13) as pool:
                scored = pool.submit(client.post, "/v1/classify", labels)
                answers = list(pool.map(lambda body: client.post("/v1/completions", body).json["choices"], bodies))
                return answers, scored.result().json["data"]
        self.each(all_of)

    def test_the_server_says_what_drafts(self):
        self.assertNotIn("draft", "\n".join(self.servers["plain"].lines))
        self.assertRegex("\n".join(self.servers["model"].lines),
                         r"draft model: \S+/paceline-draft-1m, weights [\d.]+ MiB, keys and values [\d.]+ MiB; "
                         r"drafts up to 8 tokens a step")
        self.assertIn("drafter: ngram, drafts up to 8 tokens a step", self.servers["ngram"].lines)
        for name, client in self.clients.items():
            with self.subTest(drafter=name):
                self.assertEqual({slot["speculative"] for slot in client.get("/slots").json}, {name != "plain"})
                params = client.get("/props").json["default_generation_settings"]["params"]
                self.assertEqual(params["speculative.n_max"], 0 if name == "plain" else 8)
                body = {"prompt": PROMPT, "n_predict": 60, "temperature": 0}
                timings = client.post("/completion", body).json["timings"]
                if name != "adapting":
                    self.assertEqual("draft_n" in timings, name != "plain")

    def test_the_fingerprint_is_the_same(self):
        body = {"prompt": "x", "max_tokens": 1}
        self.each(lambda client: client.post("/v1/completions", body).json["system_fingerprint"])

    def test_rejection_keeps_the_bytes_of_temperature_0_only(self):
        server = Server(*DRAFTERS["model"], "--spec-accept", "rejection")
        self.addCleanup(server.stop)
        client, plain = Client(server.port), self.clients["plain"]
        for body in ({"logprobs": 2}, {"n": 2, "stop": [" sea"]}, {"repetition_penalty": 1.2}):
            self.assertEqual(self.complete(client, temperature=0, **body), self.complete(plain, temperature=0, **body))
        for seed in range(3):
            answer = self.complete(client, temperature=1, seed=seed, ignore_eos=True)
            self.assertEqual(answer["usage"]["completion_tokens"], 48)
        body = {"prompt": "x", "max_tokens": 1}
        fingerprints = {one.post("/v1/completions", body).json["system_fingerprint"] for one in (client, plain)}
        self.assertEqual(len(fingerprints), 2)

    def test_the_last_steps_have_their_drafts(self):
        self.complete(self.clients["model"], temperature=0)
        live = self.clients["model"].get("/v1/requests").json
        drafts = [draft for step in live["steps"] for draft in step.get("drafts", [])]
        self.assertTrue(drafts)
        self.assertTrue(all(0 <= accepted <= drafted for _, drafted, accepted in drafts))
        self.assertGreater(live["engine"]["drafted_tokens"], 0)
        self.assertEqual(live["engine"]["max_drafted_tokens"], 8)


class CommandTest(ProgramTest):
    def test_generate_says_what_was_drafted(self):
        command = ("generate", "-m", BUNDLED, "-p", PROMPT, "-n", 60, "--temp", 0)
        plain = self.succeed(*command, "-v")
        self.assertNotIn("draft", plain.stderr)
        for name in SURE:
            done = self.succeed(*command, "-v", *DRAFTERS[name])
            self.assertEqual(done.stdout, plain.stdout)
            self.assertRegex(done.stderr, r"; drafted \d+ tokens?, accepted \d+ \([\d.]+%\), \d\.\d\d tokens a step;")

    def test_jsonl_has_the_counts(self):
        items = lines(*({"prompt": PROMPT, "max_tokens": 30, "temperature": t, "seed": 1} for t in (0, 0.7, 1)))
        plain = self.answers("generate", "-m", BUNDLED, stdin=items)
        drafted = self.answers("generate", "-m", BUNDLED, *DRAFTERS["model"], stdin=items)
        self.assertTrue(all("drafted_tokens" not in answer["usage"] for answer in plain))
        self.assertTrue(all(answer["usage"].pop("drafted_tokens") >= answer["usage"].pop("accepted_tokens")
                            for answer in drafted if "drafted_tokens" in answer["usage"]))
        self.assertEqual(drafted, plain)

    def test_many_prompts(self):
        count = 10_000 if os.environ.get("PACELINE_TEST_SCALE") == "full" else 60
        words = [" the", " old", " man", " and", " his", " sea", " said", ".\n\n", " \"I", " was", " upon", " house", ",", " Mr."]
        draw = random.Random(5)
        items = lines(*({"prompt": "It" + "".join(draw.choices(words, k=draw.randint(1, 12))), "max_tokens": 24,
                         "temperature": draw.choice([0, 0.7, 1]), "seed": i} for i in range(count)))
        plain = self.answers("generate", "-m", BUNDLED, stdin=items)
        self.assertEqual(len(plain), count)
        for name in SURE:
            # Waiting prompts take the rows of drafts, so not all begin at once.
            drafted = self.answers("generate", "-m", BUNDLED, "--max-num-seqs", 16, *DRAFTERS[name], stdin=items)
            self.assertGreater(sum(answer["usage"].pop("accepted_tokens", 0) for answer in drafted), count)
            for answer in drafted:
                answer["usage"].pop("drafted_tokens", 0)
            self.assertEqual(drafted, plain)

    def test_a_batch_file(self):
        chat = {"messages": MESSAGES, "max_tokens": 40, "temperature": 0, "seed": 1}
        whole = self.directory / "whole.jsonl"

        def batch(*bodies, options=()):
            requests = self.write("requests.jsonl", lines(*(
                {"custom_id": str(i), "method": "POST", "url": url, "body": body}
                for i, (url, body) in enumerate(bodies))))
            whole.unlink(missing_ok=True)
            done = self.succeed("batch", "-m", BUNDLED, "-i", requests, "-o", whole, "-v", *options)
            records = {record["custom_id"]: record for record in map(json.loads, whole.read_text().splitlines())}
            return [records[str(i)]["response"]["body"] for i in range(len(bodies))], done.stderr

        others = [("/v1/completions", {"prompt": PROMPT, "max_tokens": 40, "temperature": 0.7, "seed": 2}),
                  ("/v1/classify", {"input": "It was", "labels": ["good", "bad"]})]
        [answer, *plain], said = batch(("/v1/chat/completions", chat), *others)
        self.assertNotIn("drafted", said)
        text = answer["choices"][0]["message"]["content"]
        predicted = {**chat, "prediction": {"type": "content", "content": text}}
        [again, *drafted], said = batch(("/v1/chat/completions", predicted), *others, options=DRAFTERS["model"])
        self.assertEqual(again["choices"], answer["choices"])
        self.assertGreater(again["usage"]["completion_tokens_details"]["accepted_prediction_tokens"], 10)
        self.assertEqual([stripped(body) for body in drafted], [stripped(body) for body in plain])
        self.assertRegex(said, r"drafted \d+ tokens, accepted \d+ ")

    def test_a_draft_model_with_other_tokens_is_refused(self):
        model = self.directory / "other"
        model.mkdir()
        for source in DRAFT.iterdir():
            (model / source.name).write_bytes(source.read_bytes())
        tokenizer = json.loads((model / "tokenizer.json").read_text())
        vocabulary = tokenizer["model"]["vocab"]
        names = {id: name for name, id in vocabulary.items()}
        vocabulary[names[1000]], vocabulary[names[2000]] = 2000, 1000
        (model / "tokenizer.json").write_text(json.dumps(tokenizer))
        for command in (("serve", "--port", 0), ("generate", "-p", "x")):
            said = self.fail_with(1, *command, "-m", BUNDLED, "-md", model)
            self.assertIn("--speculative-model: ", said)
            self.assertIn("token 1000", said)

    def test_methods_of_other_engines_are_refused(self):
        for method in ("eagle3", "medusa", "mtp"):
            self.assertIn(f"found {method}", self.fail_with(2, "serve", "--port", 0, "-m", BUNDLED,
                                                            "--speculative-method", method).replace('"', ""))

    def test_inspect_counts_both_models(self):
        alone = json.loads(self.succeed("inspect", "-m", BUNDLED, "--json").stdout)["memory"]
        both = json.loads(self.succeed("inspect", "-m", BUNDLED, "-md", DRAFT, "--json").stdout)["memory"]
        draft = both.pop("draft_model")
        self.assertEqual((draft["path"], draft["parameters"]), (str(DRAFT), 1041856))
        self.assertEqual(both["total_bytes"] - alone["total_bytes"],
                         draft["weight_bytes"] + draft["kv_cache_bytes"] + draft["activation_bytes"])
        self.assertIn("draft model", self.succeed("inspect", "-m", BUNDLED, "-md", DRAFT).stdout)

    def test_a_trace_with_drafts_replays_without(self):
        items = lines(*({"prompt": PROMPT, "max_tokens": 20 + i, "seed": i, "temperature": i % 2} for i in range(5)))
        recorded = self.directory / "recorded.jsonl"
        self.succeed("generate", "-m", BUNDLED, "--jsonl", "-q", *DRAFTERS["model"], "--trace", recorded, stdin=items)
        self.assertIn('"drafts":[[', recorded.read_text())
        self.assertIn("5 requests replayed one by one", self.succeed("trace", recorded, "--replay").stdout)
        totals = json.loads(self.succeed("trace", recorded, "--json").stdout)
        self.assertGreater(totals["drafted_tokens"], totals["accepted_tokens"])
        self.assertGreater(totals["accepted_tokens"], 0)
        self.assertAlmostEqual(totals["tokens_per_step"],
                               totals["output_tokens"] / (totals["output_tokens"] - totals["accepted_tokens"]))
        self.assertIn("accepted drafts", self.succeed("trace", recorded).stdout)

    def test_help_stays_short(self):
        for command in ("generate", "serve"):
            said = self.succeed(command, "--help").stdout
            self.assertLessEqual(len(said.splitlines()), 45)
            self.assertIn("--speculative-model", said)
            whole = " ".join(self.succeed(command, "--help-all").stdout.split())
            self.assertIn("rejection keeps the distribution of answers, not their bits", whole)


if __name__ == "__main__":
    unittest.main()
