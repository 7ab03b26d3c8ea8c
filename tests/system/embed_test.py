"""Embeddings of `paceline embed`, `serve` and `batch`, beside those of sentence-transformers."""
import base64
import json
import shutil
import struct
import unittest

from program import ROOT, ProgramTest, lines, run
from serving import Client, Server

MODEL = ROOT / "tests/goldens/embeddings/qwen3"
CASES = json.loads((MODEL / "golden.json").read_text())["cases"]
PLAIN = [case for case in CASES if "prompt_name" not in case and "dimensions" not in case]
TEXTS = [case["text"] for case in PLAIN]


def decoded(text):
    data = base64.b64decode(text, validate=True)
    return list(struct.unpack(f"<{len(data) // 4}f", data))


class EmbedTest(ProgramTest):
    def near(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            self.assertAlmostEqual(one, other, delta=1e-5)

    def embed(self, *arguments, **options):
        return [json.loads(line) for line in self.succeed("embed", "-m", MODEL, *arguments, **options).stdout.splitlines()]

    def test_texts_of_the_command_line(self):
        for found, case in zip(self.embed(*TEXTS), PLAIN, strict=True):
            self.near(found["embedding"], case["embedding"])
            self.assertGreater(found["prompt_tokens"], 1)
        for case in CASES:
            if "prompt_name" in case:
                [found] = self.embed("-p", case["text"], "--prompt-name", case["prompt_name"])
                self.near(found["embedding"], case["embedding"])
            if "dimensions" in case:
                [found] = self.embed(case["text"], "--dimensions", case["dimensions"])
                self.near(found["embedding"], case["embedding"])
        self.assertEqual(self.embed(stdin=TEXTS[0])[0], self.embed(TEXTS[0])[0])

    def test_lines(self):
        items = [{key: case[key] for key in ("text", "prompt_name", "dimensions") if key in case} for case in CASES]
        answers = self.embed("--jsonl", stdin=lines(*items))
        for found, case in zip(answers, CASES, strict=True):
            self.near(found["embedding"], case["embedding"])
        alone = [self.embed("--jsonl", stdin=lines(item))[0] for item in items]
        self.assertEqual(answers, alone)

    def test_a_model_without_a_head_makes_embeddings_only(self):
        folder = self.directory / "headless"
        shutil.copytree(MODEL, folder)
        config = json.loads((folder / "config.json").read_text())
        self.assertTrue(config["tie_word_embeddings"])
        (folder / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}))
        done = self.succeed("embed", "-m", folder, *TEXTS)
        self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], self.embed(*TEXTS))
        for arguments in (["generate", "-p", "x"], ["score", "-p", "x"], ["classify", "-p", "x", "--label", "a", "--label", "b"]):
            message = self.fail_with(1, arguments[0], "-m", folder, *arguments[1:])
            self.assertIn("no lm_head.weight", message)
            self.assertIn("set tie_word_embeddings to true", message)
        self.assertIn("no lm_head.weight", self.fail_with(1, "generate", "-m", MODEL, "-md", folder, "-p", "x"))
        server = Server(model=folder)
        self.addCleanup(server.stop)
        self.assertTrue(any("it makes embeddings only" in line for line in server.lines), server.lines)
        data = self.write("data.jsonl", json.dumps({"text": "a b c"}) + "\n")
        self.assertIn("no lm_head.weight", self.fail_with(1, "train", "-m", folder, "--data", data, "-o", self.directory / "out"))

    def test_errors(self):
        for arguments, words in [(["--dimensions", "33"], "dimensions: 33, expected 1 to 32"),
                                 (["--prompt-name", "title"], "prompt_name: \"title\", the model has document, query"),
                                 (["--lora", "none"], "none")]:
            self.assertIn(words, self.fail_with(1, "embed", "-m", MODEL, "x", *arguments))
        done = self.run_lines({"text": "x", "ids": [1]}, {"ids": [999]}, {"text": "x", "dimension": 3}, {"text": "x"})
        self.assertEqual(["error" in json.loads(line) for line in done], [True, True, True, False])

    def run_lines(self, *items):
        done = run("embed", "-m", MODEL, "--jsonl", stdin=lines(*items))
        self.assertEqual(done.returncode, 1)
        return done.stdout.splitlines()

    def test_a_server(self):
        server = Server("--served-model-name", "embedder", model=MODEL)
        self.addCleanup(server.stop)
        client = Client(server.port)

        def ask(status=200, **body):
            answer = client.post("/v1/embeddings", {"model": "embedder", **body})
            self.assertEqual(answer.status, status, answer.body)
            return answer.json
        for case in CASES:
            fields = {key: case[key] for key in ("prompt_name", "dimensions") if key in case}
            answer = ask(input=case["text"], **fields)
            self.near(answer["data"][0]["embedding"], case["embedding"])
            self.assertEqual(answer["usage"]["prompt_tokens"], answer["usage"]["total_tokens"])
        together = ask(input=TEXTS * 30)
        self.assertEqual([item["index"] for item in together["data"]], list(range(120)))
        alone = [ask(input=text) for text in TEXTS]
        for i, item in enumerate(together["data"]):
            self.assertEqual(item["embedding"], alone[i % 4]["data"][0]["embedding"])
        self.assertEqual(together["usage"]["total_tokens"], 30 * sum(one["usage"]["total_tokens"] for one in alone))
        ids = client.post("/tokenize", {"prompt": TEXTS[0]}).json["tokens"]
        for form in (ids, [ids]):
            self.assertEqual(ask(input=form)["data"][0]["embedding"], alone[0]["data"][0]["embedding"])
        encoded = ask(input=TEXTS[0], encoding_format="base64")["data"][0]["embedding"]
        self.near(decoded(encoded), alone[0]["data"][0]["embedding"])
        for fields, param in [({"input": ""}, None), ({"input": []}, "input"), ({"input": "x", "dimensions": 0}, "dimensions"),
                              ({"input": "x", "dimensions": 33}, "dimensions"), ({"input": [[999]]}, "input[0][0]"),
                              ({"input": "x", "encoding_format": "int8"}, "encoding_format"), ({}, "input"),
                              ({"input": "x", "prompt_name": "title"}, "prompt_name")]:
            if param is None:  # the end token alone
                self.assertEqual(ask(**fields)["usage"]["prompt_tokens"], 1)
                continue
            self.assertEqual(ask(400, **fields)["error"]["param"], param, fields)
        self.assertEqual(ask(404, input="x", model="other")["error"]["code"], "model_not_found")
        metrics = client.get("/metrics").body.decode()
        self.assertIn("prompt_tokens_total", metrics)

    def test_a_batch_file(self):
        body = {"input": TEXTS}
        (self.directory / "in.jsonl").write_bytes(lines(
            {"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": body},
            {"custom_id": "b", "method": "POST", "url": "/v1/embeddings", "body": {**body, "encoding_format": "base64"}},
            {"custom_id": "c", "method": "POST", "url": "/v1/embeddings", "body": {"input": "x", "dimensions": 99}}))
        self.succeed("batch", "-m", MODEL, "-i", self.directory / "in.jsonl", "-o", self.directory / "out.jsonl")
        found = {one["custom_id"]: one["response"] for one in map(json.loads, (self.directory / "out.jsonl").read_text().splitlines())}
        for item, coded, case in zip(found["a"]["body"]["data"], found["b"]["body"]["data"], PLAIN, strict=True):
            self.near(item["embedding"], case["embedding"])
            self.near(decoded(coded["embedding"]), item["embedding"])
        self.assertEqual(found["c"]["status_code"], 400)
        self.assertEqual(found["c"]["body"]["error"]["param"], "dimensions")


if __name__ == "__main__":
    unittest.main()
