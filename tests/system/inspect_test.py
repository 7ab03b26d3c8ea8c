"""`paceline inspect`."""
import json
import re
import struct
import unittest

from program import BUNDLED, ROOT, ProgramTest


class InspectTest(ProgramTest):
    def inspect(self, *arguments):
        return json.loads(self.succeed("inspect", "--json", *arguments).stdout)

    def test_configuration_and_tensors_are_the_files(self):
        report = self.inspect("-m", BUNDLED)
        config = json.loads((BUNDLED / "config.json").read_text())
        for ours, theirs in [("family", "model_type"), ("layers", "num_hidden_layers"), ("hidden_size", "hidden_size"),
                             ("heads", "num_attention_heads"), ("kv_heads", "num_key_value_heads"),
                             ("head_dim", "head_dim"), ("vocab_size", "vocab_size"),
                             ("context", "max_position_embeddings"), ("dtype", "dtype")]:
            self.assertEqual(report["config"][ours], config[theirs], ours)
        with open(BUNDLED / "model.safetensors", "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        header.pop("__metadata__", None)
        tensors = {t["name"]: t for t in report["tensors"]}
        self.assertEqual(set(tensors), set(header))
        for name, entry in header.items():
            self.assertEqual(tensors[name]["shape"], entry["shape"])
            self.assertEqual(tensors[name]["bytes"], entry["data_offsets"][1] - entry["data_offsets"][0])
        self.assertEqual(report["parameters"], sum(t["bytes"] for t in report["tensors"]) // 2)

    def test_what_becomes_of_quantised_files_is_said(self):
        model = ROOT / "tests/goldens/quantised/gptq_model"
        self.assertEqual(self.inspect("-m", model)["quantised_files"],
                         "gptq: 2 matrices packed (4 bits in groups of 32), "
                         "1 matrix packed (4 bits in groups of 32, reordered), "
                         "18 matrices packed (4 bits with a scale for each row)")
        self.assertNotIn("quantised_files", self.inspect("-m", BUNDLED))

    def test_memory_grows_with_context_and_batch(self):
        one = self.inspect("-m", BUNDLED, "-c", "512")["memory"]
        self.assertEqual((one["context"], one["sequences"]), (512, 1))
        # layers x (keys, values) x heads x head_dim x bfloat16 x tokens
        self.assertEqual(one["kv_cache_bytes"], 6 * 2 * 2 * 64 * 2 * 512)
        many = self.inspect("-m", BUNDLED, "-c", "512", "--max-num-seqs", "8")["memory"]
        self.assertEqual(many["kv_cache_bytes"], 8 * one["kv_cache_bytes"])
        wide = self.inspect("-m", BUNDLED, "-c", "512", "--dtype", "float32")["memory"]
        self.assertEqual(wide["weight_bytes"], 2 * one["weight_bytes"])
        self.assertEqual(wide["kv_cache_bytes"], 2 * one["kv_cache_bytes"])
        codes = self.inspect("-m", BUNDLED, "-c", "512", "--kv-cache-dtype", "int8")["memory"]
        self.assertEqual(codes["kv_cache_dtype"], "int8")
        # a code for each element, and a float32 scale for each token and head
        self.assertEqual(codes["kv_cache_bytes"], 6 * 2 * 2 * (64 + 4) * 512)
        self.assertEqual(one["total_bytes"], one["weight_bytes"] + one["kv_cache_bytes"] + one["activation_bytes"])

    def test_memory_of_states_is_counted(self):
        hybrid = ROOT / "tests" / "goldens" / "hybrids" / "qwen3_5_text"
        exact = self.inspect("-m", hybrid)["memory"]
        # 3 layers x (4 heads x 8 x 12, padded to 16, and 3 inputs of 80 channels) x float32
        self.assertEqual((exact["state_dtype"], exact["state_bytes"]), ("float32", 3 * (4 * 8 * 16 + 3 * 80) * 4))
        # 16 x (keys of 2 heads and updates of 4, padded to 16; decays of 4; inputs)
        self.assertEqual(exact["open_rows_bytes"], 3 * 16 * (2 * 16 + 4 * 16 + 4 + 80) * 4)
        rounded = self.inspect("-m", hybrid, "--mamba-ssm-cache-dtype", "bf16")["memory"]
        self.assertEqual((rounded["state_dtype"], rounded["state_bytes"]), ("bfloat16", 3 * (4 * 8 * 16 * 2 + 3 * 80 * 4)))
        self.assertEqual(rounded["open_rows_bytes"], exact["open_rows_bytes"])
        self.assertNotIn("state_bytes", self.inspect("-m", BUNDLED)["memory"])
        self.assertRegex(self.succeed("inspect", "-m", hybrid).stdout, r"one state of these .* \(float32\), and .* more while")

    def test_memory_is_what_a_run_takes(self):
        for options in [], ["--kv-cache-dtype", "int8"]:
            need = self.inspect("-m", BUNDLED, "-c", "1024", *options)["memory"]["total_bytes"]
            done = self.succeed("generate", "-m", BUNDLED, "-c", "1024", "--max-num-seqs", "1", "-p", "x" * 900, "-n", "2",
                                "-v", *options)
            value, unit = re.search(r"peak memory ([\d.]+) (\w+)", done.stderr).groups()
            peak = float(value) * {"MiB": 1 << 20, "GiB": 1 << 30}[unit]
            self.assertLess(abs(peak - need), 0.1 * need)

    def test_the_device_is_named(self):
        device = self.inspect("-m", BUNDLED)["device"]
        self.assertGreater(device["memory_bytes"], device["free_bytes"])
        self.assertIn(f"\nDevice\n  {device['name']} ({device['instruction_set']}), ",
                      self.succeed("inspect", "-m", BUNDLED).stdout)
        chosen = json.loads(self.succeed("inspect", "-m", BUNDLED, "--json", env={"PACELINE_CUDA_EMULATION": "1"}).stdout)["device"]
        self.assertEqual((chosen["name"], chosen["note"]),
                         ("emulation", "the GPU computes: --device auto found emulation"))
        emulated = json.loads(self.succeed("inspect", "-m", BUNDLED, "--device", "cuda", "--json",
                                           env={"PACELINE_CUDA_EMULATION": "1"}).stdout)["device"]
        self.assertEqual((emulated["name"], emulated["instruction_set"], emulated["memory_bytes"]),
                         ("emulation", "sm_90", 1 << 30))

    def test_weights_need_not_be_there(self):
        report = self.inspect("-m", self.tiny_model(), "--load-format", "dummy")
        self.assertEqual(report["tensors"], [])
        self.assertEqual(report["config"]["layers"], 2)
        self.assertGreater(report["memory"]["weight_bytes"], 0)

    def test_text_for_people(self):
        text = self.succeed("inspect", "-m", BUNDLED).stdout
        for part in ["Configuration", "qwen3", "Tensors", "embed_tokens.weight", "4099 x 384", "Memory for 1 sequence",
                     "keys and values", "in all"]:
            self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main()
