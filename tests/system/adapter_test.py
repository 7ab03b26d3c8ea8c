"""`paceline adapter`: what it shows, writes and refuses."""
import json
import shutil
import struct
import unittest

from program import ROOT, ProgramTest

ADAPTERS = ROOT / "tests/goldens/adapters"
MODELS = ROOT / "tests/goldens/models"


def tensors_of(path):
    """Each tensor's shape and bytes."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    data = content[8 + length:]
    return {name: (entry["shape"], data[slice(*entry["data_offsets"])]) for name, entry in header.items()}


class AdapterTest(ProgramTest):
    def shown(self, *options):
        return json.loads(self.succeed("adapter", *options, "--json").stdout)

    def test_it_shows_what_an_adapter_holds(self):
        text = self.succeed("adapter", ADAPTERS / "peft_llama").stdout
        self.assertRegex(text, r"\n  format  PEFT\n  base    paceline/llama_plain\n  rank    2, 3, 4\n  size    ")
        self.assertRegex(text, r"\n9 pairs\n")
        self.assertRegex(text, r"\n  layers\.0\.self_attn\.q_proj  +32 x 32  rank 2 +scale 4 +float32 +512 B\n")
        shown = self.shown(ADAPTERS / "mlx_llama", "-m", MODELS / "llama_plain")
        self.assertEqual((shown["format"], shown["max_rank"], len(shown["pairs"])), ("mlx", 3, 4))
        self.assertEqual(shown["pairs"][0], {"module": "layers.1.mlp.down_proj", "out": 32, "in": 64, "rank": 3,
                                             "alpha": 7.5, "scale": 2.5, "dtype": "float32", "bytes": 1152})

    def test_a_gguf_adapter_needs_the_model(self):
        self.assertIn("name the model", self.fail_with(1, "adapter", ADAPTERS / "llama.gguf"))
        shown = self.shown(ADAPTERS / "llama.gguf", "-m", MODELS / "llama_plain")
        self.assertEqual([pair["module"] for pair in shown["pairs"]],
                         ["layers.1.mlp.down_proj", "layers.1.self_attn.k_proj", "layers.1.self_attn.q_proj"])

    def test_converting_there_and_back_changes_nothing(self):
        mlx, peft = self.directory / "mlx", self.directory / "peft"
        source, model = ADAPTERS / "peft_gemma3", MODELS / "gemma3_language_model_prefix"
        said = self.succeed("adapter", source, "-m", model, "--to", "mlx", "-o", mlx).stderr
        self.assertRegex(said, r"mlx: 4 pairs, .* \(from PEFT\)\n$")
        self.succeed("adapter", mlx, "-m", model, "--to", "peft", "-o", peft)
        given = tensors_of(source / "adapter_model.safetensors")
        self.assertTrue(any("vision_tower" in name for name in given))
        self.assertEqual(tensors_of(peft / "adapter_model.safetensors"),
                         {name: tensor for name, tensor in given.items() if "vision_tower" not in name})
        self.assertEqual(self.shown(peft)["digest"], self.shown(source)["digest"])
        config = json.loads((peft / "adapter_config.json").read_text())
        self.assertEqual((config["r"], config["lora_alpha"], config["base_model_name_or_path"]),
                         (2, 6, "paceline/gemma3_language_model_prefix"))
        self.assertIn("language_model.model.layers.0.self_attn.q_proj.lora_a", tensors_of(mlx / "adapters.safetensors"))

    def test_what_cant_be_is_refused(self):
        out = self.directory / "out"
        self.assertIn("give the PATH", self.fail_with(2, "adapter"))
        self.assertIn("--output DIR", self.fail_with(2, "adapter", ADAPTERS / "peft_llama", "--to", "mlx"))
        self.assertIn("--to peft", self.fail_with(2, "adapter", ADAPTERS / "peft_llama", "-o", out))
        self.assertIn("one rank and one scale",
                      self.fail_with(1, "adapter", ADAPTERS / "peft_llama", "--to", "mlx", "-o", out))
        self.assertFalse(out.exists())
        out.mkdir()
        self.assertIn("exists already",
                      self.fail_with(1, "adapter", ADAPTERS / "peft_llama", "--to", "peft", "-o", out))
        self.assertIn("another model?", self.fail_with(1, "adapter", ADAPTERS / "peft_gemma3", "-m", MODELS / "llama_plain"))
        self.assertIn("no adapter", self.fail_with(1, "adapter", MODELS / "llama_plain"))
        dora = self.directory / "dora"
        shutil.copytree(ADAPTERS / "peft_llama", dora)
        config = json.loads((dora / "adapter_config.json").read_text())
        (dora / "adapter_config.json").write_text(json.dumps(config | {"use_dora": True}))
        self.assertIn("adapter_config.json: use_dora: isn't supported", self.fail_with(1, "adapter", dora))


if __name__ == "__main__":
    unittest.main()
