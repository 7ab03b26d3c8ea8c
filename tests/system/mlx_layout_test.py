"""Hybrids as mlx-lm lays out their files (Model.sanitize of its qwen3_5, qwen3_5_moe, lfm2 and lfm2_moe)."""
import json
import struct
import unittest

from gguf_files import floats, halves, read_safetensors, write_safetensors
from program import ROOT, ProgramTest, lines

HYBRIDS = ROOT / "tests/goldens/hybrids"
SUMS = (".input_layernorm.weight", ".post_attention_layernorm.weight", "model.norm.weight", ".q_norm.weight",
        ".k_norm.weight")
NUMBERED = {".w1.": ".gate_proj.", ".w2.": ".down_proj.", ".w3.": ".up_proj."}


def stack_experts(tensors):
    """One tensor for each projection of a layer's experts, under switch_mlp."""
    out, parts = {}, {}
    for name, (dtype, shape, content) in tensors.items():
        block, _, rest = name.partition(".experts.")
        if not rest:
            out[name] = (dtype, shape, content)
        elif rest == "gate_up_proj":
            for projection, half in zip(("gate_proj", "up_proj"), halves(content, shape[0] * shape[1], shape[1])):
                out[f"{block}.switch_mlp.{projection}.weight"] = (dtype, [shape[0], shape[1] // 2, shape[2]], half)
        elif rest == "down_proj":
            out[f"{block}.switch_mlp.down_proj.weight"] = (dtype, shape, content)
        else:
            expert, projection = rest.split(".", 1)
            parts.setdefault(f"{block}.switch_mlp.{projection}", {})[int(expert)] = (dtype, shape, content)
    for name, experts in parts.items():
        dtype, shape, _ = experts[0]
        out[name] = (dtype, [len(experts), *shape], b"".join(experts[i][2] for i in range(len(experts))))
    return out


def sanitized(tensors, family):
    """Taps last but one; of Qwen 3.5 the sums 1 + w of norms, and all under language_model."""
    out = {}
    for name, (dtype, shape, content) in tensors.items():
        if name.endswith(("conv1d.weight", "conv.conv.weight")):
            shape = [shape[0], shape[2], 1]
        if family.startswith("qwen3_5") and name.endswith(SUMS):
            content = struct.pack(f"<{shape[0]}f", *(value + 1.0 for value in floats(content, dtype)))
        if family == "lfm2_moe":
            for old, new in NUMBERED.items():
                name = name.replace(old, new)
        if family.startswith("qwen3_5"):
            name = f"language_model.{name}"
        out[name] = (dtype, shape, content)
    return stack_experts(out)


class MlxLayoutTest(ProgramTest):
    def scores(self, model, ids):
        return self.answers("score", "-m", model, "--kv-cache-dtype", "float32", stdin=lines({"ids": ids}))[0]

    def as_mlx(self, golden):
        config = json.loads((golden / "config.json").read_text())
        family = config["model_type"]
        folder = self.directory / f"{golden.name}-mlx"
        folder.mkdir()
        write_safetensors(folder / "model.safetensors", sanitized(read_safetensors(golden), family))
        if family.startswith("qwen3_5"):
            config = {"model_type": family.removesuffix("_text"), "text_config": config,
                      "tie_word_embeddings": config["tie_word_embeddings"]}
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def test_goldens_have_the_bits_of_transformers_layout_plain_and_quantised(self):
        for golden in sorted(HYBRIDS.iterdir()):
            if not golden.name.startswith(("qwen3_5", "lfm2")):
                continue
            with self.subTest(golden.name):
                ids = json.loads((golden / "golden.json").read_text())["prompt_ids"]
                mlx = self.as_mlx(golden)
                self.assertEqual(self.scores(mlx, ids), self.scores(golden, ids))
                packed = []
                for model in (golden, mlx):
                    packed.append(self.directory / f"{model.name}-q4")
                    self.succeed("quantize", "-m", model, "-o", packed[-1], "--bits", "4", "--group-size", "32")
                self.assertEqual(self.scores(packed[1], ids), self.scores(packed[0], ids))


if __name__ == "__main__":
    unittest.main()
