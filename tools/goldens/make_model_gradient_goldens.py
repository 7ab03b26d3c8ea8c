#!/usr/bin/env python3
"""Makes tests/goldens/model_gradients/: losses of whole models and their gradients, by PyTorch's autograd in float64.

    python tools/goldens/make_model_gradient_goldens.py [--out DIR]

Needs torch, transformers and peft of requirements.txt. The models are those of tests/goldens/models, the loss is the mean
cross-entropy of the golden's prompt. full.json has the gradients of all weights of every dense model, once of the weights
as stored and once of the weights rounded to bfloat16; lora.json those of the matrices of tests/goldens/family_adapters.
A gradient is kept as its length and its products with four vectors that any program can compute (see `patterns`). Those of
bfloat16 weights are followed by the length of PyTorch's own error when it computes in bfloat16, as a share of the
gradient's, or the median of these shares in the model where that is more; the others by PyTorch's own error in float32, on
one thread or four.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import statistics
import warnings
from pathlib import Path

import peft
import torch
import transformers

from peft_models import GOLDENS, exact_model, folder_of, load_model

# Those that are trained with LoRA alone.
MIXTURES = re.compile(r"moe|mixtral|gpt_oss|mellum|solar_open|dots1|minimax|flex_olmo")
# Whose learned positions, biases of the head or joined norms have no gradients.
PARTLY_TRAINED = ("gpt2_tied", "gpt_bigcode_tied", "gpt_neo_window", "opt_plain", "gptj_parallel", "phi_parallel",
                  "cohere_head_norms")
LEAST_LENGTH = 3e-3  # as the test has it
NAME = re.compile(r".*?((?:(?:layers|h)\.\d+\.|embed_tokens\.|embed_in\.|word_embeddings\.|embeddings\.|norm\.|norm_f\.|"
                  r"final_layer_norm\.|ln_f\.|lm_head\.).*)")
RENAMED = {"h.": "layers.", "embed_in.": "embed_tokens.", "word_embeddings.": "embed_tokens."}


def patterns(count: int) -> torch.Tensor:
    """[4, count] multiples of 1/32 from -1 to 31/32."""
    i = torch.arange(count)
    return torch.stack([((i * (37 + 2 * k) + (i // 64) * 11 + 5 * k) % 64).double() / 32 - 1 for k in range(4)])


def summary(gradient: torch.Tensor) -> list[float]:
    flat = gradient.double().flatten()
    numbers = [flat.norm(), *(patterns(flat.numel()) @ flat)]
    return [float(f"{number:.9g}") for number in numbers]


def loss_of(model: torch.nn.Module, name: str) -> torch.Tensor:
    ids = torch.tensor(json.loads((folder_of(name) / "golden.json").read_text())["prompt_ids"])
    logits = model(input_ids=ids[None, :-1]).logits[0]
    return torch.nn.functional.cross_entropy(logits.double(), ids[1:])


def canonical(key: str) -> str:
    name = NAME.match(key)[1]
    for old, new in RENAMED.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


def by_name(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {canonical(key).replace(".default.weight", ""): parameter.grad
            for key, parameter in model.named_parameters()
            if parameter.grad is not None and "vision" not in key and "projector" not in key}


def backward(model: torch.nn.Module, name: str) -> float:
    model.eval()
    model.zero_grad(set_to_none=True)
    loss = loss_of(model, name)
    loss.backward()
    return float(f"{loss.item():.9g}")


def golden_of(model: torch.nn.Module, gradients, name: str) -> dict:
    """By a model in float64, with the errors of the same in float32."""
    exact = copy.deepcopy(model).double()
    golden = {"loss": backward(exact, name)}
    true = gradients(exact)
    golden["gradients"] = {key: summary(gradient) for key, gradient in true.items()}
    errors = dict.fromkeys(true, 0.0)
    for threads in (1, 4):
        torch.set_num_threads(threads)
        backward(model, name)
        for key, gradient in gradients(model).items():
            error = (gradient.double() - true[key]).norm() / true[key].norm().clamp_min(LEAST_LENGTH)
            errors[key] = max(errors[key], error.item())
    torch.set_num_threads(1)
    for key, error in errors.items():
        golden["gradients"][key].append(float(f"{error:.3g}"))
    return golden


def add_errors(golden: dict, model: torch.nn.Module, exact: torch.nn.Module, name: str) -> None:
    model.eval()
    loss_of(model, name).backward()
    errors = {}
    for (key, parameter), true in zip(model.named_parameters(), exact.parameters()):
        if parameter.grad is None or canonical(key) not in golden["gradients"]:
            continue
        error = (parameter.grad.double() - true.grad).norm() / true.grad.norm().clamp_min(1e-3)
        errors[canonical(key)] = float(f"{error:.3g}")
    median = statistics.median(errors.values())
    for key, error in errors.items():
        golden["gradients"][key].append(max(error, median))


def full(name: str) -> dict:
    result = {"float32": golden_of(load_model(GOLDENS / "models" / name), by_name, name)}
    rounded = load_model(GOLDENS / "models" / name).bfloat16()
    exact = copy.deepcopy(rounded).double()
    golden = result["bfloat16"] = {"loss": backward(exact, name)}
    golden["gradients"] = {key: summary(gradient) for key, gradient in by_name(exact).items()}
    add_errors(golden, rounded, exact, name)
    return result


def lora(name: str) -> dict:
    model = peft.PeftModel.from_pretrained(exact_model(name), GOLDENS / "family_adapters" / name, is_trainable=True)
    return golden_of(model.float(), by_name, name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=GOLDENS / "model_gradients")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="leaves the others as they are")
    args = parser.parse_args()
    out: Path = args.out
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    transformers.utils.logging.disable_progress_bar()
    out.mkdir(parents=True, exist_ok=True)
    names = sorted(path.parent.name for path in (GOLDENS / "models").glob("*/golden.json"))
    adapters = sorted(path.parent.name for path in (GOLDENS / "family_adapters").glob("*/adapter_config.json")
                      if path.parent.name in names)
    dense = [name for name in names if not MIXTURES.search(name) and name not in PARTLY_TRAINED]
    for file, make, models in (("full.json", full, dense), ("lora.json", lora, adapters)):
        known = json.loads((out / file).read_text()) if args.only else {}
        lines = [f"{json.dumps(name)}: {json.dumps(make(name) if name in (args.only or models) else known[name])}"
                 for name in models if name in (args.only or models) or name in known]
        (out / file).write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
