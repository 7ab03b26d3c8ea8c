// The groups of GgufArchitecture that gguf_architecture.cc finds them in, and names that several
// groups have.
#pragma once

#include <array>
#include <span>

#include "models/gguf_architecture.h"

namespace paceline {

// Keys and names are from gguf-py's constants.py and tensor_mapping.py, defaults from llama.cpp's
// loading of each architecture's hyperparameters.
//
// Layers of attention and MLPs as Llama's.
std::span<const GgufArchitecture> gguf_dense_architectures();
// Mixtures of experts, and latent attention.
std::span<const GgufArchitecture> gguf_mixture_architectures();
// Some or all layers have states.
std::span<const GgufArchitecture> gguf_state_architectures();
// Decoders from before Llama, and their kin.
std::span<const GgufArchitecture> gguf_early_architectures();

inline constexpr std::array<GgufNamePair, 4> kGraniteFields = {{
    {"embedding_scale", "embedding_multiplier"},
    {"attention.scale", "attention_multiplier"},
    {"residual_scale", "residual_multiplier"},
    {"logit_scale", "logits_scaling"},
}};
inline constexpr std::array<GgufNamePair, 1> kGraniteMoeSizes = {{
    {"expert_shared_feed_forward_length", "shared_intermediate_size"},
}};
inline constexpr std::array<GgufNamePair, 1> kGlmMoeFields = {{
    {"expert_weights_scale", "routed_scaling_factor"},
}};
inline constexpr std::array<GgufNamePair, 2> kCohere2Fields = {{
    {"attention.layer_norm_epsilon", "layer_norm_eps"},
    {"logit_scale", "logit_scale"},
}};
inline constexpr std::array<GgufNamePair, 1> kStableLmFields = {{
    {"attention.layer_norm_epsilon", "layer_norm_eps"},
}};
// Newer files of DeepSeek have kv_b_proj as two tensors of three dimensions.
inline constexpr std::array<GgufNamePair, 11> kLatentTensors = {{
    {"attn_q_a", "self_attn.q_a_proj"},
    {"attn_q_a_norm", "self_attn.q_a_layernorm"},
    {"attn_q_b", "self_attn.q_b_proj"},
    {"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
    {"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
    {"attn_kv_b", "self_attn.kv_b_proj"},
    {"attn_k_b", "self_attn.k_b_proj"},
    {"attn_v_b", "self_attn.v_b_proj"},
    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "mlp.shared_experts.down_proj"},
}};

}  // namespace paceline
