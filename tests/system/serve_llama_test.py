"""`paceline serve`: the routes of llama.cpp's server, in its formats, with the bits of /v1/completions."""
import json
import shutil
import tempfile
import unittest
from pathlib import Path

from program import BUNDLED
from serving import Client, Server, ServerCase

TEXT = "It was a dark and stormy night"
RESULT = {"index", "content", "tokens", "id_slot", "stop", "model", "tokens_predicted", "tokens_evaluated",
          "tokens_cached", "generation_settings", "prompt", "has_new_line", "truncated", "stop_type", "stopping_word",
          "seed", "timings"}
# The fields that llama.cpp's own clients send by default.
DEFAULTS = {"n_predict": 12, "seed": 4, "temperature": 0.8, "dynatemp_range": 0.0, "dynatemp_exponent": 1.0,
            "top_k": 40, "top_p": 0.95, "min_p": 0.05, "typical_p": 1.0, "xtc_probability": 0.0, "xtc_threshold": 0.1,
            "repeat_last_n": 64, "repeat_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0,
            "dry_multiplier": 0.0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": -1, "mirostat": 0,
            "mirostat_tau": 5.0, "mirostat_eta": 0.1, "n_keep": 0, "n_probs": 0, "min_keep": 0, "grammar": "",
            "cache_prompt": True, "id_slot": -1, "stop": [], "stream": False, "logit_bias": [], "ignore_eos": False}


class LlamaRoutesTest(ServerCase):
    def post(self, path, **body):
        answer = self.client.post(path, body)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def completion_of(self, **body):
        body = {name: value for name, value in body.items() if name in ("prompt", "seed", "temperature", "top_k",
                                                                        "top_p", "min_p", "stop", "n", "ignore_eos")}
        return self.post("/v1/completions", max_tokens=12, return_token_ids=True, **body)["choices"]

    def test_a_completion_has_the_bits_of_the_other_route(self):
        for path in ["/completion", "/completions"]:
            whole = self.post(path, prompt=TEXT, return_tokens=True, **DEFAULTS)
            self.assertEqual(set(whole), RESULT)
            [choice] = self.completion_of(prompt=TEXT, **DEFAULTS)
            self.assertEqual((whole["content"], whole["tokens"]), (choice["text"], choice["token_ids"]))
            self.assertEqual([whole["stop"], whole["id_slot"], whole["index"], whole["seed"]], [True, -1, 0, 4])
            self.assertEqual(whole["tokens_predicted"], 12)
            self.assertEqual((whole["stop_type"], whole["stopping_word"], whole["truncated"]), ("limit", "", False))
            self.assertTrue(whole["prompt"].endswith(TEXT))
            settings = whole["generation_settings"]
            self.assertEqual([settings[name] for name in ("n_predict", "top_k", "seed", "n_ctx")], [12, 40, 4, 1024])
            self.assertAlmostEqual(settings["temperature"], 0.8, places=6)
            self.assertEqual(whole["timings"]["predicted_n"], 11)
            self.assertEqual(whole["timings"]["prompt_n"] + whole["timings"]["cache_n"], whole["tokens_evaluated"])

    def test_a_stream_has_the_same_bits(self):
        body = {"prompt": TEXT, "n_predict": 12, "seed": 4, "n_probs": 2}
        whole = self.post("/completion", **body, return_tokens=True)
        events, is_done = self.client.stream("/completion", body)
        self.assertFalse(is_done, "llama.cpp's stream ends with its last event")
        *pieces, last = events
        self.assertEqual("".join(event["content"] for event in pieces), whole["content"])
        self.assertEqual(sum((event["tokens"] for event in pieces), []), whole["tokens"])
        self.assertEqual(sum((event["completion_probabilities"] for event in pieces), []),
                         whole["completion_probabilities"])
        self.assertEqual({event["stop"] for event in pieces}, {False})
        self.assertEqual(set(last), RESULT)
        self.assertEqual((last["stop"], last["content"], last["tokens_predicted"]), (True, "", 12))
        for name in ["prompt", "stop_type", "seed", "tokens_evaluated"]:
            self.assertEqual(last[name], whole[name])

    def test_prompts_of_every_kind(self):
        ids = self.post("/tokenize", content=TEXT, add_special=True)["tokens"]
        plain = self.post("/tokenize", content=" night")["tokens"]
        body = {"n_predict": 12, "seed": 4}
        expected = self.post("/completion", prompt=TEXT, **body)
        for prompt in [ids, [TEXT], [*ids[:-1], ids[-1]], ["It was a dark and stormy", *plain]]:
            self.assertEqual(self.post("/completion", prompt=prompt, **body)["content"], expected["content"], prompt)
        several = self.post("/completion", prompt=[TEXT, ids, [TEXT]], **body)
        self.assertEqual([result["index"] for result in several], [0, 1, 2])
        self.assertEqual({result["content"] for result in several}, {expected["content"]})
        both = self.post("/completion", prompt=TEXT, n_cmpl=2, **body)
        self.assertEqual([result["seed"] for result in both], [4, 5])
        self.assertEqual([result["content"] for result in both],
                         [choice["text"] for choice in self.completion_of(prompt=TEXT, n=2, **body)])

    def test_why_a_text_ends(self):
        text = self.post("/completion", prompt=TEXT, n_predict=12, seed=4, ignore_eos=True)["content"]
        word = text.split()[2]
        stopped = self.post("/completion", prompt=TEXT, n_predict=12, seed=4, ignore_eos=True, stop=[word])
        self.assertEqual((stopped["stop_type"], stopped["stopping_word"]), ("word", word))
        self.assertEqual(stopped["content"], text[:text.index(word)])
        full = self.post("/completion", prompt=TEXT, ignore_eos=True, seed=1)
        self.assertEqual((full["stop_type"], full["truncated"]), ("limit", True))
        self.assertEqual(full["tokens_evaluated"] + full["tokens_predicted"], 1024)
        ended = self.post("/completion", prompt=TEXT, logit_bias=[[4096, 100]], seed=1)
        self.assertEqual((ended["stop_type"], ended["content"]), ("eos", ""))
        nothing = self.post("/completion", prompt=TEXT, n_predict=0)
        self.assertEqual((nothing["content"], nothing["tokens_predicted"]), ("", 0))

    def test_what_is_refused(self):
        for body, param, code in [
                ({"prompt": TEXT, "mirostat": 2}, "mirostat", "unsupported_parameter"),
                ({"prompt": TEXT, "grammar": "root ::= x"}, "grammar", "invalid_value"),
                ({"prompt": TEXT, "samplers": ["top_k"]}, "samplers", "unsupported_parameter"),
                ({"prompt": TEXT, "n_predicts": 3}, "n_predicts", "unknown_parameter"),
                ({"prompt": [TEXT, True]}, "prompt[1]", "invalid_value"),
                ({"prompt": [[999999]]}, "prompt[0]", "invalid_value"),
                ({"n_predict": 3}, "prompt", "missing_required_parameter")]:
            answer = self.client.post("/completion", body)
            self.assertEqual((answer.status, answer.error["param"], answer.error["code"]), (400, param, code), body)
        answer = self.client.post("/infill", {"input_prefix": "a", "input_suffix": "b"})
        self.assertEqual((answer.status, answer.error["code"]), (501, "feature_disabled"))
        self.assertIn("fill-in-the-middle", answer.error["message"])
        for path in ["/embedding", "/embeddings", "/lora-adapters"]:
            self.assertEqual(self.client.post(path, {}).status, 404, path)

    def test_the_server_describes_itself(self):
        props = self.client.get("/props").json
        self.assertEqual(props["default_generation_settings"]["n_ctx"], 1024)
        params = props["default_generation_settings"]["params"]
        self.assertEqual((params["n_predict"], params["seed"], params["stop"]), (-1, 4294967295, []))
        self.assertEqual(props["total_slots"], 256)
        self.assertEqual((props["max_num_batched_tokens"], props["max_step_slowdown"]), (512, 2.5))
        self.assertTrue(props["device"])
        self.assertIn("<|im_start|>", props["chat_template"])
        self.assertEqual((props["model_alias"], props["modalities"]), ("paceline-10m", {"vision": False, "audio": False}))
        slots = self.client.get("/slots").json
        self.assertEqual([slot["id"] for slot in slots], list(range(256)))
        self.assertEqual({slot["is_processing"] for slot in slots}, {False})
        models = self.client.get("/v1/models").json
        for model in models["data"]:
            model.update(status={"value": "loaded"}, in_cache=True)
        self.assertEqual(self.client.get("/models").json, models)
        self.assertEqual(self.client.get("/health").json, {"status": "ok"})
        self.assertEqual(self.client.get("/v1/health").json, {"status": "ok"})

    def test_a_slot_is_busy_while_a_text_is_computed(self):
        response = self.client.open("POST", "/completion", {"prompt": TEXT, "stream": True, "ignore_eos": True})
        try:
            response.readline()
            busy = [slot for slot in self.client.get("/slots").json if slot["is_processing"]]
            self.assertEqual(len(busy), 1)
            self.assertEqual(busy[0]["id"], 0)
            self.assertGreater(busy[0]["next_token"]["n_decoded"], 0)
        finally:
            response.connection.close()

    def test_chats_without_v1(self):
        body = {"messages": [{"role": "user", "content": "Who is there?"}], "max_tokens": 8, "seed": 3}
        choices = [self.post(path, **body)["choices"] for path in ("/chat/completions", "/v1/chat/completions")]
        self.assertEqual(*choices)

    def test_a_template_and_a_completion_make_a_chat(self):
        messages = [{"role": "user", "content": "Who is there?"}]
        prompt = self.post("/apply-template", messages=messages)["prompt"]
        chat = self.post("/v1/chat/completions", messages=messages, max_tokens=8, seed=3, temperature=0.8)
        text = self.post("/completion", prompt=prompt, n_predict=8, seed=3, temperature=0.8, add_special_tokens=False)
        self.assertEqual(text["content"], chat["choices"][0]["message"]["content"])

    def test_tokens_that_are_no_text_are_bytes(self):
        tokens = self.post("/tokenize", content="naïve 𝄞", with_pieces=True)["tokens"]
        pieces = [token["piece"] for token in tokens]
        data = b"".join(bytes(piece) if isinstance(piece, list) else piece.encode() for piece in pieces)
        self.assertEqual(data.decode(), "naïve 𝄞")
        ids = [token["id"] for token in tokens]
        self.assertEqual(self.post("/detokenize", tokens=ids)["content"], "naïve 𝄞")


class InfillTest(unittest.TestCase):
    def test_the_gap_is_filled_behind_the_models_own_tokens(self):
        """The bundled model with three more tokens, which it wasn't trained with: only their handling is tested."""
        directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, directory)
        model = directory / "fim"
        shutil.copytree(BUNDLED, model)
        path = model / "tokenizer.json"
        tokenizer = json.loads(path.read_text())
        names = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
        for token, name in zip(tokenizer["added_tokens"], names):
            token["content"] = name
        path.chmod(0o644)
        path.write_text(json.dumps(tokenizer))
        server = Server(model=model)
        self.addCleanup(server.stop)
        client = Client(server.port)
        body = {"n_predict": 6, "seed": 3, "return_tokens": True, "ignore_eos": True}
        answer = client.post("/infill", {"input_prefix": "The old", "input_suffix": " stood.", "prompt": " house", **body})
        self.assertEqual(answer.status, 200, answer.body)
        filled = answer.json
        ids = [client.post("/tokenize", {"content": text}).json["tokens"] for text in ("The old", " stood.", " house")]
        prompt = [4096, *ids[0], 4097, *ids[1], 4098, *ids[2]]
        self.assertEqual(filled["tokens_evaluated"], len(prompt))
        same = client.post("/completion", {"prompt": prompt, **body}).json
        self.assertEqual((filled["content"], filled["tokens"]), (same["content"], same["tokens"]))
        self.assertEqual(filled["prompt"], "<|fim_prefix|>The old<|fim_suffix|> stood.<|fim_middle|> house")
        gap = {"max_tokens": 6, "seed": 3, "ignore_eos": True}
        filled = client.post("/infill", {"input_prefix": "The old", "input_suffix": " stood.", "n_predict": 6, "seed": 3,
                                         "ignore_eos": True}).json
        same = client.post("/v1/completions", {"prompt": "The old", "suffix": " stood.", **gap})
        self.assertEqual((same.status, same.json["choices"][0]["text"]), (200, filled["content"]), same.body)
        self.assertEqual(same.json["usage"]["prompt_tokens"], filled["tokens_evaluated"])
        for more in ({"echo": True}, {"prompt": [1, 2]}):
            answer = client.post("/v1/completions", {"prompt": "The old", "suffix": " stood.", **gap, **more})
            self.assertEqual((answer.status, answer.error["param"]), (400, "suffix"), answer.body)


if __name__ == "__main__":
    unittest.main()
