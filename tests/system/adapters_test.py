"""LoRA adapters of `paceline serve`, `batch`, `generate` and `score`: chosen by name, many at once."""
import concurrent.futures
import json
import re
import unittest

from adapter_files import MODEL, PROMPT, write_adapter
from program import ProgramTest, run
from serving import Client, Server, until


class AdaptersTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.first = write_adapter(self.directory / "a", 1)
        self.second = write_adapter(self.directory / "b", 2)

    def options(self):
        return ["--lora", f"first={self.first}", "--lora", f"second={self.second}",
                "--lora-scaled", f"half={self.first}:0.5"]

    def generated(self, *options):
        done = run("generate", "-m", MODEL, "--prompt-ids", ",".join(map(str, PROMPT)), "-n", "12", "--temperature", "0",
                   "--ignore-eos", "-q", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [int(word) for word in done.stdout.split()]

    def expected(self):
        return {"base": self.generated(), "first": self.generated("--lora", self.first),
                "second": self.generated("--lora", self.second),
                "half": self.generated("--lora-scaled", f"{self.first}:0.5")}

    def test_a_server_computes_many_at_once_and_each_as_alone(self):
        expected = self.expected()
        self.assertEqual(len({tuple(ids) for ids in expected.values()}), 4)
        server = Server(*self.options(), "--served-model-name", "base", "--max-loras", "2", model=MODEL)
        self.addCleanup(server.stop)
        client = Client(server.port)

        def ask(name):
            answer = client.post("/v1/completions", {"model": name, "prompt": PROMPT, "max_tokens": 12, "temperature": 0,
                                                     "ignore_eos": True, "return_token_ids": True})
            self.assertEqual(answer.status, 200, answer.body)
            self.assertEqual(answer.json["model"], name)
            return name, answer.json["choices"][0]["token_ids"]
        names = ["base", "first", "second", "half"] * 6
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for name, ids in pool.map(ask, names):
                self.assertEqual(ids, expected[name], name)

    def test_models_list_them_and_unknown_ones_are_refused(self):
        server = Server(*self.options(), "--served-model-name", "base", model=MODEL)
        self.addCleanup(server.stop)
        client = Client(server.port)
        models = client.get("/v1/models").json["data"]
        self.assertEqual([model["id"] for model in models], ["base", "first", "half", "second"])
        self.assertEqual([model.get("parent") for model in models], [None, "base", "base", "base"])
        for model in models:
            self.assertEqual(client.get("/v1/models/" + model["id"]).json, model)
        answer = client.post("/v1/completions", {"model": "third", "prompt": PROMPT})
        self.assertEqual((answer.status, answer.error["code"]), (404, "model_not_found"))
        self.assertIn("first, half, second", answer.error["message"])

    def test_metrics_name_the_adapters_of_requests(self):
        server = Server(*self.options(), "--max-loras", "1", "--served-model-name", "base", model=MODEL)
        self.addCleanup(server.stop)
        client = Client(server.port)

        def info():
            [found] = re.findall(r'^paceline:lora_requests_info\{model_name="base",max_lora="1",(.*)\} (\d+)$',
                                 client.get("/metrics").body.decode(), re.M)
            self.assertGreater(int(found[1]), 1_700_000_000)
            return found[0]
        self.assertEqual(info(), 'running_lora_adapters="",waiting_lora_adapters=""')
        expected = 'running_lora_adapters="first",waiting_lora_adapters="second"'
        for _ in range(5):  # on a busy machine the first may have ended before it is asked about
            streams = [client.send("POST", "/v1/completions", {
                "model": name, "prompt": PROMPT, "max_tokens": 200, "ignore_eos": True, "stream": True, "n": 16})
                for name in ["first", "second"]]
            is_seen = until(lambda: info() == expected, 2)
            for stream in streams:
                with stream:
                    stream.getresponse().read()
            if is_seen:
                break
        self.assertTrue(is_seen)

    def test_lines_of_a_batch_choose(self):
        expected = self.expected()
        with open(self.directory / "requests.jsonl", "w") as file:
            for i, name in enumerate(["base", "second", "first", "half", "nobody"]):
                body = {"model": name, "prompt": PROMPT, "max_tokens": 12, "temperature": 0, "ignore_eos": True,
                        "return_token_ids": True}
                file.write(json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions", "body": body}) + "\n")
        output = self.directory / "results.jsonl"
        done = run("batch", "-m", MODEL, "-i", self.directory / "requests.jsonl", "-o", output, *self.options(),
                   "--served-model-name", "base", "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        answers = {record["custom_id"]: record["response"] for record in map(json.loads, output.read_text().splitlines())}
        for i, name in enumerate(["base", "second", "first", "half"]):
            body = answers[str(i)]["body"]
            self.assertEqual((body["model"], body["choices"][0]["token_ids"]), (name, expected[name]))
        self.assertEqual(answers["4"]["status_code"], 404)

    def test_clients_load_replace_and_unload_while_streams_go_on(self):
        expected = self.expected()
        (self.directory / "outside").mkdir()
        write_adapter(self.directory / "outside" / "c", 3)
        shelf = self.directory / "shelf"
        shelf.mkdir()
        write_adapter(shelf / "a", 1)
        write_adapter(shelf / "b", 2)
        (shelf / "link").symlink_to(self.directory / "outside" / "c")
        server = Server("--allow-runtime-lora", "--lora-directory", shelf, "--api-key", "secret", "--max-cpu-loras", "1",
                        "--served-model-name", "base", model=MODEL)
        self.addCleanup(server.stop)
        self.assertEqual(Client(server.port).post("/v1/load_lora_adapter", {}).status, 401)
        client = Client(server.port, key="secret")

        def ids(name):
            answer = client.post("/v1/completions", {"model": name, "prompt": PROMPT, "max_tokens": 12, "temperature": 0,
                                                     "ignore_eos": True, "return_token_ids": True})
            return answer.json["choices"][0]["token_ids"] if answer.status == 200 else answer.status

        def load(name, path, **fields):
            return client.post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(path), **fields})

        def names():
            return [model["id"] for model in client.get("/v1/models").json["data"]]
        self.assertEqual(ids("x"), 404)
        answer = load("x", "a")
        self.assertEqual((answer.status, answer.body), (200, b"Success: LoRA adapter 'x' added successfully."))
        self.assertEqual(ids("x"), expected["first"])
        for name, path, part in [("x", "b", "loaded already"), ("base", "b", "the model's name"), ("", "b", "lora_name"),
                                 ("y", "link", "isn't in the server's directory"), ("y", "../a", "isn't in"),
                                 ("y", self.first, "isn't in"), ("y", "nowhere", "isn't in"), ("y", ".", "lora_path")]:
            with self.subTest(name=name, path=path):
                answer = load(name, path)
                self.assertEqual(answer.status, 400, answer.body)
                self.assertIn(part, answer.error["message"])
        self.assertEqual(names(), ["base", "x"])
        self.assertEqual(load("x", "b", load_inplace=True).status, 200)
        self.assertEqual(ids("x"), expected["second"])
        self.assertEqual(load("y", shelf / "a").status, 200)
        self.assertEqual(names(), ["base", "y"], "one more than --max-cpu-loras: the idle one left")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:  # unloaded and loaded while it is used
            answers = [pool.submit(ids, name) for name in ["base", "y"] * 8]
            self.assertEqual(client.post("/v1/unload_lora_adapter", {"lora_name": "y"}).status, 200)
            found = [answer.result() for answer in answers]
        for name, answer in zip(["base", "first"] * 8, found):
            self.assertIn(answer, [expected[name]] + [404] * (name != "base"))
        answer = client.post("/v1/unload_lora_adapter", {"lora_name": "y"})
        self.assertEqual((answer.status, answer.error["code"]), (404, "model_not_found"))

    def test_loading_is_off_unless_it_is_allowed(self):
        server = Server(*self.options(), model=MODEL)
        self.addCleanup(server.stop)
        for path, body in [("load", {"lora_name": "x", "lora_path": "a"}), ("unload", {"lora_name": "first"})]:
            answer = Client(server.port).post(f"/v1/{path}_lora_adapter", body)
            self.assertEqual((answer.status, answer.error["code"]), (400, "not_enabled"))
        for options, part in [(["--allow-runtime-lora", "--lora-directory", self.directory], "--api-key"),
                              (["--allow-runtime-lora", "--api-key", "k"], "--lora-directory")]:
            done = run("serve", "-m", MODEL, "--port", "0", *options)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(part, done.stderr)

    def test_errors_name_the_option_and_the_file(self):
        for options, parts in [
                (["--lora", self.directory / "nowhere"], ["--lora", "nowhere"]),
                (["--lora", self.first, "--lora", self.second], ["--lora", "expected one adapter"]),
                (["--lora-scaled", f"{self.first}"], ["--lora-scaled", "DIR:SCALE"])]:
            with self.subTest(options=options):
                done = run("generate", "-m", MODEL, "--prompt-ids", "1,2", *options)
                self.assertNotEqual(done.returncode, 0)
                for part in parts:
                    self.assertIn(part, done.stderr)
        done = run("serve", "-m", MODEL, "--port", "0", "--lora", f"qwen3_tied={self.first}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("the model has this name", done.stderr)


if __name__ == "__main__":
    unittest.main()
