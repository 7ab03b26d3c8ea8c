"""GGUF files made from the golden and the bundled models are the same models, bit for bit."""
import json
import math
import random
import unittest
from array import array

from gguf_files import (ARCHITECTURES, F32, STRING, adapter_matrices, convert, read_safetensors, text_config,
                        tokenizer_metadata, write_gguf, write_safetensors)
from program import BUNDLED, ROOT, ProgramTest, lines

GOLDENS = ROOT / "tests/goldens/models"
LATENTS = ROOT / "tests/goldens/latents"
MIXED = ROOT / "tests/goldens/mixed"  # whose layers differ
HYBRIDS = ROOT / "tests/goldens/hybrids"  # of layers with states
TOKENIZERS = ROOT / "../shared/tokenizers"
SPLITS = {"qwen3": "qwen2", "llama3.2": "llama-bpe", "gpt2": "gpt-2", "deepseek_v3": "deepseek-v3", "gemma3": "",
          "mistral_v1": ""}


class GgufTest(ProgramTest):
    def scores(self, model, ids, *options):
        """The log-probability of each token of the prompt."""
        return self.answers("score", "-m", model, "--kv-cache-dtype", "float32", *options, stdin=lines({"ids": ids}))[0]

    def twin(self, name, config=None, goldens=GOLDENS):
        """A golden's directory, with another config where one is given, its GGUF and its prompt."""
        golden = goldens / name
        folder = self.directory / name
        folder.mkdir()
        for file in golden.glob("model*"):
            (folder / file.name).symlink_to(file)
        config = config or text_config(golden)
        (folder / "config.json").write_text(json.dumps(config))
        ids = json.loads((golden / "golden.json").read_text())["prompt_ids"]
        return folder, convert(golden, self.directory / f"{name}.gguf", config), ids

    @staticmethod
    def without_keys(config):
        """Fields of a config that files have no key for."""
        family, ropes = config["model_type"], config.get("rope_parameters")
        if family == "dots1":  # llama.cpp knows no windows of it
            return {"layer_types": None, "sliding_window": None}
        if family in ("qwen2", "qwen3_moe"):
            return {"use_sliding_window": False, "layer_types": None, "sliding_window": None}
        if family == "smollm3":  # every fourth layer doesn't rotate
            return {"no_rope_layers": None, "no_rope_layer_interval": 4}
        if family == "olmo3":
            theta = ropes["full_attention"]["rope_theta"]
            return {"rope_parameters": {**ropes, "sliding_attention": {"rope_type": "default", "rope_theta": theta}}}
        if family in ("deepseek_v2", "deepseek_v3"):
            return {"rope_interleave": True, "rope_parameters": {**ropes, "mscale": ropes.get("mscale_all_dim", 0)}}
        if family == "minicpm3":  # llama.cpp has these in its code
            return {"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256}
        if family == "gemma4_text":  # the types of its two ropes are fixed
            full = {"rope_type": "proportional", "rope_theta": 1000.0, "partial_rotary_factor": 0.5}
            return {"text_config": None, "rope_parameters": {
                "full_attention": full, "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}}
        return {"hidden_act": "gelu_pytorch_tanh"} if family == "starcoder2" else {}

    @staticmethod
    def powers_of_two(config):
        """A config's multipliers rounded such that weights that have them multiplied in give the same bits."""
        def rounded(value):
            return [rounded(one) for one in value] if isinstance(value, list) else 2.0 ** round(2 * math.log2(value))
        return {key: rounded(value) for key, value in config.items() if "multiplier" in key}

    def test_golden_models_score_as_their_safetensors(self):
        for folder in sorted(path for kind in (GOLDENS, LATENTS, MIXED) for path in kind.iterdir() if path.is_dir()):
            config = text_config(folder)
            if config["model_type"] not in ARCHITECTURES:
                continue
            if (config.get("rope_parameters") or {}).get("rope_type") in ("llama3", "dynamic"):
                continue
            if config.get("alibi"):  # llama.cpp's falcon has ropes
                continue
            if config["model_type"] == "granitemoehybrid":  # llama.cpp writes files of granite and granitemoe for it
                continue
            config = {**config, **self.without_keys(config)}
            with self.subTest(folder.name):
                twin, gguf, ids = self.twin(folder.name, config, folder.parent)
                self.assertEqual(self.scores(gguf, ids), self.scores(twin, ids))

    def test_golden_hybrids_score_as_their_safetensors(self):
        for folder in sorted(HYBRIDS.iterdir()):
            if text_config(folder)["model_type"] not in ARCHITECTURES:
                continue
            with self.subTest(folder.name):
                config = text_config(folder)
                if {"moe", "mlp"} <= set(config.get("layers_block_type", [])):  # which files can't have
                    continue
                if config.get("linear_num_heads", 0) not in (0, config.get("num_attention_heads")):
                    continue  # files have one number of heads
                if "time_step_limit" in config:
                    config["time_step_limit"] = None  # which has no key
                if config["model_type"] == "falcon_mamba":  # whose epsilon has no key
                    config["mixer_rms_eps"] = 1e-6
                if config["model_type"] == "falcon_h1":
                    config.update(self.powers_of_two(config), mamba_norm_before_gate=False)
                twin, gguf, ids = self.twin(folder.name, config, goldens=HYBRIDS)
                scores = self.scores(twin, ids)
                self.assertEqual(self.scores(gguf, ids), scores)
                out = self.directory / f"{folder.name}-out"
                self.succeed("convert", "-m", gguf, "-o", out)
                pairs = zip(self.scores(out, ids)["logprobs"][1:], scores["logprobs"][1:], strict=True)
                self.assertLess(max(abs(ours - theirs) for ours, theirs in pairs), 1e-5)  # of A_log the last bits
                written, stored = read_safetensors(out), read_safetensors(folder)
                if folder.name.endswith("stacked") or config["model_type"] in (
                        "granitemoehybrid", "qwen3_next", "nemotron_h", "falcon_h1", "mamba2", "mamba", "falcon_mamba",
                        "jamba", "kimi_linear"):
                    continue  # experts one by one, gate and up apart, a product in two parts, other names
                self.assertEqual(sorted(written), sorted(stored))
                for key, value in stored.items():
                    self.assertEqual(written[key][:2], value[:2], key)
                    if not key.endswith((".A_log", "norm.weight")):  # w of a rounded 1 + w
                        self.assertEqual(written[key], value, key)

    def write_adapters(self, name, config):
        """One adapter of all matrices in layers, as PEFT has it and as GGUF has it."""
        stored, draw = read_safetensors(HYBRIDS / name), random.Random(name)
        pairs = {}
        for key, (_, shape, _) in sorted(stored.items()):
            if len(shape) != 2 or ".layers." not in key or ".gate." in key:
                continue
            sizes = ((3, shape[1]), (shape[0], 3))
            pairs[key] = [(list(size), array("f", (draw.uniform(-0.3, 0.3) for _ in range(math.prod(size)))).tobytes())
                          for size in sizes]
        peft = self.directory / f"{name}-peft"
        peft.mkdir()
        write_safetensors(peft / "adapter_model.safetensors", {
            f"base_model.model.{key.removesuffix('.weight').replace('backbone.', 'model.')}.lora_{side}.weight":
                ("F32", *matrix) for key, pair in pairs.items() for side, matrix in zip("AB", pair)})
        modules = sorted({key.split(".")[-2] for key in pairs})
        (peft / "adapter_config.json").write_text(json.dumps({
            "peft_type": "LORA", "r": 3, "lora_alpha": 6, "target_modules": modules}))
        gguf = self.directory / f"{name}-adapter.gguf"
        write_gguf(gguf, [("general.architecture", STRING, ARCHITECTURES[config["model_type"]]),
                          ("general.type", STRING, "adapter"), ("adapter.type", STRING, "lora"),
                          ("adapter.lora.alpha", F32, 6.0)],
                   [matrix for key, pair in pairs.items() for matrix in adapter_matrices(key, pair, config)])
        return peft, gguf

    def test_adapters_in_gguf_are_those_of_peft(self):
        for name in ("qwen3_5_text", "nemotron_h_pattern", "falcon_h1_multipliers"):
            with self.subTest(name):
                config = text_config(HYBRIDS / name)
                is_multiplied = config["model_type"] == "falcon_h1"
                if is_multiplied:
                    config.update(self.powers_of_two(config))
                twin, gguf, ids = self.twin(name, config, goldens=HYBRIDS)
                peft, adapter = self.write_adapters(name, config)
                scores = self.scores(twin, ids, "--lora", peft)
                self.assertNotEqual(scores, self.scores(twin, ids))
                self.assertEqual(self.scores(gguf, ids, "--lora", adapter), scores)
                if is_multiplied:
                    prompt = ("--prompt-ids", "1,2", "--lora")
                    self.assertIn("use the model's GGUF", self.fail_with(1, "score", "-m", twin, *prompt, adapter))
                    self.assertIn("use the model's safetensors", self.fail_with(1, "score", "-m", gguf, *prompt, peft))
                else:
                    self.assertEqual(self.scores(twin, ids, "--lora", adapter), scores)
                    self.assertEqual(self.scores(gguf, ids, "--lora", peft), scores)

    def test_divided_frequencies_are_llama_3_s_scaling(self):
        for name, goldens in (("llama_scaled_tied", GOLDENS), ("apertus_bias", MIXED)):
            with self.subTest(name):
                twin, gguf, ids = self.twin(name, goldens=goldens)
                pairs = zip(self.scores(gguf, ids)["logprobs"][1:], self.scores(twin, ids)["logprobs"][1:], strict=True)
                self.assertLess(max(abs(ours - theirs) for ours, theirs in pairs), 1e-4)

    def test_converted_directories_are_the_same_model(self):
        for name in ("llama_bias", "llama_scaled_tied", "mistral_window", "qwen3_tied", "gemma2_odd",
                     "gemma3_text_pattern3_scaled", "phi3_longrope_long", "glm4_bias", "starcoder2_window_tied",
                     "cohere2_tied", "granite_bias", "stablelm_bias", "stablelm_parallel", "olmo3_window", "ministral3_growth", "qwen3_moe_tied",
                     "olmoe_plain", "glm4_moe_groups", "mixtral_plain"):
            with self.subTest(name):
                _, gguf, ids = self.twin(name)
                out = self.directory / f"{name}-out"
                self.succeed("convert", "-m", gguf, "-o", out)
                self.assertEqual(self.scores(out, ids), self.scores(gguf, ids))
                written, stored = read_safetensors(out), read_safetensors(GOLDENS / name)
                self.assertEqual(sorted(written), sorted(stored))
                for key, value in stored.items():
                    if not (name.startswith("gemma") and key.endswith("norm.weight")):  # w of a rounded 1 + w
                        self.assertEqual(written[key], value, key)

    def bundled(self, **options):
        return convert(BUNDLED, self.directory / "bundled.gguf", pre="qwen2", **options)

    def test_the_bundled_model_writes_and_chats_the_same(self):
        gguf = self.bundled()
        for prompt in ("It was a dark and stormy night", "\u201cNever,\u201d said"):
            options = ("generate", "-p", prompt, "-n", "40", "--temperature", "0", "-q")
            self.assertEqual(self.succeed(*options, "-m", gguf).stdout, self.succeed(*options, "-m", BUNDLED).stdout)
        self.assertEqual(self.succeed("render", "-m", gguf, "-p", "Hello").stdout,
                         self.succeed("render", "-m", BUNDLED, "-p", "Hello").stdout)
        ids = [int(i) for i in self.succeed("tokenize", "-m", gguf, "-p", "The old man " * 30).stdout.split()]
        self.assertEqual(self.scores(gguf, ids), self.scores(BUNDLED, ids))

    def test_a_converted_bundled_model_has_its_tokenizer_and_template(self):
        gguf, out = self.bundled(more=[("general.sampling.temp", F32, 0.5)]), self.directory / "out"
        said = self.succeed("convert", "-m", gguf, "-o", out).stderr
        self.assertIn("tensors", said)
        self.assertEqual(json.loads((out / "config.json").read_text())["model_type"], "qwen3")
        self.assertEqual(json.loads((out / "generation_config.json").read_text())["temperature"], 0.5)
        self.assertEqual(self.succeed("render", "-m", out, "-p", "Hi").stdout,
                         self.succeed("render", "-m", BUNDLED, "-p", "Hi").stdout)
        ids = [int(i) for i in self.succeed("tokenize", "-m", out, "-p", "The old man " * 30).stdout.split()]
        self.assertEqual(self.scores(out, ids), self.scores(gguf, ids))
        self.assertEqual(sorted(path.name for path in self.directory.iterdir()), ["bundled.gguf", "out"])

    def test_quantised_files_score_near_the_original_and_are_not_quantised_again(self):
        for name in ("llama_bias", "gemma2_odd", "qwen3_tied"):
            with self.subTest(name):
                twin, _, ids = self.twin(name)
                gguf = convert(GOLDENS / name, self.directory / f"{name}-q8.gguf", quantized=True)
                found = self.scores(gguf, ids)["logprobs"][1:]
                pairs = list(zip(found, self.scores(twin, ids)["logprobs"][1:], strict=True))
                self.assertLess(sum(abs(ours - theirs) for ours, theirs in pairs) / len(pairs), 0.3)
                out = self.directory / f"{name}-out"
                self.succeed("convert", "-m", gguf, "-o", out)
                self.assertEqual({entry[0] for entry in read_safetensors(out).values()}, {"F32"})
                self.assertIn("quantised already", self.fail_with(1, "score", "-m", gguf, "--prompt-ids", "1,2",
                                                                  "--quantize", "q8"))
                tensors = json.loads(self.succeed("inspect", "-m", gguf, "--json").stdout)["tensors"]
                self.assertIn("Q8_0", {tensor["dtype"] for tensor in tensors})

    def test_convert_writes_other_types_and_never_overwrites(self):
        _, gguf, ids = self.twin("llama_plain")
        for dtype, stored in (("bfloat16", "BF16"), ("float16", "F16"), ("float32", "F32")):
            out = self.directory / dtype
            self.succeed("convert", "-m", gguf, "-o", out, "--dtype", dtype)
            self.assertEqual({entry[0] for entry in read_safetensors(out).values()}, {stored})
            self.assertEqual(json.loads((out / "config.json").read_text())["dtype"], dtype)
            self.assertEqual(len(self.scores(out, ids)["logprobs"]), len(ids))
        before = (out / "model.safetensors").read_bytes()
        self.assertIn("exists already", self.fail_with(1, "convert", "-m", gguf, "-o", out))
        self.assertEqual((out / "model.safetensors").read_bytes(), before)
        self.assertIn("expected a GGUF file", self.fail_with(1, "convert", "-m", out, "-o", self.directory / "new"))
        self.assertFalse((self.directory / "new").exists())
        self.fail_with(2, "convert", "-m", gguf)
        self.fail_with(2, "convert", "-o", self.directory / "new")

    def test_a_directory_with_one_file_stands_for_it(self):
        _, gguf, ids = self.twin("qwen2_tied", {**text_config(GOLDENS / "qwen2_tied"), "use_sliding_window": False})
        folder = self.directory / "only"
        folder.mkdir()
        gguf.rename(folder / "model.gguf")
        self.assertEqual(self.scores(folder, ids), self.scores(folder / "model.gguf", ids))
        (folder / "other.gguf").symlink_to(folder / "model.gguf")
        self.assertIn("2 GGUF files", self.fail_with(1, "inspect", "-m", folder))

    def test_inspect_names_the_file_s_types(self):
        report = json.loads(self.succeed("inspect", "-m", self.bundled(), "--json").stdout)
        self.assertEqual(report["config"]["family"], "qwen3")
        tensors = {tensor["name"]: tensor for tensor in report["tensors"]}
        self.assertEqual(tensors["token_embd.weight"]["dtype"], "BF16")
        self.assertEqual(tensors["blk.0.attn_norm.weight"]["dtype"], "F32")

    def test_what_is_not_supported_is_named(self):
        path = self.directory / "model.gguf"
        write_gguf(path, [("general.architecture", STRING, "bloom")])
        for command in ("inspect", "generate"):
            message = self.fail_with(1, command, "-m", path)
            self.assertIn('; llama, mistral, qwen2, qwen3, ', message)
        metadata = [entry for entry in tokenizer_metadata(BUNDLED) if entry[0] != "tokenizer.ggml.pre"]
        write_gguf(path, [*metadata, ("tokenizer.ggml.pre", STRING, "jais")])
        self.assertIn('tokenizer.ggml.pre: "jais" isn\'t supported', self.fail_with(1, "tokenize", "-m", path, "-p", "x"))
        write_gguf(path, [("tokenizer.ggml.model", STRING, "t5")])
        self.assertIn('tokenizer.ggml.model: "t5" isn\'t supported', self.fail_with(1, "tokenize", "-m", path, "-p", "x"))

    @unittest.skipUnless(TOKENIZERS.exists(), "../shared/tokenizers isn't there: large tokenizers skipped")
    def test_tokenizers_of_well_known_models_are_hugging_face_s(self):
        for name, pre in [*SPLITS.items(), ("gemma3", "gemma4")]:
            with self.subTest(name, pre=pre):
                path = self.directory / f"{name}.gguf"
                write_gguf(path, tokenizer_metadata(TOKENIZERS / name, pre))
                goldens = [json.loads(line) for line in (TOKENIZERS / name / "golden.jsonl").read_text().splitlines()]
                goldens = [golden for golden in goldens if "text" in golden]
                texts = lines(*({"text": golden["text"]} for golden in goldens))
                for options, key in (((), "ids"), (("--special",), "ids_with_special"),
                                     (("--specials-as-text",), "ids_special_as_text")):
                    done = self.succeed("tokenize", "-m", path, *options, "--jsonl", "-q", stdin=texts)
                    found = [json.loads(line) for line in done.stdout.split("\n") if line]  # not at U+2028
                    for answer, golden in zip(found, goldens, strict=True):
                        self.assertEqual(answer["ids"], golden.get(key, golden["ids"]), golden["text"])
                        if key == "ids":
                            self.assertEqual(answer["decoded"], golden["decoded"])


if __name__ == "__main__":
    unittest.main()
