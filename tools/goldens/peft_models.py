"""Models of the goldens with adapters of PEFT."""
import json
from pathlib import Path

import class_fixes  # noqa: F401
import torch
import transformers
from peft.tuners.lora.layer import Linear

SEED = 11
GOLDENS = Path(__file__).resolve().parents[2] / "tests" / "goldens"


def randomise(model: torch.nn.Module, dtype: torch.dtype) -> None:
    """B is zero at first, so an adapter without training would be none."""
    generator = torch.Generator().manual_seed(SEED)
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            drawn = torch.randn(parameter.shape, generator=generator) * 0.1
            parameter.data = drawn.to(dtype)


def adapt_weights_that_are_read() -> None:
    """transformers' layers of Mamba 1 multiply by dt_proj.weight instead of calling dt_proj, so that PEFT adapts it only
    once it is merged. From now on the weight that is read of an adapted module is the merged one."""
    def merged(self: Linear) -> torch.Tensor:
        return self.get_base_layer().weight + self.get_delta_weight("default")
    Linear.weight = property(merged)


def folder_of(name: str) -> Path:
    """Of a golden of any kind."""
    return next(GOLDENS / kind / name for kind in ("models", "latents", "hybrids", "mixed") if (GOLDENS / kind / name).exists())


def load_model(path: Path) -> torch.nn.Module:
    kind = json.loads((path / "config.json").read_text())["architectures"][0]
    return getattr(transformers, kind).from_pretrained(path, dtype=torch.float32)


def exact_model(name: str) -> torch.nn.Module:
    """Of a golden; experts one by one, as their grouped products have no float64."""
    model = load_model(folder_of(name))
    if hasattr(model.config, "num_local_experts") or hasattr(model.config, "num_experts"):
        model.set_experts_implementation("eager")
    return model


def sort_lists(path: Path) -> None:
    """peft writes sets in any order; a golden has one."""
    config = json.loads(path.read_text())
    for key in ("target_modules", "exclude_modules"):
        if isinstance(config[key], list):
            config[key].sort()
    path.write_text(json.dumps(config, indent=2) + "\n")
