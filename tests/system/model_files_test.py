"""Models that are missing, truncated, corrupted or without a tokenizer."""
import json
import os
import shutil
import struct
import unittest
from pathlib import Path

from program import BUNDLED, ProgramTest, lines, run

WEIGHTS = "model.safetensors"


class ModelFilesTest(ProgramTest):
    def load_error(self, folder, *options):
        message = self.fail_with(1, "generate", "-q", "-m", folder, "--prompt-ids", "1", "-n", "1", *options)
        self.assertTrue(message.startswith("paceline: "), message)
        return message

    def test_missing_models_say_how_to_bring_them(self):
        cache = {"HF_HOME": str(self.directory), "HF_HUB_CACHE": ""}
        done = run("generate", "-m", "some-org/some-model", "-p", "x", env=cache)
        self.assertEqual(done.returncode, 1)
        self.assertIn("hf download some-org/some-model", done.stderr)
        self.assertIn("no such directory", self.load_error("./nowhere"))
        self.write("adapter/adapter_config.json", "{}")
        self.assertIn("a LoRA adapter", self.load_error(self.directory / "adapter"))
        self.assertIn("a file, expected a directory", self.load_error(BUNDLED / "config.json"))

    def test_paths_are_not_taken_for_names_of_the_hub(self):
        for path in ("./nowhere", "no/such/model", "no-such-model.gguf", str(BUNDLED.parent / "paceline-10")):
            for command in (["generate", "-p", "x"], ["inspect"], ["tokenize", "-p", "x"]):
                with self.subTest(path=path, command=command[0]):
                    message = self.fail_with(1, command[0], "-m", path, *command[1:])
                    self.assertIn("there is no such directory or file", message)
                    self.assertNotIn("hf download", message)
        self.assertIn(f"did you mean {BUNDLED}?", self.load_error(BUNDLED.parent / "paceline-10"))

    def test_a_model_that_cannot_run_is_refused_before_its_weights(self):
        folder = self.bundled_copy(without=["config.json", WEIGHTS])
        (folder / WEIGHTS).write_bytes(b"broken")
        config = json.loads((BUNDLED / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "model_type": "zamba2"}))
        for command in (["generate", "-p", "x"], ["inspect"], ["serve"], ["bench"], ["train", "--data", folder, "-o", folder / "new"]):
            with self.subTest(command=command[0]):
                self.assertIn('model_type: "zamba2" isn\'t supported, because some of its layers',
                              self.fail_with(1, command[0], "-m", folder, *command[1:]))
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "quantize_config.json").write_text('{"quant_method": "quark", "bits": 4}')
        self.assertRegex(self.load_error(folder), "quantize_config.json.*: weights quantised by .quark. can't be read")

    def test_weights_that_are_not_read_are_noted(self):
        folder = self.bundled_copy()
        index = {"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        for command in (["generate", "-p", "x", "-n", "1"], ["inspect"], ["score", "--ids", "1,2"]):
            with self.subTest(command=command[0]):
                note = self.succeed(command[0], "-m", folder, *command[1:]).stderr
                self.assertIn("warning: ", note)
                self.assertIn("model.safetensors is read, model.safetensors.index.json and the shards", note)
        self.assertNotIn("warning", self.succeed("generate", "-q", "-m", folder, "-p", "x", "-n", "1").stderr)

    def test_a_model_that_cannot_fit_says_so_before_it_loads(self):
        config = json.loads((self.tiny_model() / "config.json").read_text())
        config.update(hidden_size=65536, intermediate_size=1 << 20, num_hidden_layers=100, num_attention_heads=512,
                      num_key_value_heads=8, head_dim=128, layer_types=None)
        self.write("huge/config.json", json.dumps(config))
        huge = ["-m", self.directory / "huge", "--load-format", "dummy"]
        for command in (["generate", "--prompt-ids", "1"], ["score", "--ids", "1,2"], ["serve"], ["bench"]):
            with self.subTest(command=command[0]):
                message = self.fail_with(1, command[0], *huge, *command[1:])
                self.assertRegex(message, r"doesn't fit: its weights need \d{5}\.\d GiB, \d+\.\d GiB of memory are free; ")
        self.assertIn("TiB", self.succeed("inspect", *huge).stdout)
        message = self.load_error(BUNDLED, "--memory-limit", "15M", "--dtype", "float32")
        self.assertRegex(message, r"\d\.\d MiB, 15\.0 MiB are allowed by --memory-limit; --quantize q8 needs \d+\.\d MiB")

    def test_models_of_the_hugging_face_cache_are_found(self):
        repository = self.directory / "hub/models--some-org--some-model"
        (repository / "snapshots").mkdir(parents=True)
        self.write("hub/models--some-org--some-model/refs/main", "abc123")
        os.symlink(BUNDLED, repository / "snapshots/abc123")
        done = self.succeed("tokenize", "-m", "some-org/some-model", "-p", "x",
                            env={"HF_HOME": str(self.directory), "HF_HUB_CACHE": ""})
        self.assertEqual(len(done.stdout.split()), 1)

    def test_generation_config_stops_only_what_it_is_about(self):
        folder = self.bundled_copy(without=["generation_config.json"])
        config = {"eos_token_id": [5, 70000], "top_p": 0, "user_token_id": 3}
        (folder / "generation_config.json").write_text(json.dumps(config))
        done = self.succeed("generate", "-m", folder, "-p", "It was", "-n", "8")
        self.assertIn("note: generation_config.json: eos_token_id[1]: 70000 is outside the vocabulary", done.stderr)
        self.assertIn("note: generation_config.json: user_token_id: isn't a field of generation", done.stderr)
        greedy = self.succeed("generate", "-q", "-m", folder, "-p", "It was", "-n", "8", "--temperature", "0")
        self.assertEqual(done.stdout, greedy.stdout, "top_p 0 leaves the likeliest token")
        asked = self.succeed("generate", "-q", "-m", folder, "-p", "It was", "-n", "8", "--top-p", "0", "--seed", "3")
        self.assertEqual(asked.stdout, greedy.stdout)
        (folder / "generation_config.json").write_text(json.dumps({**config, "num_beams": 4}))
        refused = self.fail_with(1, "generate", "-q", "-m", folder, "-p", "It was", "-n", "8")
        self.assertIn("generation_config.json: num_beams: found 4, expected 1: beam search isn't supported", refused)
        for command in ("score", "embed"):
            self.assertTrue(self.succeed(command, "-q", "-m", folder, "-p", "It was").stdout)

    def test_truncated_weights_name_the_file(self):
        whole = (BUNDLED / WEIGHTS).read_bytes()
        header_end = 8 + struct.unpack("<Q", whole[:8])[0]
        sizes = [0, 1, 7, 8, 9, header_end // 2, header_end - 1, header_end, header_end + 1, len(whole) // 2,
                 len(whole) - 1]
        folder = self.bundled_copy(without=[WEIGHTS])
        for size in sizes:
            with self.subTest(size=size):
                (folder / WEIGHTS).write_bytes(whole[:size])
                self.assertIn(WEIGHTS, self.load_error(folder))

    def test_corrupted_headers_name_the_tensor(self):
        whole = (BUNDLED / WEIGHTS).read_bytes()
        size = struct.unpack("<Q", whole[:8])[0]
        header, data = json.loads(whole[8:8 + size]), whole[8 + size:]
        name = next(key for key in header if key.endswith("layers.3.mlp.up_proj.weight"))

        def changed(**fields):
            return {**header, name: {**header[name], **fields}}

        begin, end = header[name]["data_offsets"]
        cases = {"dtype": changed(dtype="F99"), "shape": changed(shape=[1, 2, 3]), "overlap": changed(data_offsets=[0, end - begin]),
                 "beyond": changed(data_offsets=[begin, 1 << 60]), "backward": changed(data_offsets=[end, begin]),
                 "missing": {k: v for k, v in header.items() if k != name}, "negative": changed(shape=[-1, 5]),
                 "extra key": {**header, "stray.weight": header[name]}}
        folder = self.bundled_copy(without=[WEIGHTS])
        for case, broken in cases.items():
            with self.subTest(case=case):
                text = json.dumps(broken).encode()
                (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + data)
                message = self.load_error(folder)
                self.assertTrue("up_proj" in message or "stray" in message or WEIGHTS in message, message)

    def test_misshapen_and_missing_tensors_are_named(self):
        folder = self.bundled_copy(without=["config.json"])
        config = json.loads((BUNDLED / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 1000}))
        self.assertRegex(self.load_error(folder), r"mlp\.\w+\.weight.*1000")
        (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 7, "layer_types": None}))
        self.assertIn("layers.6.", self.load_error(folder))
        (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 5, "layer_types": None}))
        self.assertIn("layers.5.", self.load_error(folder))

    def test_wrong_configs_name_file_and_field(self):
        folder = self.bundled_copy(without=["config.json"])
        self.assertIn("config.json", self.load_error(folder))
        config = json.loads((BUNDLED / "config.json").read_text())
        for change, expected in [({"hidden_size": "x"}, "hidden_size"), ({"num_attention_heads": 0}, "num_attention_heads"),
                                 ({"model_type": "martian"}, "martian"), ({"vocab_size": -5}, "vocab_size"),
                                 ({"num_hidden_layers": 10 ** 12}, "num_hidden_layers")]:
            with self.subTest(change=change):
                (folder / "config.json").write_text(json.dumps({**config, **change}))
                self.assertIn(expected, self.load_error(folder))
        (folder / "config.json").write_text('{"model_type": "qwen3", ')
        self.assertIn("config.json", self.load_error(folder))

    def test_wrong_generation_configs_name_file_and_field(self):
        folder = self.bundled_copy(without=["generation_config.json"])
        (folder / "generation_config.json").write_text('{"eos_token_id": [1, "</s>"]}')
        message = self.load_error(folder)
        self.assertIn("generation_config.json: eos_token_id[1]", message)

    def test_without_a_tokenizer_ids_still_work(self):
        model = ["-m", self.tiny_model(), "--load-format", "dummy"]
        answer, refused = self.answers("generate", *model, code=1, stdin=lines(
            {"prompt_ids": [1, 2], "max_tokens": 4, "ignore_eos": True, "logprobs": 1}, {"prompt": "x"}))
        self.assertIsNone(answer["text"])
        self.assertEqual(len(answer["token_ids"]), 4)
        self.assertEqual(len(answer["logprobs"]), 4)
        self.assertIn("tokenizer.json", refused["error"]["message"])
        scored, = self.answers("score", *model, stdin=lines({"ids": [1, 2, 3]}))
        self.assertEqual(scored["ids"], [1, 2, 3])
        done = self.succeed("generate", *model, "--prompt-ids", "1,2", "-n", "4", "--temp", "0", "--ignore-eos")
        self.assertEqual(len(done.stdout.split()), 4)

    def test_tokenizers_are_made_of_the_files_that_are_there(self):
        for folder in sorted((Path(__file__).parents[1] / "goldens/made_tokenizers").iterdir()):
            with self.subTest(folder.name):
                model = self.tiny_model(folder.name, vocab_size=600)
                for file in folder.iterdir():
                    shutil.copy(file, model)
                golden = [json.loads(line) for line in (folder / "golden.jsonl").read_text().splitlines()]
                answers = self.answers("tokenize", "-m", model, "--specials-as-text",
                                       stdin=lines(*({"text": line["text"]} for line in golden)))
                self.assertEqual([answer["ids"] for answer in answers], [line["ids"] for line in golden])
                answer, = self.answers("generate", "-m", model, "--load-format", "dummy", stdin=lines({"prompt": "kaloka", "max_tokens": 3}))
                self.assertIsInstance(answer["text"], str)

    def test_dummy_weights_depend_on_the_seed_alone(self):
        model = ["-m", self.tiny_model(), "--load-format", "dummy", "--ids", "1,2,3"]
        first, again, other = (self.succeed("score", *model, "--seed", seed).stdout for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_contexts_are_limited(self):
        model = ["-m", self.tiny_model(), "--load-format", "dummy"]
        ids = ",".join(["1"] * 20)
        message = self.fail_with(1, "generate", *model, "-c", "16", "--prompt-ids", ids)
        self.assertIn("20 in your prompt", message)
        self.assertIn("--max-model-len", message)
        answer, = self.answers("generate", *model, "-c", "24", "--ignore-eos", stdin=lines({"prompt_ids": [1] * 20}))
        self.assertEqual((len(answer["token_ids"]), answer["finish_reason"]), (4, "length"))
        self.assertIn("--max-model-len: 1000", self.fail_with(1, "generate", *model, "-c", "1000", "--prompt-ids", "1"))
        answer, = self.answers("generate", *model, "--max-kv-size", "16", "--ignore-eos",
                               stdin=lines({"prompt_ids": [1] * 20, "max_tokens": 300}))
        self.assertEqual(len(answer["token_ids"]), 300)

    def test_memory_is_limited(self):
        self.assertIn("limit", self.load_error(BUNDLED, "--memory-limit", "4M"))


if __name__ == "__main__":
    unittest.main()
