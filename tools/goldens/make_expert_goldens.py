#!/usr/bin/env python3
"""Makes the goldens of trained and adapted experts of mixtures, by PEFT and PyTorch.

    python tools/goldens/make_expert_goldens.py

Needs peft, torch, transformers and safetensors of requirements.txt. It writes under tests/goldens:

expert_adapters/NAME_stacked is an adapter with `target_parameters`, as PEFT saves it for transformers 5; NAME_single one
with modules of single experts, as PEFT saved it for transformers 4, which PEFT converts when it reads it; NAME_routers one
with routers and gates of shared experts, where PEFT has them among `all-linear`, or by name. All are in float16. logits/model.safetensors has the logits that PEFT's models compute in float32 for the last rows of the prompt.

model_gradients/experts.json has losses and gradients as make_model_gradient_goldens.py describes them, in float64: `full`
of all weights, `lora` of the stacked adapters. Those of a stack are given expert by expert.

train/NAME is a run of 50 steps with LoRA on attention and experts, as make_train_goldens.py makes them; that of
qwen3_moe_tied also from weights rounded to bfloat16, with the errors of autocast, but routers in float32. (Of the others
autocast moves even the first loss by more than 1e-2.)
"""
from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import peft
import torch
import transformers
from safetensors.torch import save_file

from make_model_gradient_goldens import NAME, golden_of
from make_train_goldens import write_run
from peft_models import GOLDENS, SEED, exact_model, folder_of, randomise, sort_lists

STACKED = ["glm4_moe_plain_stacked", "gpt_oss_plain", "granitemoe_bias", "mixtral_plain", "olmoe_plain", "qwen2_moe_sparse_step",
           "qwen3_moe_tied"]
UNTRAINED = ["gemma4_experts"]
SINGLE = ["mixtral_plain", "olmoe_plain", "qwen3_moe_tied"]
ROUTERS = {
    "gpt_oss_plain": {"target_modules": ["q_proj"], "target_parameters": ["router.weight"]},
    "granitemoe_bias": {"target_modules": ["q_proj"], "target_parameters": ["router.weight"]},
    **{name: {"target_modules": "all-linear"} for name in ("mixtral_plain", "qwen2_moe_sparse_step", "qwen3_moe_tied")}}
FULL = ["granitemoeshared_tied_stacked", "mixtral_plain", "olmoe_plain", "qwen2_moe_sparse_step", "qwen3_moe_tied"]
# Rates in float32, and in bfloat16 of those that are trained so. At 5e-3 PyTorch's own losses of gpt_oss_plain in float32
# and float64 come to differ by 4e-4, at 2e-3 by 4e-6.
RUNS = {"gpt_oss_plain": (2e-3, None), "olmoe_plain": (5e-3, None), "qwen3_moe_tied": (5e-3, 1e-3)}
ATTENTION = ["q_proj", "o_proj"]
LAST_ROWS = 2


def prompt(name: str) -> torch.Tensor:
    return torch.tensor([json.loads((folder_of(name) / "golden.json").read_text())["prompt_ids"]])


def logits_of(model: torch.nn.Module, name: str) -> torch.Tensor:
    model.eval()
    for parameter in model.parameters():
        parameter.data = parameter.data.float()
    with torch.no_grad():
        logits = model(input_ids=prompt(name)).logits[0, -LAST_ROWS:].float().contiguous()
    print(f"{name}: logits up to {logits.abs().max():.3f}")
    return logits


def stacked_adapter(name: str, out: Path) -> torch.Tensor:
    block = "block_sparse_moe." if name.startswith("granitemoe") else "" if name.startswith("gemma4") else "mlp."
    return saved_adapter(name, out, peft.LoraConfig(
        task_type="CAUSAL_LM", r=2, lora_alpha=3, target_modules=ATTENTION,
        target_parameters=[f"{block}experts.gate_up_proj", f"{block}experts.down_proj"],
        rank_pattern={r".*\.experts\.down_proj": 1}, alpha_pattern={r"layers\.1\..*experts\.gate_up_proj": 5}))


def router_adapter(name: str, out: Path) -> torch.Tensor:
    logits = saved_adapter(name, out, peft.LoraConfig(task_type="CAUSAL_LM", r=1, lora_alpha=2, **ROUTERS[name]))
    path = out / "adapter_config.json"
    config = json.loads(path.read_text())
    config["target_parameters"] = sorted(config["target_parameters"] or []) or None
    path.write_text(json.dumps(config, indent=2) + "\n")
    return logits


def saved_adapter(name: str, out: Path, config: peft.LoraConfig) -> torch.Tensor:
    model = peft.get_peft_model(exact_model(name), config)
    randomise(model, torch.float16)
    model.peft_config["default"].base_model_name_or_path = f"paceline/{name}"
    model.save_pretrained(out, save_embedding_layers=False)
    (out / "README.md").unlink(missing_ok=True)
    sort_lists(out / "adapter_config.json")
    return logits_of(model, name)


def single_adapter(name: str, out: Path) -> torch.Tensor:
    """The files of transformers 4, from the base's modules of then."""
    sparse = name.startswith("mixtral")
    experts, projections = ("block_sparse_moe.experts", ["w1", "w2", "w3"]) if sparse else (
        "mlp.experts", ["gate_proj", "down_proj", "up_proj"])
    base = json.loads((GOLDENS / "models" / name / "config.json").read_text())
    hidden = base["hidden_size"]
    width = base.get("moe_intermediate_size", base["intermediate_size"])
    count = base.get("num_local_experts") or base["num_experts"]
    generator = torch.Generator().manual_seed(SEED)
    tensors = {}
    for layer in set(range(base["num_hidden_layers"])) - set(base.get("mlp_only_layers") or []):
        for expert in range(count):
            for projection in projections:
                inputs, outputs = (width, hidden) if projection in ("w2", "down_proj") else (hidden, width)
                module = f"base_model.model.model.layers.{layer}.{experts}.{expert}.{projection}"
                for side, shape in (("A", (1, inputs)), ("B", (outputs, 1))):
                    tensors[f"{module}.lora_{side}.weight"] = (
                        torch.randn(shape, generator=generator) * 0.1).to(torch.float16)
    out.mkdir(parents=True)
    save_file(tensors, out / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {"base_model_name_or_path": f"paceline/{name}", "bias": "none", "lora_alpha": 3, "lora_dropout": 0.0,
              "peft_type": "LORA", "r": 1, "target_modules": sorted(projections), "task_type": "CAUSAL_LM"}
    (out / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
    return logits_of(peft.PeftModel.from_pretrained(exact_model(name), out), name)


def adapters(out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    (out / "logits").mkdir(parents=True)
    logits = {f"{name}_stacked": stacked_adapter(name, out / f"{name}_stacked") for name in STACKED + UNTRAINED}
    logits |= {f"{name}_single": single_adapter(name, out / f"{name}_single") for name in SINGLE}
    logits |= {f"{name}_routers": router_adapter(name, out / f"{name}_routers") for name in ROUTERS}
    save_file(logits, out / "logits" / "model.safetensors")
    for path in out.glob("*/*.safetensors"):
        path.chmod(0o644)


def full_gradients(model: torch.nn.Module) -> dict:
    """By the names of the modules of single experts."""
    found = {}
    for key, parameter in model.named_parameters():
        name = NAME.match(key)[1].replace("block_sparse_moe.", "mlp.")
        experts, _, projection = name.rpartition(".")
        if projection not in ("gate_up_proj", "down_proj") or parameter.dim() != 3:
            found[name] = parameter.grad
            continue
        for expert, gradient in enumerate(parameter.grad):
            halves = {"gate_proj": 0, "up_proj": 1} if projection == "gate_up_proj" else {"down_proj": 0}
            for (part, index), half in zip(halves.items(), gradient.chunk(len(halves))):
                found[f"{experts}.{expert}.{part}.weight"] = half
    return found


def lora_gradients(model: torch.nn.Module) -> dict:
    found = {}
    for key, parameter in model.named_parameters():
        if parameter.grad is None:
            continue
        module, _, side = NAME.match(key)[1].replace(".default.weight", "").rpartition(".")
        wrapper = model.get_submodule(key[:key.index(".lora_")])
        if not isinstance(wrapper, peft.tuners.lora.layer.ParamWrapper):
            found[f"{module}.{side}"] = parameter.grad
            continue
        experts = module.replace(".base_layer", "").replace("block_sparse_moe", "mlp")
        count = wrapper.num_experts
        stack = (parameter.grad.reshape(count, -1, parameter.shape[1]) if side == "lora_A" else
                 parameter.grad.reshape(parameter.shape[0], -1, count).permute(2, 0, 1))
        if getattr(wrapper.get_base_layer(), "is_concatenated", True) is False and (
                side == "lora_B" and wrapper.parameter_name == "gate_up_proj"):
            stack = torch.cat((stack[:, ::2], stack[:, 1::2]), dim=1)  # gpt-oss's rows of gate and up in turn
        for expert, gradient in enumerate(stack):
            found[f"{experts}.{expert}.{wrapper.parameter_name}.{side}"] = gradient
    return found


def adapted(name: str) -> torch.nn.Module:
    path = GOLDENS / "expert_adapters" / f"{name}_stacked"
    return peft.PeftModel.from_pretrained(exact_model(name), path, is_trainable=True).float()


def gradients() -> None:
    full = {name: golden_of(exact_model(name), full_gradients, name) for name in FULL}
    lora = {f"{name}_stacked": golden_of(adapted(name), lora_gradients, name) for name in STACKED}
    lines = [f'"full": {json.dumps(full)}', f'"lora": {json.dumps(lora)}']
    (GOLDENS / "model_gradients" / "experts.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def keep_routers_exact(model: torch.nn.Module) -> None:
    """Autocast rounds the routers' products, so that near ties choose other experts; training here doesn't."""
    for name, module in model.named_modules():
        if not name.endswith(".mlp.gate"):
            continue

        def forward(hidden, plain=module.forward):
            with torch.autocast("cpu", enabled=False):
                return plain(hidden.float())

        module.forward = forward


def run(name: str, rate: float, bfloat16_rate: float | None) -> None:
    torch.manual_seed(0)
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=ATTENTION, lora_dropout=0.0, task_type="CAUSAL_LM",
                             target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"])
    model = peft.get_peft_model(exact_model(name), config)
    out = GOLDENS / "train" / name
    shutil.rmtree(out, ignore_errors=True)
    model.peft_config["default"].base_model_name_or_path = name
    model.save_pretrained(out)
    (out / "README.md").unlink(missing_ok=True)
    sort_lists(out / "adapter_config.json")
    if bfloat16_rate is not None:
        keep_routers_exact(model)
    write_run(out, model, rate, bfloat16_rate)


def main() -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    transformers.utils.logging.disable_progress_bar()
    adapters(GOLDENS / "expert_adapters")
    gradients()
    for name, rates in RUNS.items():
        run(name, *rates)


if __name__ == "__main__":
    main()
