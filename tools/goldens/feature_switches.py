"""How to switch one feature of a model off, to prove that a golden depends on it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel

WIDE_WINDOW = 4096  # longer than every prompt
FRESH_HEAD_SEED = 2**31  # unlike every seed that makes a checkpoint


def _unchanged(_: Any) -> None:
    pass


@dataclass(frozen=True)
class Switch:
    """Edits of the text config before, and of the model after the weights are loaded."""

    config: Callable[[PreTrainedConfig], None] = _unchanged
    model: Callable[[PreTrainedModel], None] = _unchanged


def _plain_rope(config: PreTrainedConfig) -> None:
    parameters = config.rope_parameters
    target = parameters.get("full_attention", parameters)
    theta = target["rope_theta"]
    target.clear()
    target.update(rope_type="default", rope_theta=theta)


def _wide_window(config: PreTrainedConfig) -> None:
    config.sliding_window = WIDE_WINDOW


def _no_attention_cap(config: PreTrainedConfig) -> None:
    config.attn_logit_softcapping = None


def _no_final_cap(config: PreTrainedConfig) -> None:
    config.final_logit_softcapping = None


def _scale_of_head_dim(config: PreTrainedConfig) -> None:
    config.query_pre_attn_scalar = config.head_dim


def _global_theta_everywhere(config: PreTrainedConfig) -> None:
    parameters = config.rope_parameters
    parameters["sliding_attention"]["rope_theta"] = parameters["full_attention"]["rope_theta"]


def _without_modules(*names: str) -> Callable[[PreTrainedModel], None]:
    def edit(model: PreTrainedModel) -> None:
        for module in list(model.get_decoder().modules()):
            for name in names:
                if hasattr(module, name):
                    setattr(module, name, torch.nn.Identity())

    return edit


def _zero_attention_bias(model: PreTrainedModel) -> None:
    for name, parameter in model.named_parameters():
        if "self_attn" in name and name.endswith(".bias"):
            parameter.data.zero_()


def _unit_embedding_scale(model: PreTrainedModel) -> None:
    model.get_decoder().embed_tokens.embed_scale.fill_(1.0)


def _fresh_head(model: PreTrainedModel) -> None:
    generator = torch.Generator().manual_seed(FRESH_HEAD_SEED)
    weight = model.lm_head.weight
    fresh = torch.randn(weight.shape, generator=generator) * weight.std()
    model.lm_head.weight = torch.nn.Parameter(fresh)


SWITCHES: dict[str, Switch] = {
    "rope_scaling": Switch(config=_plain_rope),
    "attention_soft_cap": Switch(config=_no_attention_cap),
    "final_soft_cap": Switch(config=_no_final_cap),
    "window": Switch(config=_wide_window),
    "qk_norm": Switch(model=_without_modules("q_norm", "k_norm")),
    "attention_bias": Switch(model=_zero_attention_bias),
    "embedding_scale": Switch(model=_unit_embedding_scale),
    "local_rope_theta": Switch(config=_global_theta_everywhere),
    "attention_scale": Switch(config=_scale_of_head_dim),
    "tied_head": Switch(model=_fresh_head),
}


def _post_norms(family: str) -> Switch:
    if not family.startswith("gemma"):
        raise ValueError(f"post_norms: family {family} has none")
    return Switch(model=_without_modules("post_attention_layernorm", "post_feedforward_layernorm"))


def without_feature(model: PreTrainedModel, family: str, feature: str) -> PreTrainedModel:
    """A copy of `model` with the same weights and `feature` switched off."""
    switch = _post_norms(family) if feature == "post_norms" else SWITCHES[feature]
    config = copy.deepcopy(model.config)
    switch.config(config.get_text_config())
    config._attn_implementation = "eager"
    changed = type(model)(config).eval()
    changed.load_state_dict(model.state_dict())
    switch.model(changed)
    return changed
