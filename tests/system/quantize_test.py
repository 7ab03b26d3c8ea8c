"""`paceline quantize`: what it writes, reads and refuses; `--quantize` while loading."""
import json
import math
import struct
import unittest

from program import BUNDLED, ROOT, ProgramTest, lines

TEXT = "The old man sat by the sea and looked at the boats. " * 12
ROWS_CHECKED = 3
MODELS = ROOT / "tests/goldens/models"


def floats_of_bf16(data):
    return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]


def read_safetensors(path):
    """Each tensor's dtype, shape and bytes."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    data = content[8 + length:]
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


class QuantizeTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.out = self.directory / "mlx-out"

    def quantize(self, *options):
        done = self.succeed("quantize", "-m", BUNDLED, "-o", self.out, *options)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def greedy(self, model, *options):
        return self.succeed("generate", "-m", model, "-p", "Once upon a time", "-n", "12", "--temp", "0", "--quiet",
                            *options).stdout

    def test_the_written_directory_is_a_model(self):
        text = self.quantize()
        self.assertRegex(text, r"mlx-out: [\d,]+ of [\d,]+ parameters quantised, 19\.3 MiB -> 5\.4 MiB, 4\.5\d\d bits per "
                               r"weight\n$")
        config = json.loads((self.out / "config.json").read_text())
        self.assertEqual(config["quantization"], {"group_size": 64, "bits": 4, "mode": "affine"})
        self.assertEqual(config["quantization_config"], config["quantization"])
        del config["quantization"], config["quantization_config"]
        self.assertEqual(config, json.loads((BUNDLED / "config.json").read_text()))
        for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"):
            self.assertEqual((self.out / name).read_bytes(), (BUNDLED / name).read_bytes())
        self.assertEqual(sorted(p.name for p in self.directory.iterdir()), ["mlx-out"])
        self.assertTrue(self.greedy(self.out))

    def test_values_are_within_a_step(self):
        self.quantize("--bits", "3", "--group-size", "128")
        written, source = read_safetensors(self.out / "model.safetensors"), read_safetensors(BUNDLED / "model.safetensors")
        name = "model.layers.2.mlp.down_proj"
        dtype, (rows, words), packed = written[name + ".weight"]
        self.assertEqual((dtype, rows, words), ("U32", 384, 896 * 3 // 32))
        scales = floats_of_bf16(written[name + ".scales"][2])
        biases = floats_of_bf16(written[name + ".biases"][2])
        expected = floats_of_bf16(source[name + ".weight"][2])
        steps = []
        for row in range(ROWS_CHECKED):
            stream = int.from_bytes(packed[row * words * 4:(row + 1) * words * 4], "little")
            for i in range(896):
                group = row * 7 + i // 128
                value = scales[group] * (stream >> (3 * i) & 7) + biases[group]
                steps.append(abs((value - expected[row * 896 + i]) / scales[group]))
        self.assertLess(max(steps), 1.05)  # zero has a code: the far end of a group's range may have none
        self.assertLess(sum(steps) / len(steps), 0.3)
        self.assertEqual(written["model.norm.weight"], source["model.norm.weight"])

    def test_check_prints_perplexity_before_and_after(self):
        path = self.write("text.txt", TEXT)
        report = json.loads(self.quantize("--bits", "8", "--group-size", "32", "--check", path, "-c", "64", "--json"))
        measured = json.loads(self.succeed("perplexity", "-m", BUNDLED, "-f", path, "-c", "64", "--json").stdout)
        self.assertEqual(report["before"], measured)
        after = json.loads(self.succeed("perplexity", "-m", self.out, "-f", path, "-c", "64", "--json").stdout)
        self.assertEqual(report["after"], after)
        self.assertLess(abs(math.log(after["perplexity"] / measured["perplexity"])), 0.05)
        self.assertAlmostEqual(report["bits_per_weight"], 9, delta=0.1)
        self.assertEqual(report["bytes_after"] * 8 / report["parameters"], report["bits_per_weight"])

    def byte_model(self, name):
        """A golden whose 256 tokens are the bytes, with such a tokenizer."""
        visible = [*range(33, 127), *range(161, 173), *range(174, 256)]  # GPT-2's letters for bytes
        hidden = [byte for byte in range(256) if byte not in visible]
        letters = {byte: chr(byte) for byte in visible} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}
        folder = self.directory / name
        folder.mkdir()
        for file in [*(MODELS / name).glob("model*"), MODELS / name / "config.json"]:
            (folder / file.name).symlink_to(file)
        (folder / "tokenizer.json").write_text(json.dumps({
            "added_tokens": [],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": {letter: byte for byte, letter in letters.items()}, "merges": []}}))
        return folder

    def test_calibrating_keeps_what_the_model_says_of_such_texts(self):
        text, options = self.write("text.txt", TEXT), ("--bits", "3", "--group-size", "32", "-q")
        for name in ("llama_plain", "mixtral_plain"):  # whose experts aren't calibrated
            with self.subTest(name):
                model, plain, chosen = self.byte_model(name), self.directory / f"{name}-3", self.directory / f"{name}-c"
                self.succeed("quantize", "-m", model, "-o", plain, *options)
                self.succeed("quantize", "-m", model, "-o", chosen, *options, "--calibrate", text)
                found = [self.answers("score", "-m", path, stdin=lines({"ids": [*TEXT.encode()][:52]}))[0]["logprobs"][1:]
                         for path in (model, plain, chosen)]
                distances = [math.dist(found[0], other) for other in found[1:]]
                self.assertLess(distances[1], 0.8 * distances[0])
                written = [read_safetensors(path / "model.safetensors") for path in (plain, chosen)]
                self.assertEqual(*({key: value[:2] for key, value in tensors.items()} for tensors in written))
        empty = self.write("empty.txt", "")
        self.assertIn("0 tokens", self.fail_with(1, "quantize", "-m", model, "-o", self.out, "--calibrate", empty))
        self.assertFalse(self.out.exists())

    def test_recipes_mix_bits(self):
        path = self.write("text.txt", TEXT)
        text = self.quantize("--recipe", "mixed_3_6", "--check", path, "-c", "64")
        self.assertRegex(text, r"\nbefore: \d+ tokens, perplexity [\d.]+, [\d.]+ bits per byte\nafter:  \d+ tokens, "
                               r"perplexity [\d.]+, [\d.]+ bits per byte\nchange: [+-][\d.]+ % perplexity\n$")
        quantization = json.loads((self.out / "config.json").read_text())["quantization"]
        self.assertEqual(quantization.pop("bits"), 3)
        high = {"group_size": 64, "bits": 6, "mode": "affine"}
        overrides = {k: v for k, v in quantization.items() if isinstance(v, dict)}
        self.assertEqual(set(overrides), {f"model.layers.{i}.{part}" for i in (2, 5)
                                          for part in ("mlp.down_proj", "self_attn.v_proj")})
        self.assertTrue(all(value == high for value in overrides.values()))
        report = json.loads(self.succeed("inspect", "-m", self.out, "--json").stdout)
        plain = json.loads(self.succeed("inspect", "-m", BUNDLED, "--json").stdout)
        self.assertEqual(report["parameters"], plain["parameters"])
        self.assertIn("uint32", {tensor["dtype"] for tensor in report["tensors"]})

    def test_q4_at_load_is_what_was_written_at_four_bits(self):
        self.quantize()
        self.assertEqual(self.greedy(BUNDLED, "--quantize", "q4"), self.greedy(self.out))
        self.assertTrue(self.greedy(BUNDLED, "--quantize", "q8"))
        dummy = ["-m", self.tiny_model(), "--load-format", "dummy", "--ids", "1,2,3", "--jsonl", "-n", "4", "--ignore-eos"]
        for quantization in ("none", "q4", "q8"):
            self.succeed("generate", *dummy, "--quantize", quantization)

    def test_a_quantised_mixture_has_the_bits_of_q4_at_load(self):
        for folder in sorted(MODELS.iterdir()):
            config = json.loads((folder / "config.json").read_text()) if folder.is_dir() else {}
            if "num_experts_per_tok" not in config or "quantization_config" in config:
                continue
            attention_width = config["num_attention_heads"] * (config.get("head_dim") or 1)
            if attention_width % 64 == 0:  # at load such rows have groups of 64
                continue
            with self.subTest(folder.name):
                out = self.directory / folder.name
                self.succeed("quantize", "-m", folder, "-o", out, "--group-size", "32")
                ids = lines({"ids": json.loads((folder / "golden.json").read_text())["prompt_ids"]})
                at_load = self.answers("score", "-m", folder, "--quantize", "q4", stdin=ids)
                self.assertEqual(self.answers("score", "-m", out, stdin=ids), at_load)
                self.assertNotEqual(self.answers("score", "-m", folder, stdin=ids), at_load)

    def test_bf16_is_bfloat16_wherever_options_come_from(self):
        def scores(*options, **variables):
            return self.answers("score", "-m", BUNDLED, "--quantize", "q4", *options, env=variables,
                                stdin=lines({"ids": list(range(20, 60))}))[0]

        short = self.write("short.toml", 'activations = "bf16"\nkv_cache_dtype = "f32"\n')
        expected = scores("--activations", "bfloat16", "--kv-cache-dtype", "float32")
        self.assertEqual(scores("--activations", "bf16", "--kv-cache-dtype", "f32"), expected)
        self.assertEqual(scores(PACELINE_ACTIVATIONS="bf16", PACELINE_KV_CACHE_DTYPE="f32"), expected)
        self.assertEqual(scores("--config", short), expected)
        for others in (("int8", "f32"), ("bf16", "f16")):
            self.assertNotEqual(scores("--activations", others[0], "--kv-cache-dtype", others[1]), expected)

    def test_a_quantised_model_of_embeddings_has_its_modules(self):
        model = ROOT / "tests/goldens/embeddings/gemma3"
        self.succeed("quantize", "-m", model, "-o", self.out, "--bits", "8", "--group-size", "32", "-q")
        folders = {path.parent.name for path in self.out.rglob("*/config.json")}
        self.assertEqual(folders, {path.parent.name for path in model.rglob("*/config.json")})
        self.assertIn("2_Dense", folders)

        def embed(folder):
            return json.loads(self.succeed("embed", "-m", folder, "the sea").stdout)["embedding"]

        plain, quantised = embed(model), embed(self.out)
        self.assertNotEqual(quantised, plain)
        self.assertGreater(sum(a * b for a, b in zip(quantised, plain, strict=True)), 0.99)

    def test_refusals(self):
        self.out.mkdir()
        self.assertIn("mlx-out: exists already", self.fail_with(1, "quantize", "-m", BUNDLED, "-o", self.out))
        self.assertEqual(list(self.out.iterdir()), [])
        self.out.rmdir()
        self.assertIn("give --output", self.fail_with(2, "quantize", "-m", BUNDLED))
        self.assertIn("give one of them", self.fail_with(2, "quantize", "-m", BUNDLED, "-o", self.out, "--bits", "4",
                                                         "--recipe", "mixed_2_6"))
        self.assertIn("--bits: found", self.fail_with(2, "quantize", "-o", self.out, "--bits", "7"))
        self.assertIn("nowhere.txt", self.fail_with(1, "quantize", "-m", BUNDLED, "-o", self.out, "--check", "nowhere.txt"))
        self.assertFalse(self.out.exists())
        self.quantize("--bits", "2")
        self.assertIn("quantised already", self.fail_with(1, "quantize", "-m", self.out, "-o", self.directory / "again"))
        self.assertIn("--quantize", self.fail_with(1, "generate", "-m", self.out, "-p", "x", "--quantize", "q8"))
        config = json.loads((self.out / "config.json").read_text())
        config["quantization"]["mode"] = "mxfp6"
        self.write("mlx-out/config.json", json.dumps(config))
        self.assertIn('quantization.mode: "mxfp6"', self.fail_with(1, "generate", "-m", self.out, "-p", "x"))


if __name__ == "__main__":
    unittest.main()
