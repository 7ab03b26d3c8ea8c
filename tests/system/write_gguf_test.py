"""`convert`, `quantize` and `fuse` with FILE.gguf: the same models, read back by Paceline and by gguf-py."""
import importlib.util
import json
import unittest

from program import BUNDLED, ROOT, ProgramTest, lines

GOLDENS = ROOT / "tests/goldens/models"
HYBRIDS = ROOT / "tests/goldens/hybrids"
ADAPTERS = ROOT / "tests/goldens/adapters"
# Rotary pairs interleaved, 1 + w, experts one by one and stacked, halves of a matrix, heads' norms, value heads in turns.
FAMILIES = [GOLDENS / "llama_bias", GOLDENS / "gemma3_text_pattern3_scaled", GOLDENS / "mixtral_plain",
            GOLDENS / "granitemoeshared_tied_stacked", GOLDENS / "stablelm_bias", GOLDENS / "phi3_longrope_short",
            HYBRIDS / "qwen3_5_text", HYBRIDS / "lfm2_moe_tied"]


class WriteGgufTest(ProgramTest):
    def scores(self, model, ids):
        return self.answers("score", "-m", model, "--kv-cache-dtype", "float32", stdin=lines({"ids": ids}))[0]

    def directory_of(self, golden):
        folder = self.directory / golden.name
        folder.mkdir()
        for file in [*golden.glob("model*"), golden / "config.json"]:
            (folder / file.name).symlink_to(file)
        return folder, json.loads((golden / "golden.json").read_text())["prompt_ids"]

    def test_families_read_back_bit_for_bit(self):
        for golden in FAMILIES:
            with self.subTest(golden.name):
                folder, ids = self.directory_of(golden)
                out = self.directory / f"{golden.name}.gguf"
                self.succeed("convert", "-m", folder, "-o", out)
                self.assertEqual(self.scores(out, ids), self.scores(folder, ids))

    def test_the_bundled_model_keeps_tokens_texts_and_template(self):
        out, again = self.directory / "b.gguf", self.directory / "again.gguf"
        self.succeed("convert", "-m", BUNDLED, "-o", out)
        self.succeed("convert", "-m", out, "-o", again)
        self.assertEqual(out.stat().st_size, again.stat().st_size)
        prompt = ("-p", "It was 1895, \u201cNever\u201d,\n\n said  na\u00efve S\u00e9bastien")
        for command in (("tokenize", *prompt), ("render", *prompt),
                        ("generate", *prompt, "-n", "16", "--temperature", "0", "-q")):
            expected = self.succeed(*command, "-m", BUNDLED).stdout
            self.assertEqual(self.succeed(*command, "-m", out).stdout, expected)
            self.assertEqual(self.succeed(*command, "-m", again).stdout, expected)

    def test_quantised_files_are_those_of_the_types(self):
        for kind, types in (("q8_0", {"Q8_0"}), ("q4_k_m", {"Q5_0", "Q8_0"})):  # whose rows 256 doesn't divide
            out = self.directory / f"{kind}.gguf"
            report = json.loads(self.succeed("quantize", "-m", BUNDLED, "-o", out, "--gguf-type", kind, "--json").stdout)
            self.assertGreater(report["quantized_parameters"], 0.99 * report["parameters"])
            tensors = json.loads(self.succeed("inspect", "-m", out, "--json").stdout)["tensors"]
            self.assertEqual({tensor["dtype"] for tensor in tensors}, types | {"F32"})

    def test_adapters_are_fused_into_files(self):
        folder, ids = self.directory_of(GOLDENS / "llama_plain")
        fused, out = self.directory / "fused", self.directory / "fused.gguf"
        for path in (fused, out):
            self.succeed("fuse", "-m", folder, "--lora", ADAPTERS / "peft_llama", "-o", path)
        self.assertEqual(self.scores(out, ids), self.scores(fused, ids))

    @unittest.skipUnless(importlib.util.find_spec("gguf"), "gguf isn't installed")
    def test_gguf_py_reads_the_file(self):
        import gguf
        out = self.directory / "b.gguf"
        self.succeed("quantize", "-m", BUNDLED, "-o", out, "--gguf-type", "q8_0")
        reader = gguf.GGUFReader(out)
        self.assertEqual(reader.get_field("general.architecture").contents(), "qwen3")
        self.assertEqual(reader.get_field("tokenizer.ggml.pre").contents(), "qwen2")
        tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.assertEqual(tensors["blk.0.attn_q.weight"].tensor_type, gguf.GGMLQuantizationType.Q8_0)
        self.assertEqual(list(tensors["blk.0.ffn_down.weight"].shape), [896, 384])

    def test_what_files_cannot_hold_is_named_and_nothing_is_written(self):
        out = self.directory / "x.gguf"
        for golden, reason in ((GOLDENS / "helium_plain", 'model_type "helium" has no architecture'),
                               (GOLDENS / "llama_dynamic", "scaling has no keys"),
                               (HYBRIDS / "mamba_plain", "read from GGUF files, but not written")):
            folder, _ = self.directory_of(golden)
            self.assertIn(reason, self.fail_with(1, "convert", "-m", folder, "-o", out))
        self.assertFalse(out.exists())
        self.succeed("convert", "-m", BUNDLED, "-o", out)
        before = out.read_bytes()
        self.assertIn("exists already", self.fail_with(1, "convert", "-m", BUNDLED, "-o", out))
        self.assertEqual(out.read_bytes(), before)
        self.assertEqual([path for path in self.directory.iterdir() if path.name.endswith(".partial")], [])
        for options, reason in ((("convert", "-o", "d", "--gguf-type", "f16"), "give --output FILE.gguf too"),
                                (("convert", "-o", "d.gguf", "--gguf-type", "f16", "--dtype", "f16"), "both set the type"),
                                (("quantize", "-o", "d.gguf", "--bits", "4"), "are for directories")):
            self.assertIn(reason, self.fail_with(2, *options, "-m", BUNDLED))


if __name__ == "__main__":
    unittest.main()
