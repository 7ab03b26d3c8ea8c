#!/usr/bin/env python3
"""Makes tests/goldens/models/, latents/, hybrids/ and mixed/: tiny checkpoints with logits and greedy tokens of transformers.

    python tools/goldens/make_model_goldens.py [--only NAME ...] [--out DIR]

Needs the versions of requirements.txt. Every golden is rejected, and the next seed tried, unless
 - its greedy tokens are decided by a margin that rounding can't overturn and hold no EOS,
 - its logits are insensitive to the rounding of weights compared with the tests' tolerance,
 - switching any one of its features off misses the logits by 100 times that tolerance,
 - transformers computes the same logits from the saved files, in every spelling of the config.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel
from transformers.integrations import mxfp4

from config_variants import PROVABLE, VARIANTS
from feature_switches import CHOICE_BIASES, is_mixture, without_feature
from class_fixes import attention_of
from cpu_specs import CPU_SPECS
from early_specs import EARLY_SPECS
from gemma_specs import GEMMA3N_SPECS, GEMMA4_SPECS, GEMMA4_VISION
from hybrid_specs import HYBRID_SPECS
from latent_specs import LATENT_SPECS
from mixture_specs import MIXTURE_SPECS
from relative_specs import RELATIVE_SPECS, VL_VISION_SHAPE
from model_specs import DENSE_SPECS, PAD_ID, PIXTRAL_SHAPE, SECOND_EOS_ID, SHAPE, VISION_SHAPE, VOCAB_SIZE, GoldenSpec

PROMPT_LENGTH = 64
TOLERANCE = 1e-4  # of the tests that read these files
MIN_MISS = 100 * TOLERANCE
MIN_MARGIN = 1e-3
MAX_ROUNDING = TOLERANCE / 5
MIN_DISTINCT = 8  # greedy tokens; a loop of two tokens would test little
MAX_BYTES = 300_000
NUM_SEEDS = 100
NORM_STD, BIAS_STD, DECAY_STD = 0.2, 0.3, 1.0
POST_NORMS = ("post_attention_layernorm.weight", "post_feedforward_layernorm.weight")

MODEL_CLASSES: dict[str, type[PreTrainedModel]] = {
    "llama": transformers.LlamaForCausalLM,
    "qwen2": transformers.Qwen2ForCausalLM,
    "qwen3": transformers.Qwen3ForCausalLM,
    "gemma2": transformers.Gemma2ForCausalLM,
    "gemma3_text": transformers.Gemma3ForCausalLM,
    "gemma3": transformers.Gemma3ForConditionalGeneration,
    "gemma3n_text": transformers.Gemma3nForCausalLM,
    "gemma4_text": transformers.Gemma4ForCausalLM,
    "gemma4": transformers.Gemma4ForConditionalGeneration,
    "mistral": transformers.MistralForCausalLM,
    "iquestcoder": transformers.LlamaForCausalLM,
    "internlm3": transformers.LlamaForCausalLM,
    "apertus": transformers.ApertusForCausalLM,
    "seed_oss": transformers.SeedOssForCausalLM,
    "arcee": transformers.ArceeForCausalLM,
    "helium": transformers.HeliumForCausalLM,
    "ernie4_5": transformers.Ernie4_5ForCausalLM,
    "cwm": transformers.CwmForCausalLM,
    "ministral": transformers.MinistralForCausalLM,
    "glm": transformers.GlmForCausalLM,
    "gemma": transformers.GemmaForCausalLM,
    "qwen2_5_vl": transformers.Qwen2_5_VLForConditionalGeneration,
    "qwen3_vl": transformers.Qwen3VLForConditionalGeneration,
    "mellum": transformers.MellumForCausalLM,
    "cohere": transformers.CohereForCausalLM,
    "solar_open": transformers.SolarOpenForCausalLM,
    "dots1": transformers.Dots1ForCausalLM,
    "minimax_m2": transformers.MiniMaxM2ForCausalLM,
    "qwen2_moe": transformers.Qwen2MoeForCausalLM,
    "qwen3_moe": transformers.Qwen3MoeForCausalLM,
    "olmoe": transformers.OlmoeForCausalLM,
    "gpt_oss": transformers.GptOssForCausalLM,
    "glm4_moe": transformers.Glm4MoeForCausalLM,
    "mixtral": transformers.MixtralForCausalLM,
    "smolvlm": transformers.SmolVLMForConditionalGeneration,
    "smollm3": transformers.SmolLM3ForCausalLM,
    "olmo2": transformers.Olmo2ForCausalLM,
    "olmo3": transformers.Olmo3ForCausalLM,
    "granite": transformers.GraniteForCausalLM,
    "granitemoe": transformers.GraniteMoeForCausalLM,
    "granitemoeshared": transformers.GraniteMoeSharedForCausalLM,
    "granitemoehybrid": transformers.GraniteMoeHybridForCausalLM,
    "phi3": transformers.Phi3ForCausalLM,
    "glm4": transformers.Glm4ForCausalLM,
    "exaone4": transformers.Exaone4ForCausalLM,
    "cohere2": transformers.Cohere2ForCausalLM,
    "stablelm": transformers.StableLmForCausalLM,
    "starcoder2": transformers.Starcoder2ForCausalLM,
    "ministral3": transformers.Ministral3ForCausalLM,
    "mistral3": transformers.Mistral3ForConditionalGeneration,
    "qwen3_5_text": transformers.Qwen3_5ForCausalLM,
    "qwen3_5_moe_text": transformers.Qwen3_5MoeForCausalLM,
    "bamba": transformers.BambaForCausalLM,
    "mamba": transformers.MambaForCausalLM,
    "falcon_mamba": transformers.FalconMambaForCausalLM,
    "jamba": transformers.JambaForCausalLM,
    "mamba2": transformers.Mamba2ForCausalLM,
    "falcon_h1": transformers.FalconH1ForCausalLM,
    "nemotron_h": transformers.NemotronHForCausalLM,
    "qwen3_next": transformers.Qwen3NextForCausalLM,
    "olmo_hybrid": transformers.OlmoHybridForCausalLM,
    "lfm2": transformers.Lfm2ForCausalLM,
    "lfm2_moe": transformers.Lfm2MoeForCausalLM,
    "lfm3": transformers.Lfm3ForCausalLM,
    "deepseek_v2": transformers.DeepseekV2ForCausalLM,
    "deepseek_v3": transformers.DeepseekV3ForCausalLM,
    "sarvam_mla": transformers.DeepseekV3ForCausalLM,
    "glm4_moe_lite": transformers.Glm4MoeLiteForCausalLM,
    "youtu": transformers.YoutuForCausalLM,
    "mistral4": transformers.Mistral4ForCausalLM,
    "minicpm3": transformers.MiniCPM3ForCausalLM,
    "kimi_linear": transformers.KimiLinearForCausalLM,
    "gpt2": transformers.GPT2LMHeadModel,
    "gpt_bigcode": transformers.GPTBigCodeForCausalLM,
    "gptj": transformers.GPTJForCausalLM,
    "opt": transformers.OPTForCausalLM,
    "gpt_neox": transformers.GPTNeoXForCausalLM,
    "falcon": transformers.FalconForCausalLM,
    "gpt_neo": transformers.GPTNeoForCausalLM,
    "persimmon": transformers.PersimmonForCausalLM,
    "exaone": transformers.LlamaForCausalLM,
    "jais2": transformers.Jais2ForCausalLM,
    "flex_olmo": transformers.FlexOlmoForCausalLM,
    "vaultgemma": transformers.VaultGemmaForCausalLM,
    "hyperclovax": transformers.HyperCLOVAXForCausalLM,
    "phi": transformers.PhiForCausalLM,
    "nemotron": transformers.NemotronForCausalLM,
    "olmo": transformers.OlmoForCausalLM,
    "hunyuan_v1_dense": transformers.HunYuanDenseV1ForCausalLM,
    "hunyuan_v1_moe": transformers.HunYuanMoEV1ForCausalLM,
    "ernie4_5_moe": transformers.Ernie4_5_MoeForCausalLM,
    "nanochat": transformers.NanoChatForCausalLM,
    "granite_swa": transformers.GraniteSWAForCausalLM,
    "granitemoe_swa": transformers.GraniteMoeSWAForCausalLM,
    "sarvam_moe": transformers.Glm4MoeForCausalLM,
    "exaone_moe": transformers.ExaoneMoeForCausalLM,
    "phimoe": transformers.PhimoeForCausalLM,
    "llama4_text": transformers.Llama4ForCausalLM,
    "bloom": transformers.BloomForCausalLM,
    "mpt": transformers.MptForCausalLM,
    "codegen": transformers.CodeGenForCausalLM,
    "biogpt": transformers.BioGptForCausalLM,
    "xglm": transformers.XGLMForCausalLM,
}


# Whose class is another family's.
CONFIG_CLASSES = {"sarvam_moe": transformers.SarvamMoEConfig, "sarvam_mla": transformers.SarvamMLAConfig, "iquestcoder": transformers.IQuestCoderConfig, "internlm3": transformers.InternLM3Config,
                  "exaone": transformers.ExaoneConfig}


class Rejected(Exception):
    """This seed gives no usable golden."""


@dataclass(frozen=True)
class Golden:
    seed: int
    model: PreTrainedModel
    prompt_ids: list[int]
    greedy_ids: list[int]
    logits: torch.Tensor  # [PROMPT_LENGTH, VOCAB_SIZE]
    misses: dict[str, float]  # feature -> largest logit difference without it


def build_model(spec: GoldenSpec, generator: torch.Generator) -> PreTrainedModel:
    model_class = MODEL_CLASSES[spec.family]
    fields = {**SHAPE, **spec.config}
    if spec.family == "gemma3":
        fields = {"text_config": fields, "vision_config": VISION_SHAPE, "mm_tokens_per_image": 4}
    if spec.family == "gemma4":
        fields = {"text_config": fields, "vision_config": GEMMA4_VISION, "audio_config": None}
    if spec.family == "mistral3":
        fields = {"text_config": fields, "vision_config": PIXTRAL_SHAPE, "image_token_index": PAD_ID,
                  "tie_word_embeddings": fields["tie_word_embeddings"]}
    if spec.family == "smolvlm":
        fields = {"text_config": fields, "vision_config": VISION_SHAPE, "scale_factor": 2,
                  "pad_token_id": PAD_ID}
    if spec.family.endswith("_vl"):
        tied = fields.pop("tie_word_embeddings")
        fields = {"text_config": fields, "vision_config": VL_VISION_SHAPE, "tie_word_embeddings": tied}
    config_class = CONFIG_CLASSES.get(spec.family, model_class.config_class)
    config = config_class(attn_implementation=attention_of(bool(fields.get("alibi"))), **fields)
    if is_mixture(config):
        config._experts_implementation = "eager"
    model = model_class(config).eval()
    randomise(model, spec, generator)
    if spec.mxfp4:
        for name, parameter in expert_matrices(model):
            parameter.data = from_mxfp4(*to_mxfp4(parameter.data))
    if spec.generation:
        model.generation_config.update(**spec.generation)
    return model


def expert_matrices(model: PreTrainedModel) -> list[tuple[str, torch.nn.Parameter]]:
    """[experts, row length, rows] each."""
    return [(name, parameter) for name, parameter in model.named_parameters()
            if name.endswith(("experts.gate_up_proj", "experts.down_proj"))]


def to_mxfp4(matrices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """blocks [experts, rows, blocks, 16] and scales [experts, rows, blocks], both uint8.

    The largest magnitude of a block gets the exponent of 4 (OCP Microscaling Formats 1.0, 6.3).
    """
    numbers = torch.tensor(mxfp4.FP4_VALUES)
    groups = matrices.transpose(1, 2).unflatten(-1, (-1, 32)).float()
    largest = groups.abs().amax(-1).clamp_min(2.0**-120)
    exponents = largest.log2().floor() - 2
    scaled = groups / 2.0**exponents[..., None]
    codes = (scaled[..., None] - numbers).abs().argmin(-1)
    blocks = codes[..., 0::2] | codes[..., 1::2] << 4
    return blocks.to(torch.uint8), (exponents + 127).to(torch.uint8)


def from_mxfp4(blocks: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return mxfp4.convert_moe_packed_tensors(blocks, scales).float()


def pack_experts(model: PreTrainedModel, folder: Path) -> None:
    """Replaces the matrices in the file by blocks and scales, and says so in config.json."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    for name, parameter in expert_matrices(model):
        blocks, scales = to_mxfp4(parameter.data)
        assert torch.equal(from_mxfp4(blocks, scales), parameter.data)
        del tensors[name]
        tensors |= {f"{name}_blocks": blocks.contiguous(), f"{name}_scales": scales.contiguous()}
    save_file(tensors, path, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4"}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def randomise(model: PreTrainedModel, spec: GoldenSpec, generator: torch.Generator) -> None:
    """Norms and biases too: at their usual start values (1 and 0) they could not be missed.

    Norms of Gemma up to 3 multiply by 1 + weight. Its post norms triple what a block adds, or else the
    scaled embedding would dominate the residual stream and the tied head repeat the last token.
    """
    gemma = spec.family.startswith(("gemma", "vaultgemma"))
    zero_centred = (gemma and not spec.family.startswith(("gemma3n", "gemma4"))) or spec.family == "nemotron" or spec.family.startswith(("qwen3_5", "qwen3_next"))
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if gemma and name.endswith(POST_NORMS):
            parameter.data = (2.0 if zero_centred else 3.0) + NORM_STD * noise
        elif name.endswith(("norm.weight", "norm_1.weight", "norm_2.weight", "norm_f.weight", "router.scale", "per_expert_scale")) or (
                ".norms." in name or ".ln_" in name and name.endswith("weight")):
            centre = 0.0 if zero_centred and not name.endswith("linear_attn.norm.weight") else 1.0
            parameter.data = centre + NORM_STD * noise
        elif name.endswith("A_log"):
            parameter.data = DECAY_STD * noise  # rates around 1
        elif name.endswith(".D"):
            parameter.data = 1.0 + BIAS_STD * noise
        elif name.endswith(("bias", "sinks")):
            parameter.data = BIAS_STD * noise
        else:
            parameter.data = spec.weight_std * noise
    for name, buffer in model.named_buffers():
        if name.endswith(CHOICE_BIASES):
            buffer.copy_(BIAS_STD * torch.randn(buffer.shape, generator=generator))
        if name.endswith("layer_scalar"):
            buffer.copy_(1.0 + NORM_STD * torch.randn(buffer.shape, generator=generator))
    model.tie_weights()


@torch.no_grad()
def logits_of(model: PreTrainedModel, ids: list[int]) -> torch.Tensor:  # [len(ids), vocab]
    return model(torch.tensor([ids]), use_cache=False).logits[0]


def greedy_continuation(model: PreTrainedModel, prompt_ids: list[int], num_greedy: int) -> list[int]:
    """Recomputes everything at each step, without a cache."""
    ids = list(prompt_ids)
    for _ in range(num_greedy):
        best = logits_of(model, ids)[-1].topk(2)
        if best.values[0] - best.values[1] <= MIN_MARGIN:
            raise Rejected(f"margin at token {len(ids)}")
        ids.append(int(best.indices[0]))
    greedy_ids = ids[len(prompt_ids):]
    if {PAD_ID, *range(SECOND_EOS_ID + 1)} & set(greedy_ids):
        raise Rejected("greedy tokens hold a special token")
    if len(set(greedy_ids)) < min(MIN_DISTINCT, num_greedy):
        raise Rejected("greedy tokens repeat")
    return greedy_ids


def largest_difference(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).abs().max())


def check_rounding(model: PreTrainedModel, golden: torch.Tensor, prompt_ids: list[int]) -> None:
    """Changes every weight by about its last bit; the logits must change little."""
    generator = torch.Generator().manual_seed(0)
    exact = {name: value.clone() for name, value in model.state_dict().items()}
    for parameter in model.parameters():
        parameter.data *= 1 + 2**-23 * torch.randn(parameter.shape, generator=generator)
    change = largest_difference(logits_of(model, prompt_ids), golden)
    model.load_state_dict(exact)
    if change > MAX_ROUNDING:
        raise Rejected(f"rounding of weights changes logits by {change:.1e}")


def feature_misses(
    spec: GoldenSpec, model: PreTrainedModel, golden: torch.Tensor, prompt_ids: list[int]
) -> dict[str, float]:
    misses = {}
    for feature in spec.features:
        changed = without_feature(model, spec.family, feature)
        misses[feature] = largest_difference(logits_of(changed, prompt_ids), golden)
        if misses[feature] <= MIN_MISS:
            raise Rejected(f"{feature} changes logits by {misses[feature]:.1e} only")
    return misses


def try_seed(spec: GoldenSpec, seed: int) -> Golden:
    generator = torch.Generator().manual_seed(seed)
    model = build_model(spec, generator)
    first_plain_id = SECOND_EOS_ID + 1
    prompt_ids = torch.randint(
        first_plain_id, spec.config.get("vocab_size", VOCAB_SIZE), (PROMPT_LENGTH,), generator=generator).tolist()
    logits = logits_of(model, prompt_ids)
    greedy_ids = greedy_continuation(model, prompt_ids, spec.num_greedy)
    check_rounding(model, logits, prompt_ids)
    misses = feature_misses(spec, model, logits, prompt_ids)
    return Golden(seed, model, prompt_ids, greedy_ids, logits, misses)


def find_golden(spec: GoldenSpec) -> Golden:
    for seed in range(NUM_SEEDS):
        try:
            return try_seed(spec, seed)
        except Rejected as reason:
            print(f"  {spec.name}: seed {seed}: {reason}")
    raise SystemExit(f"{spec.name}: no usable seed below {NUM_SEEDS}")


def write_json(path: Path, fields: dict[str, Any]) -> None:
    """One line a field."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def rename_weights(folder: Path, renames: tuple[tuple[str, str], ...]) -> None:
    def renamed(name: str) -> str:
        for old, new in renames:
            if name.startswith(old):
                return new + name.removeprefix(old)
        raise ValueError(f"{folder.name}: no new name for {name}")

    path = folder / "model.safetensors"
    tensors = {renamed(name): tensor for name, tensor in load_file(path).items()}
    save_file(tensors, path, metadata={"format": "pt"})


def write_golden(spec: GoldenSpec, golden: Golden, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    golden.model.save_pretrained(folder, max_shard_size=spec.shard_size,
                                 save_original_format=not spec.stacked_experts)
    if spec.mxfp4:
        pack_experts(golden.model, folder)
    if spec.weight_renames:
        rename_weights(folder, spec.weight_renames)
    config = json.loads((folder / "config.json").read_text())
    for variant in spec.variants:
        text = json.dumps(VARIANTS[variant](spec, config), indent=2)
        (folder / f"config.{variant}.json").write_text(text + "\n")
    save_file({"logits": golden.logits.contiguous()}, folder / "golden.safetensors")
    write_json(folder / "golden.json", {
        "family": spec.family,
        "features": list(spec.features),
        "config_variants": [f"config.{variant}.json" for variant in spec.variants],
        "prompt_ids": golden.prompt_ids,
        "greedy_ids": golden.greedy_ids,
    })
    for path in folder.iterdir():
        path.chmod(0o644)  # safetensors writes 0600


def check_files(spec: GoldenSpec, golden: Golden, folder: Path) -> None:
    """transformers itself must compute the golden logits from every spelling."""
    num_bytes = sum(path.stat().st_size for path in folder.iterdir())
    if num_bytes > MAX_BYTES:
        raise SystemExit(f"{spec.name}: {num_bytes} bytes, allowed are {MAX_BYTES}")
    if spec.mxfp4:  # transformers would compute in bfloat16; pack_experts() has compared the values
        return
    provable = [f"config.{variant}.json" for variant in spec.variants if variant in PROVABLE]
    for config_name in ("config.json", *provable):
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(folder, copy, dirs_exist_ok=True)
            shutil.copy(folder / config_name, Path(copy) / "config.json")
            options = {"experts_implementation": "eager"} if is_mixture(golden.model.config) else {}
            if spec.family in CONFIG_CLASSES:
                options["config"] = CONFIG_CLASSES[spec.family].from_pretrained(copy)
            model = MODEL_CLASSES[spec.family].from_pretrained(
                copy, attn_implementation=attention_of(bool(spec.config.get("alibi"))), **options)
            logits = logits_of(model.eval(), golden.prompt_ids)
        if not torch.equal(logits, golden.logits):
            difference = largest_difference(logits, golden.logits)
            raise SystemExit(f"{spec.name}/{config_name}: reloaded logits differ by {difference}")


def record_line(spec: GoldenSpec, golden: Golden, folder: Path) -> str:
    num_bytes = sum(path.stat().st_size for path in folder.iterdir())
    misses = ", ".join(f"{name} {miss:.3g}" for name, miss in golden.misses.items()) or "-"
    spread = float(golden.logits.std())
    return f"| {spec.name} | {golden.seed} | {num_bytes // 1000} | {spread:.2f} | {misses} |"


def write_readme(out: Path, records: list[str]) -> None:
    (out / "README.md").write_text(f"""\
# Model goldens

Made by `tools/goldens/make_model_goldens.py` with torch {torch.__version__.split("+")[0]} and
transformers {transformers.__version__}, float32, eager attention, one thread. A folder is a model
directory and
- `golden.json`: `family`, `features`, `config_variants`, `prompt_ids` ({PROMPT_LENGTH} of them) and
  `greedy_ids` (32, or none), the most likely continuation of the prompt;
- `golden.safetensors`: `logits` [{PROMPT_LENGTH}, vocab_size] over the prompt.

A config variant describes the same model: `config.v4.json` is the spelling of transformers 4, from
which transformers computes the same bits; `config.no_*.json` leave a field out that the weights
give away; `config.tied_flag.json` claims a tied head beside a separate one in the file.

The last column is the largest change of a logit when that feature alone is switched off; the tests
allow {TOLERANCE:g}.

| golden | seed | kB | std of logits | without the feature |
| --- | --- | --- | --- | --- |
""" + "\n".join(records) + "\n")


def parse_args() -> argparse.Namespace:
    default_out = Path(__file__).resolve().parents[2] / "tests" / "goldens"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=default_out)
    parser.add_argument("--only", nargs="*", metavar="NAME", help="leaves README.md as it is")
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for kind, specs in (("models", DENSE_SPECS + MIXTURE_SPECS + RELATIVE_SPECS + EARLY_SPECS), ("latents", LATENT_SPECS),
                        ("hybrids", HYBRID_SPECS), ("mixed", GEMMA4_SPECS + GEMMA3N_SPECS + CPU_SPECS)):
        records = []
        for spec in specs:
            if args.only and spec.name not in args.only:
                continue
            golden = find_golden(spec)
            folder = args.out / kind / spec.name
            write_golden(spec, golden, folder)
            check_files(spec, golden, folder)
            records.append(record_line(spec, golden, folder))
            print(records[-1])
        if not args.only:
            write_readme(args.out / kind, records)


if __name__ == "__main__":
    main()
