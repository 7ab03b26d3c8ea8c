"""`paceline serve` with several models: the bits of each, loading by need, unloading under load, sleep."""
import json
import re
import threading
import unittest

from program import BUNDLED, ROOT, ProgramTest
from serving import Client, Server, until

DRAFT = ROOT / "models" / "paceline-draft-1m"
FIRST, SECOND = BUNDLED.name, DRAFT.name
SMALL = ("--max-model-len", "256", "--kv-cache-memory-bytes", "4M", "--max-num-seqs", "8")
PROMPT = "The ship had been at sea for forty days when"


def ask(client, model=None, **fields):
    body = {"prompt": PROMPT, "max_tokens": 24, "seed": 5, "temperature": 0.8, "logprobs": 2, **fields}
    return client.post("/v1/completions", body if model is None else {**body, "model": model})


def choice_of(answer):
    """What must not change from one server, or life of a model, to another."""
    assert answer.status == 200, answer.body
    return answer.json["model"], answer.json["system_fingerprint"], answer.json["choices"]


def states(client):
    return {model["id"]: model["status"]["value"] for model in client.get("/models").json["data"]}


class ModelsTest(ProgramTest):
    def start(self, *options, model=BUNDLED):
        server = Server(*SMALL, *options, model=model)
        self.addCleanup(server.stop)
        return server

    def client(self, *options, **more):
        return Client(self.start(*options, **more).port)

    def alone(self, model, **fields):
        server = Server(*SMALL, model=model)
        try:
            return choice_of(ask(Client(server.port), **fields))
        finally:
            server.stop()

    def shelf(self, **models):
        """A directory of models: links by their names."""
        folder = self.directory / "shelf"
        folder.mkdir(exist_ok=True)
        for name, path in models.items():
            (folder / name).symlink_to(path)
        return folder

    def directory_client(self, *options, **models):
        """Of a server whose models are only those of a directory."""
        server = Server(*SMALL, "--models-dir", self.shelf(**models), *options, model=None)
        self.addCleanup(server.stop)
        return Client(server.port)


class TogetherTest(ModelsTest):
    def test_two_models_together_have_the_bits_of_each_alone(self):
        expected = {FIRST: self.alone(BUNDLED), SECOND: self.alone(DRAFT)}
        client = self.client("-m", DRAFT)
        found = {FIRST: [], SECOND: []}

        def call(model):
            for _ in range(4):
                found[model].append(choice_of(ask(client, model)))

        threads = [threading.Thread(target=call, args=(model,)) for model in found for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for model, answers in found.items():
            self.assertEqual(len(answers), 12)
            for answer in answers:
                self.assertEqual(answer, expected[model])

    def test_a_name_chooses_the_model(self):
        client = self.client("-m", f"second={DRAFT}")
        self.assertEqual([model["id"] for model in client.get("/v1/models").json["data"]], [FIRST, "second"])
        self.assertEqual(ask(client).json["model"], FIRST)
        self.assertEqual(ask(client, "second").json["model"], "second")
        self.assertEqual(client.get("/v1/models/second").json["id"], "second")
        self.assertEqual(client.get("/props?model=second").json["model_alias"], "second")
        self.assertEqual(client.get("/props").json["model_alias"], FIRST)
        for path in ("/slots", "/v1/requests"):
            self.assertEqual(client.get(path + "?model=second").status, 200)
            self.assertEqual(client.get(path + "?model=third").status, 404)
        self.assertEqual(client.get("/props?model=%zz").status, 400)
        answer = ask(client, "third")
        self.assertEqual((answer.status, answer.error["code"]), (404, "model_not_found"))
        self.assertIn(f"this server has {FIRST}, second", answer.error["message"])
        chat = client.post("/v1/chat/completions", {"model": "second", "max_tokens": 4, "messages": [
            {"role": "user", "content": "Hello"}]})
        self.assertEqual(chat.json["model"], "second")
        tokens = client.post("/tokenize", {"model": "second", "content": "Hello"})
        self.assertEqual(tokens.status, 200)
        events, is_done = client.stream("/v1/completions", {"model": "second", "prompt": PROMPT, "max_tokens": 4})
        self.assertTrue(is_done)
        self.assertEqual({event["model"] for event in events}, {"second"})

    def test_an_unknown_name_may_be_the_first_model(self):
        client = self.client("-m", f"second={DRAFT}", "--unknown-model", "first")
        self.assertEqual(choice_of(ask(client, "gpt-4o")), choice_of(ask(client)))

    def test_metrics_are_labelled_by_model(self):
        client = self.client("-m", f"second={DRAFT}")
        ask(client, "second")
        text = client.get("/metrics").body.decode()
        samples = re.findall(r'^paceline:requests_completed_total\{model_name="([^"]*)"\} (\d+)$', text, re.M)
        self.assertEqual(samples, [(FIRST, "0"), ("second", "1")])
        for name in ("engine_steps_total", "num_requests_running", "time_to_first_token_seconds_count", "model_loaded"):
            self.assertEqual(len(re.findall(rf"^paceline:{name}\{{", text, re.M)), 2, name)
        heads = re.findall(r"^# TYPE (\S+)", text, re.M)
        self.assertEqual(len(heads), len(set(heads)), "a metric has one head")

    def test_names_are_of_one_model(self):
        error = self.fail_with(1, "serve", "-m", BUNDLED, "-m", BUNDLED, "--port", "0")
        self.assertIn(f"--model: two models are called {FIRST}", error)
        error = self.fail_with(1, "serve", "-m", BUNDLED, "-m", f"other={DRAFT}", "--lora", f"other={DRAFT}", "--port", "0")
        self.assertIn("--lora other: the model has this name", error)


class LoadingTest(ModelsTest):
    def test_a_directory_is_loaded_by_need(self):
        client = self.directory_client(one=BUNDLED, two=DRAFT)
        self.assertEqual(states(client), {"one": "unloaded", "two": "unloaded"})
        self.assertNotIn("meta", client.get("/v1/models/one").json)
        self.assertEqual(client.get("/slots").json, [])
        self.assertEqual(client.get("/v1/requests").json["engine"]["max_num_seqs"], 0)
        self.assertEqual(client.get("/health").status, 200)
        self.assertEqual(ask(client, "two").json["model"], "two")
        self.assertEqual(states(client), {"one": "unloaded", "two": "loaded"})
        self.assertEqual(ask(client).json["model"], "one")
        self.assertEqual(states(client), {"one": "loaded", "two": "loaded"})
        self.assertEqual(client.get("/v1/models/one").json["max_model_len"], 256)

    def test_models_are_loaded_and_unloaded_by_name(self):
        client = self.directory_client(one=BUNDLED, two=DRAFT)
        for path, value in (("load", "loaded"), ("unload", "unloaded")):
            answer = client.post(f"/models/{path}", {"model": "two"})
            self.assertEqual((answer.status, answer.json), (200, {"success": True}))
            self.assertTrue(until(lambda: states(client)["two"] == value))
            again = client.post(f"/models/{path}", {"model": "two"})
            self.assertEqual((again.status, again.error["param"]), (400, "model"))
            unknown = client.post(f"/models/{path}", {"model": "three"})
            self.assertEqual((unknown.status, unknown.error["code"]), (404, "model_not_found"))
            self.assertEqual(client.post(f"/models/{path}", {}).status, 400)

    def test_a_failed_load_says_why_and_the_next_request_tries_again(self):
        broken = self.bundled_copy("broken", without=("config.json",))
        (broken / "config.json").write_text("{")
        client = self.directory_client(one=BUNDLED, two=broken)
        answer = ask(client, "two")
        self.assertEqual((answer.status, answer.error["code"]), (503, "model_load_failed"))
        self.assertIn("model two: couldn't be loaded: two", answer.error["message"])
        self.assertNotIn(str(self.directory), answer.error["message"])
        status = next(model["status"] for model in client.get("/models").json["data"] if model["id"] == "two")
        self.assertEqual((status["value"], status["failed"]), ("unloaded", True))
        (broken / "config.json").unlink()
        (broken / "config.json").symlink_to(BUNDLED / "config.json")
        self.assertEqual(ask(client, "two").status, 200)

    def test_a_directory_without_models_is_refused(self):
        error = self.fail_with(1, "serve", "--models-dir", self.shelf(), "--port", "0")
        self.assertIn("--models-dir", error)
        self.assertIn("has no model", error)

    def test_adapters_are_loaded_for_the_model_that_is_named(self):
        client = self.client("-m", f"second={DRAFT}")
        answer = client.post("/v1/load_lora_adapter", {"lora_name": "x", "lora_path": "x", "model": "third"})
        self.assertEqual(answer.status, 404)
        answer = client.post("/v1/load_lora_adapter", {"lora_name": "x", "lora_path": "x", "model": "second"})
        self.assertEqual(answer.error["code"], "not_enabled")


class UnloadingTest(ModelsTest):
    def test_unloading_under_load_loses_no_answer(self):
        client = self.directory_client(one=BUNDLED, two=DRAFT)
        expected = {name: choice_of(ask(client, name)) for name in ("one", "two")}
        text = {name: expected[name][2][0]["text"] for name in expected}
        problems, is_over = [], threading.Event()

        def call(name, streams):
            for _ in range(6):
                if streams:
                    events, is_done = client.stream("/v1/completions", {
                        "model": name, "prompt": PROMPT, "max_tokens": 24, "seed": 5, "temperature": 0.8})
                    found = "".join(event["choices"][0]["text"] for event in events)
                    if not is_done or found != text[name]:
                        problems.append((name, events))
                else:
                    answer = ask(client, name)
                    if answer.status != 200 or choice_of(answer) != expected[name]:
                        problems.append((name, answer.body))

        def unload():
            while not is_over.wait(0.02):
                for name in expected:
                    client.post("/models/unload", {"model": name})

        unloader = threading.Thread(target=unload)
        threads = [threading.Thread(target=call, args=(name, streams))
                   for name in expected for streams in (False, True) for _ in range(2)]
        for thread in [unloader, *threads]:
            thread.start()
        for thread in threads:
            thread.join()
        is_over.set()
        unloader.join()
        self.assertEqual(problems, [])

    def test_the_least_recently_used_model_leaves_within_the_memory_limit(self):
        # Each takes its weights and 4 MB of keys and values.
        client = self.directory_client("--memory-limit", "40M", one=BUNDLED, two=BUNDLED, three=BUNDLED)
        expected = choice_of(ask(client, "one"))[2]
        for name in ("two", "three", "one", "two"):
            self.assertEqual(choice_of(ask(client, name))[2], expected)
            loaded = [name for name, state in states(client).items() if state == "loaded"]
            self.assertIn(name, loaded)
            self.assertLess(len(loaded), 3)

    def test_a_model_without_requests_sleeps(self):
        client = self.client("-m", f"second={DRAFT}", "--sleep-idle-seconds", "0.3")
        expected = choice_of(ask(client, "second"))
        self.assertTrue(until(lambda: set(states(client).values()) == {"unloaded"}))
        self.assertEqual(choice_of(ask(client, "second")), expected)
        self.assertEqual(ask(client).status, 200)

    def test_a_request_of_ollamas_says_how_long_a_model_stays(self):
        client = self.client("-m", f"second={DRAFT}")

        def loaded():
            return [model["name"] for model in client.get("/api/ps").json["models"] if model["name"].startswith("second")]

        self.assertEqual(client.post("/api/generate", {"model": "second:latest", "keep_alive": "1h"}).json["done_reason"], "load")
        self.assertEqual(loaded(), ["second:latest"])
        body = {"model": "second", "prompt": "a", "raw": True, "stream": False, "options": {"num_predict": 2}}
        self.assertEqual(client.post("/api/generate", {**body, "keep_alive": 0}).status, 200)
        self.assertTrue(until(lambda: not loaded()))
        self.assertEqual(client.post("/api/generate", {**body, "keep_alive": -1}).status, 200)
        self.assertEqual(loaded(), ["second:latest"])
        answer = client.post("/api/chat", {"model": "second", "messages": [], "keep_alive": 0}).json
        self.assertEqual(answer["done_reason"], "unload")
        self.assertTrue(until(lambda: not loaded()))
        self.assertIn("second:latest", [model["name"] for model in client.get("/api/tags").json["models"]])
        self.assertEqual(client.post("/api/show", {"model": "second"}).json["model_info"], {})

    def test_a_drain_ends_during_a_load(self):
        server = Server(*SMALL, "--models-dir", self.shelf(one=BUNDLED), model=None)
        self.addCleanup(server.stop)
        waiting = Client(server.port).send("POST", "/v1/completions", {"prompt": PROMPT, "max_tokens": 2})
        self.addCleanup(waiting.close)
        server.signal()
        self.assertEqual(server.wait(), 0)
        self.assertEqual(json.loads(waiting.getresponse().read())["usage"]["completion_tokens"], 2)


if __name__ == "__main__":
    unittest.main()
