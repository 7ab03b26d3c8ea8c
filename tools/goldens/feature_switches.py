"""How to switch one feature of a model off, to prove that a golden depends on it."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from transformers import PreTrainedConfig, PreTrainedModel
from class_fixes import attention_of
from transformers.models.phi3.modeling_phi3 import apply_rotary_pos_emb as rotate_halves

WIDE_WINDOW = 4096  # longer than every prompt
CHOICE_BIASES = ("e_score_correction_bias", "feed_forward.expert_bias")  # buffers
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
    kept = {key: target[key] for key in ("rope_theta", "llama_4_scaling_beta", "original_max_position_embeddings")
            if key in target and (key == "rope_theta" or "llama_4_scaling_beta" in target)}
    target.clear()
    target.update(rope_type="default", **kept)


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


def _every_layer_rotates(config: PreTrainedConfig) -> None:
    config.no_rope_layers = [1] * config.num_hidden_layers
    config.position_embedding_type = "rope"


def _whole_head_rotates(config: PreTrainedConfig) -> None:
    config.rope_parameters["partial_rotary_factor"] = 1.0


def _short_factors_everywhere(config: PreTrainedConfig) -> None:
    config.rope_parameters["long_factor"] = config.rope_parameters["short_factor"]


def _queries_stay(config: PreTrainedConfig) -> None:
    config.rope_parameters["llama_4_scaling_beta"] = 0.0


def _unit_field(name: str) -> Callable[[PreTrainedConfig], None]:
    def edit(config: PreTrainedConfig) -> None:
        setattr(config, name, 1.0)

    return edit


def _usual_attention_multiplier(config: PreTrainedConfig) -> None:
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    config.attention_multiplier = head_dim**-0.5


def _rotating_attention(model: PreTrainedModel) -> None:
    """Layers without a window rotate, too."""
    for layer in model.get_decoder().layers:
        attention = layer.self_attn
        if model.config.model_type == "exaone4":
            attention.sliding_window, attention.is_sliding = None, False
        elif attention.sliding_window is None:  # the mask bounds what a layer sees, not this number
            attention.sliding_window = WIDE_WINDOW


def _halves(model: PreTrainedModel) -> None:
    module, forward = sys.modules[type(model).__module__], model.forward

    def patched(*args: Any, **kwargs: Any) -> Any:
        with mock.patch.object(module, "apply_rotary_pos_emb", rotate_halves):
            return forward(*args, **kwargs)

    model.forward = patched


def _one_after_the_other(model: PreTrainedModel) -> None:
    def forward_of(layer: torch.nn.Module) -> Callable[..., torch.Tensor]:
        def forward(x: torch.Tensor, **kwargs: Any) -> torch.Tensor:
            x = x + layer.self_attn(hidden_states=layer.input_layernorm(x), **kwargs)[0]
            return x + layer.mlp(layer.input_layernorm(x))

        return forward

    for layer in model.get_decoder().layers:
        layer.forward = forward_of(layer)


def _rms_norms(model: PreTrainedModel) -> None:
    for module in list(model.get_decoder().modules()):
        for name, norm in list(module.named_children()):
            if type(norm).__name__ not in ("LayerNorm", "CohereLayerNorm", "Cohere2LayerNorm"):
                continue
            eps = norm.eps if hasattr(norm, "eps") else norm.variance_epsilon
            rms = torch.nn.RMSNorm(norm.weight.shape[0], eps=eps)
            rms.weight = norm.weight
            setattr(module, name, rms)


def _zero_biases(*parts: str) -> Callable[[PreTrainedModel], None]:
    def edit(model: PreTrainedModel) -> None:
        for name, parameter in model.named_parameters():
            if name.endswith(".bias") and any(part in name for part in parts):
                parameter.data.zero_()

    return edit


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


def _fewer_experts(config: PreTrainedConfig) -> None:
    config.num_experts_per_tok -= 1


def _fewer_gemma_experts(config: PreTrainedConfig) -> None:
    config.top_k_experts -= 1


def _no_sparsity(config: PreTrainedConfig) -> None:
    config.activation_sparsity_pattern = [0.0] * config.num_hidden_layers


def _corrected_as_it_is(config: PreTrainedConfig) -> None:
    config.altup_correct_scale = False


def _other_expert_norm(config: PreTrainedConfig) -> None:
    config.norm_topk_prob = not config.norm_topk_prob


def _unit_expert_scale(config: PreTrainedConfig) -> None:
    config.routed_scaling_factor = 1.0


def _one_expert_group(config: PreTrainedConfig) -> None:
    config.n_group = config.topk_group = 1


def _zero_choice_bias(model: PreTrainedModel) -> None:
    for name, buffer in model.named_buffers():
        if name.endswith(CHOICE_BIASES):
            buffer.zero_()


def _ones(*parts: str) -> Callable[[PreTrainedModel], None]:
    def edit(model: PreTrainedModel) -> None:
        for name, tensor in model.state_dict().items():
            if any(part in name for part in parts):
                tensor.fill_(1.0)

    return edit


def _last_tap_alone(model: PreTrainedModel) -> None:
    for name, parameter in model.named_parameters():
        if name.endswith(("conv.conv.weight", "conv1d.weight")):
            parameter.data[..., :-1] = 0


def _unit_multipliers(config: PreTrainedConfig) -> None:
    for name in ("key_multiplier", "attention_in_multiplier", "attention_out_multiplier", "ssm_in_multiplier",
                 "ssm_out_multiplier"):
        setattr(config, name, 1.0)
    config.ssm_multipliers = [1.0] * 5
    config.mlp_multipliers = [1.0] * 2


def _unlimited_steps(config: PreTrainedConfig) -> None:
    config.time_step_limit = (0.0, float("inf"))


def _positive_eigenvalues(config: PreTrainedConfig) -> None:
    config.linear_allow_neg_eigval = False


def _default_rope(config: PreTrainedConfig) -> None:
    config.rope_parameters = {"rope_type": "default", "rope_theta": 10_000.0}


def _no_score_scale(config: PreTrainedConfig) -> None:
    config.rope_parameters["mscale"] = config.rope_parameters["mscale_all_dim"] = 0.0


def _other_pairs(config: PreTrainedConfig) -> None:
    config.rope_interleave = not config.rope_interleave


def _usual_depth(config: PreTrainedConfig) -> None:
    config.scale_depth = config.num_hidden_layers**0.5


def _greedy_choice(config: PreTrainedConfig) -> None:
    config.topk_method = "greedy"


def _base_of_hidden(config: PreTrainedConfig) -> None:
    config.dim_model_base = config.hidden_size


def _open_gates(config: PreTrainedConfig) -> None:
    config.use_attention_gate = False


def _no_norms_behind(config: PreTrainedConfig) -> None:
    config.use_sandwich_norm = False


def _whole_head_has_frequencies(config: PreTrainedConfig) -> None:
    config.rope_parameters["full_attention"]["partial_rotary_factor"] = 1.0


def _no_clip(config: PreTrainedConfig) -> None:
    getattr(config, "attn_config", config).clip_qkv = None


def _usual_softmax_scale(config: PreTrainedConfig) -> None:
    config.attn_config.softmax_scale = None


def _unscaled(config: PreTrainedConfig) -> None:
    config.scale_embedding = False


def _whole_context(config: PreTrainedConfig) -> None:
    config.attention_chunk_size = WIDE_WINDOW


def _no_norms_of_heads(config: PreTrainedConfig) -> None:
    config.use_qk_norm = False


def _no_temperature(config: PreTrainedConfig) -> None:
    config.attn_temperature_tuning = False


def _one_theta(config: PreTrainedConfig) -> None:
    config.layer_rope_theta = [10_000.0] * config.num_hidden_layers


def _no_jitter(config: PreTrainedConfig) -> None:
    config.router_jitter_noise = 1e-6


def _short_scale_everywhere(config: PreTrainedConfig) -> None:
    config.rope_parameters["long_mscale"] = config.rope_parameters["short_mscale"]


def _rotations(config: PreTrainedConfig) -> None:
    config.alibi = False


def _equal_distances(model: PreTrainedModel) -> None:
    """Positions add nothing to scores."""
    module, forward = sys.modules[type(model).__module__], model.forward
    name = "_get_alibi_slopes" if hasattr(module, "_get_alibi_slopes") else "build_mpt_alibi_tensor"
    build = getattr(module, name)

    def patched(*args: Any, **kwargs: Any) -> Any:
        with mock.patch.object(module, name, lambda *own: 0 * build(*own)):
            return forward(*args, **kwargs)

    model.forward = patched


def _no_sinks(model: PreTrainedModel) -> None:
    for name, parameter in model.named_parameters():
        if name.endswith("sinks"):
            parameter.data.fill_(-torch.inf)


def _plain_swiglu(model: PreTrainedModel) -> None:
    """silu(gate) * up, without clamps."""
    for module in model.modules():
        if hasattr(module, "_apply_gate"):
            module._apply_gate = lambda x: torch.nn.functional.silu(x[..., ::2]) * x[..., 1::2]


def _zero_weights(*parts: str) -> Callable[[PreTrainedModel], None]:
    def edit(model: PreTrainedModel) -> None:
        for name, parameter in model.named_parameters():
            if any(part in name for part in parts):
                parameter.data.zero_()

    return edit


SWITCHES: dict[str, Switch] = {
    "rope_scaling": Switch(config=_plain_rope),
    "attention_soft_cap": Switch(config=_no_attention_cap),
    "final_soft_cap": Switch(config=_no_final_cap),
    "window": Switch(config=_wide_window),
    "qk_norm": Switch(model=_without_modules("q_norm", "k_norm", "q_layernorm", "k_layernorm")),
    "norms_behind": Switch(model=_without_modules("post_self_attn_layernorm", "post_mlp_layernorm")),
    "partial_rotary": Switch(config=_whole_head_rotates),
    "long_factors": Switch(config=_short_factors_everywhere),
    "query_growth": Switch(config=_queries_stay),
    "residual_scale": Switch(config=_unit_field("residual_multiplier")),
    "rope_pairs": Switch(model=_halves),
    "parallel_block": Switch(model=_one_after_the_other),
    "layer_norm": Switch(model=_rms_norms),
    "norm_bias": Switch(model=_zero_biases("norm")),
    "mlp_bias": Switch(model=_zero_biases("mlp")),
    "attention_bias": Switch(model=_zero_attention_bias),
    "embedding_scale": Switch(model=_unit_embedding_scale),
    "local_rope_theta": Switch(config=_global_theta_everywhere),
    "attention_scale": Switch(config=_scale_of_head_dim),
    "tied_head": Switch(model=_fresh_head),
    "expert_choice": Switch(config=_fewer_experts),
    "expert_norm": Switch(config=_other_expert_norm),
    "shared_expert": Switch(model=_zero_weights("shared_expert.down_proj", "shared_experts.down_proj",
                                                  "shared_mlp.output_linear")),
    "attention_sinks": Switch(model=_no_sinks),
    "expert_bias": Switch(model=_zero_weights("gate_up_proj_bias", "down_proj_bias")),
    "router_bias": Switch(model=_zero_weights("router.bias")),
    "clamped_activation": Switch(model=_plain_swiglu),
    "expert_scale": Switch(config=_unit_expert_scale),
    "expert_groups": Switch(config=_one_expert_group),
    "choice_bias": Switch(model=_zero_choice_bias),
    "convolution": Switch(model=_last_tap_alone),
    "channel_decay": Switch(model=_zero_weights("f_b_proj")),
    "output_gates": Switch(model=_zero_weights("g_b_proj")),
    "negative_eigenvalues": Switch(config=_positive_eigenvalues),
    "convolution_bias": Switch(model=_zero_biases(".conv.", ".conv1d.")),
    "multipliers": Switch(config=_unit_multipliers),
    "own_value": Switch(model=_zero_weights(".D")),
    "step_bias": Switch(model=_zero_weights(".dt_bias", ".dt_proj.bias")),
    "step_norms": Switch(model=_without_modules("dt_layernorm", "b_layernorm", "c_layernorm")),
    "step_limit": Switch(config=_unlimited_steps),
    "state_bias": Switch(model=_zero_biases("mamba.in_proj", "mamba.out_proj")),
    "latent_norms": Switch(model=_without_modules("q_a_layernorm", "kv_a_layernorm")),
    "score_scale": Switch(config=_no_score_scale),
    "shared_gate": Switch(model=_zero_weights("shared_expert_gate")),
    "gate_cutoffs": Switch(config=_no_sparsity),
    "corrected_scale": Switch(config=_corrected_as_it_is),
    "value_norm": Switch(model=_without_modules("v_norm")),
    "layer_scalars": Switch(model=_ones("layer_scalar")),
    "layer_inputs": Switch(model=_zero_weights("per_layer_projection.weight")),
    "expert_scales": Switch(model=_ones("per_expert_scale")),
    "clip": Switch(config=_no_clip),
    "chunks": Switch(config=_whole_context),
    "expert_jitter": Switch(config=_no_jitter),
    "long_scale": Switch(config=_short_scale_everywhere),
    "alibi": Switch(model=_equal_distances),
    "embedding_norm": Switch(model=_without_modules("word_embeddings_layernorm")),
}


# Where a family has a way of its own.
OF_FAMILY: dict[tuple[str, str], Switch] = {
    **{(family, "rope_pairs"): Switch(config=_other_pairs)
       for family in ("deepseek_v3", "glm4_moe_lite", "youtu", "mistral4")},
    ("deepseek_v2", "expert_groups"): Switch(config=_greedy_choice),
    ("gemma4_text", "expert_choice"): Switch(config=_fewer_gemma_experts),
    ("minicpm3", "residual_scale"): Switch(config=_usual_depth),
    ("minicpm3", "logits_scale"): Switch(config=_base_of_hidden),
    ("cohere", "logits_scale"): Switch(config=_unit_field("logit_scale")),
    ("hyperclovax", "logits_scale"): Switch(config=_unit_field("logits_scaling")),
    ("cohere2", "logits_scale"): Switch(config=_unit_field("logit_scale")),
    ("biogpt", "embedding_scale"): Switch(config=_unscaled),
    ("nanochat", "qk_norm"): Switch(model=_without_modules("q_norm", "k_norm")),
    ("granite_swa", "layer_thetas"): Switch(config=_one_theta),
    ("llama4_text", "qk_norm"): Switch(config=_no_norms_of_heads),
    ("llama4_text", "query_growth"): Switch(config=_no_temperature),
    ("llama4_text", "no_rope"): Switch(config=_every_layer_rotates),
    ("falcon", "alibi"): Switch(config=_rotations),
    ("mpt", "attention_scale"): Switch(config=_usual_softmax_scale),
    ("smollm3", "no_rope"): Switch(config=_every_layer_rotates),
    ("lfm3", "head_gates"): Switch(config=_open_gates),
    ("lfm3", "norms_behind"): Switch(config=_no_norms_behind),
    ("lfm3", "partial_rotary"): Switch(config=_whole_head_has_frequencies),
    ("olmo_hybrid", "no_rope"): Switch(config=_default_rope),
    ("granitemoehybrid", "no_rope"): Switch(config=_every_layer_rotates),
    ("exaone4", "no_rope"): Switch(model=_rotating_attention),
    ("cohere2", "no_rope"): Switch(model=_rotating_attention),
}

OF_GRANITE: dict[str, Switch] = {
    "embedding_scale": Switch(config=_unit_field("embedding_multiplier")),
    "attention_scale": Switch(config=_usual_attention_multiplier),
    "logits_scale": Switch(config=_unit_field("logits_scaling")),
}


def _post_norms(family: str) -> Switch:
    if not family.startswith(("gemma", "olmo", "exaone4")):
        raise ValueError(f"post_norms: family {family} has none")
    return Switch(model=_without_modules("post_attention_layernorm", "post_feedforward_layernorm"))


def _switch(family: str, feature: str) -> Switch:
    if (family, feature) in OF_FAMILY:
        return OF_FAMILY[family, feature]
    if family.startswith("granite") and feature in OF_GRANITE:
        return OF_GRANITE[feature]
    return _post_norms(family) if feature == "post_norms" else SWITCHES[feature]


def is_mixture(config: PreTrainedConfig) -> bool:
    text = config.get_text_config()
    return hasattr(text, "num_experts_per_tok") or bool(getattr(text, "enable_moe_block", False))


def without_feature(model: PreTrainedModel, family: str, feature: str) -> PreTrainedModel:
    """A copy of `model` with the same weights and `feature` switched off."""
    switch = _switch(family, feature)
    config = copy.deepcopy(model.config)
    switch.config(config.get_text_config())
    config._attn_implementation = attention_of(bool(getattr(config, "alibi", False)))
    if is_mixture(config):
        config._experts_implementation = "eager"
    changed = type(model)(config).eval()
    changed.load_state_dict(model.state_dict(), strict=family != "lfm3")
    switch.model(changed)
    return changed
