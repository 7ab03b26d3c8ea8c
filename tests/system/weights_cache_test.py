"""--weights-cache: the second start maps the file that the first has written; its failures don't fail the start."""
import json
import random
import re
import struct
import unittest

from gguf_files import U32, config_metadata, convert, text_config, write_gguf
from program import BUNDLED, IS_SANITIZED, ROOT, ProgramTest
from serving import Client, Server

GOLDENS = ROOT / "tests/goldens"
WRITTEN, MAPPED = "written for the next start", ", mapped"


class WeightsCacheTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.cache = self.directory / "cache"

    def generate(self, model, *options, cache=True):
        """Text, log-probabilities and all, and standard error."""
        kept = ["--weights-cache", self.cache] if cache else []
        done = self.succeed("generate", "-m", model, "--prompt-ids", "5,7,11,30", "-n", "6", "--temp", "0",
                            "--logprobs", "3", "--seed", "1", "--jsonl", *kept, *options)
        return json.loads(done.stdout), done.stderr

    def model(self, name="models/llama_bias"):
        folder = self.directory / "model"
        folder.mkdir(exist_ok=True)
        for file in (GOLDENS / name).iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        return folder

    def kept(self):
        return sorted(self.cache.glob("*"))

    def expect_same_twice(self, model, *options):
        expected, _ = self.generate(model, *options, cache=False)
        for outcome in (WRITTEN, MAPPED):
            answer, said = self.generate(model, "--verbose", *options)
            self.assertEqual(answer, expected)
            self.assertIn(outcome, said)
            self.assertNotIn("warning", said)

    def test_every_family_and_format_has_the_same_bits(self):
        folders = sorted(path for path in (GOLDENS / "models").iterdir() if path.is_dir())
        for folder in folders[::8] if IS_SANITIZED else folders:  # three processes each
            with self.subTest(folder.name):
                self.expect_same_twice(folder)
        settings = [["--quantize", "q4"], ["--quantize", "q8"], ["--dtype", "bfloat16"], ["--dtype", "float16"]]
        for name in ("models/llama_bias", "models/gemma3_text_pattern2", "models/qwen3_tied"):
            for options in settings:
                with self.subTest(name, options=options):
                    self.expect_same_twice(GOLDENS / name, *options)
        for options in ([], ["--activations", "plain"]):
            with self.subTest("mlx", options=options):
                self.expect_same_twice(GOLDENS / "mlx/model", *options)

    def test_gguf_files_too(self):
        for quantized in (False, True):
            with self.subTest(quantized=quantized):
                path = self.directory / f"{quantized}.gguf"
                self.expect_same_twice(convert(GOLDENS / "models/llama_plain", path, quantized=quantized))

    def test_k_quants_too(self):
        model = self.k_quants()
        self.expect_same_twice(model)
        self.expect_same_twice(model, "--activations", "plain")

    def k_quants(self):
        """A GGUF file of one layer of random weights, Q4_K and Q6_K by turns."""
        config = {**text_config(GOLDENS / "models/llama_plain"), "num_hidden_layers": 1, "hidden_size": 256,
                  "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 64,
                  "vocab_size": 64}
        shapes = {"token_embd": (64, 256), "output": (64, 256), **{
            f"blk.0.{part}": (256, 256) for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up",
                                                     "ffn_down")}}
        source, tensors = random.Random(1), []
        for index, (name, shape) in enumerate(shapes.items()):
            kind = ("Q4_K", "Q6_K")[index % 2]
            tensors.append((name + ".weight", kind, shape, self.k_blocks(kind, shape[0], source)))
        for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
            tensors.append((name + ".weight", "F32", [256], struct.pack("<f", 1.0) * 256))
        metadata = [entry for entry in config_metadata(config) if not entry[0].startswith("tokenizer.")]
        return write_gguf(self.directory / "k.gguf", [*metadata, ("tokenizer.ggml.eos_token_id", U32, 63)], tensors)

    @staticmethod
    def k_blocks(kind, count, source):
        """A block a row: small scales, random codes."""
        scale = struct.pack("<e", 0.0002)
        if kind == "Q4_K":  # scale and smallest value; 12 bytes of scales; 128 of codes
            return b"".join(scale + scale + source.randbytes(140) for _ in range(count))
        return b"".join(source.randbytes(208) + scale for _ in range(count))  # codes, scales; the scale of scales

    def test_an_edited_model_is_another(self):
        model = self.model()
        before, _ = self.generate(model)
        weights = model / "model.safetensors"
        content = bytearray(weights.read_bytes())
        content[-3:-1] = b"\x42\x40"
        weights.write_bytes(content)
        self.expect_same_twice(model)
        self.assertNotEqual(self.generate(model)[0], before)
        self.assertEqual(len(self.kept()), 2)

    def test_damage_is_reported_and_repaired(self):
        model = self.model()
        expected, _ = self.generate(model)
        file, = self.kept()
        whole = file.read_bytes()
        damages = {len(whole) - 100: "is damaged", 20: "its head is damaged", 100: "its table is damaged",
                   0: "isn't a file of prepared weights of this layout"}
        for place, what in damages.items():
            with self.subTest(place=place):
                file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1:])
                answer, said = self.generate(model)
                self.assertEqual(answer, expected)
                self.assertRegex(said, f"^warning: weights cache: {re.escape(str(file))}: .*{what}; the model's own "
                                       "files were read instead, and it was written anew\n$")
                self.assertEqual(file.read_bytes(), whole)
        file.write_bytes(whole[:-1])
        self.assertIn("were written", self.generate(model)[1])
        file.write_bytes(b"")
        self.assertEqual(self.generate(model, "--quiet"), (expected, ""))
        self.assertEqual(file.read_bytes(), whole)

    def test_it_may_be_deleted_at_any_time(self):
        model = self.model()
        expected, said = self.generate(model)
        self.assertEqual(said, "")
        self.kept()[0].unlink()
        self.assertEqual(self.generate(model), (expected, ""))
        self.kept()[0].unlink()
        self.cache.rmdir()
        self.assertEqual(self.generate(model), (expected, ""))
        self.assertEqual(len(self.kept()), 1)

    def test_a_place_that_cannot_be_written_to_is_no_failure(self):
        model = self.model()
        expected, _ = self.generate(model, cache=False)
        self.cache.write_text("a file")
        answer, said = self.generate(model, "--verbose")
        self.assertEqual(answer, expected)
        self.assertRegex(said, f"warning: weights cache: {re.escape(str(self.cache))}.*; the next start reads the "
                               "model's own files too, unless --weights-cache names a directory that can be written "
                               "to and has room\n")
        self.assertIn("weights cache: not used\n", said)
        self.cache.unlink()
        self.cache.mkdir()
        self.cache.chmod(0o500)  # which means nothing to root
        self.assertEqual(self.generate(model)[0], expected)
        self.cache.chmod(0o700)

    def test_a_server_answers_the_same(self):
        answers = []
        for options in ([], ["--weights-cache", self.cache], ["--weights-cache", self.cache, "--verbose"]):
            server = Server(*options)
            self.addCleanup(server.stop)
            request = {"prompt": "The old man", "max_tokens": 8, "seed": 1, "logprobs": 2}
            answer = Client(server.port).ask("POST", "/v1/completions", request).json
            answers.append((answer["choices"], answer["system_fingerprint"]))
            server.stop()
        self.assertIn(MAPPED, "\n".join(server.lines))
        self.assertEqual(answers[1:], [answers[0]] * 2)

    def test_other_commands_take_it_too(self):
        model = self.model()
        self.generate(model)
        done = self.succeed("score", "-m", model, "--weights-cache", self.cache, "--verbose", "--prompt-ids", "5,7")
        self.assertIn(MAPPED, done.stderr)
        done = self.succeed("bench", "-m", model, "--weights-cache", self.cache, "--verbose", "--prompt-tokens", "4",
                            "--output-tokens", "2", "--repetitions", "1")
        self.assertIn(MAPPED, done.stderr)
        done = self.succeed("score", "-m", model, "--verbose", "--prompt-ids", "5,7",
                            env={"PACELINE_WEIGHTS_CACHE": str(self.cache)})
        self.assertIn(MAPPED, done.stderr)

    def test_the_bundled_model_says_the_same(self):
        self.expect_same_twice(BUNDLED)


if __name__ == "__main__":
    unittest.main()
