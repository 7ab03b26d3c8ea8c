#!/usr/bin/env python3
"""Makes tests/goldens/model_gradients/hybrids.json: losses and gradients of models whose layers have states.

    python tools/goldens/make_hybrid_gradient_goldens.py

Needs torch, transformers and peft of requirements.txt. As make_model_gradient_goldens.py describes it, in float64: `lora`
of the matrices of tests/goldens/family_adapters, `full` of all weights of the models of tests/goldens/hybrids that choose
no experts with a bias. transformers computes states and gated norms in float32 whatever the model's type; here these are
in float64, too.
"""
from __future__ import annotations

import contextlib
import json
import warnings

import peft
import torch
import transformers

from make_expert_goldens import full_gradients
from make_model_gradient_goldens import by_name, golden_of
from peft_models import GOLDENS, adapt_weights_that_are_read, exact_model


@contextlib.contextmanager
def float32_is_float64():
    """Within a model in float64, what asks for float32 gets float64."""
    names = ("to", "float", "type")
    plain = {name: getattr(torch.Tensor, name) for name in names}

    def exact(value):
        return torch.float64 if value is torch.float32 else value

    def replaced(name):
        def call(self, *args, **kwargs):
            if self.dtype is not torch.float64:
                return plain[name](self, *args, **kwargs)
            if name == "float":
                return self
            return plain[name](self, *map(exact, args), **{key: exact(value) for key, value in kwargs.items()})
        return call

    for name in names:
        setattr(torch.Tensor, name, replaced(name))
    try:
        yield
    finally:
        for name in names:
            setattr(torch.Tensor, name, plain[name])


# Its gradient of dt_proj's pair is a hundredth of its terms: float32 computations differ from each other by 3e-5 of it.
ILL_CONDITIONED = {"falcon_mamba_norms"}


def count_errors_of_scans(gradients: dict) -> None:
    """A scan rounds its state at every row, and the gradients of a model read all of them. Which gradients of a model
    that consists of scans this hits most differs between float32 computations by chance: PyTorch's error of each is the
    largest of the model's.
    """
    if any(".x_proj." in path for path in gradients):
        largest = max(numbers[-1] for numbers in gradients.values())
        for numbers in gradients.values():
            numbers[-1] = largest


def exactly(name: str, model: torch.nn.Module, gradients) -> dict:
    # A model in float32 is computed as ever: nothing of it is in float64 but the loss.
    with float32_is_float64():
        golden = golden_of(model, gradients, name)
    count_errors_of_scans(golden["gradients"])
    print(f"{name}: loss {golden['loss']}, {len(golden['gradients'])} gradients, PyTorch's largest error "
          f"{max(numbers[-1] for numbers in golden['gradients'].values()):.1e}", flush=True)
    return golden


def lora(name: str) -> dict:
    model = peft.PeftModel.from_pretrained(exact_model(name), GOLDENS / "family_adapters" / name, is_trainable=True)
    return exactly(name, model.float(), by_name)


def main() -> None:
    torch.set_num_threads(1)
    adapt_weights_that_are_read()
    warnings.filterwarnings("ignore")
    transformers.utils.logging.disable_progress_bar()
    models, choosing = [], []
    for path in sorted((GOLDENS / "hybrids").iterdir()):
        text = (path / "golden.json").read_text()
        (choosing if "choice_bias" in json.loads(text)["features"] else models).append(path.name)
    adapted = [name for name in models + choosing
               if (GOLDENS / "family_adapters" / name).exists() and name not in ILL_CONDITIONED]
    parts = {"full": {name: exactly(name, exact_model(name), full_gradients) for name in models},
             "lora": {name: lora(name) for name in sorted(adapted)}}
    lines = [f'"{part}": {{\n' + ",\n".join(f"{json.dumps(name)}: {json.dumps(golden)}" for name, golden in made.items()) + "}"
             for part, made in parts.items()]
    (GOLDENS / "model_gradients" / "hybrids.json").write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
