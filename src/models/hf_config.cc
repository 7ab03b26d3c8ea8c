#include "models/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace paceline {
namespace {

constexpr double kMaxTokens = 1 << 30;  // of contexts and windows
constexpr double kMaxHeads = 65536;
constexpr double kMaxExperts = 4096;
constexpr double kMaxTheta = 1e15;
constexpr double kSmallest = 1e-3;  // of positive factors and caps
constexpr double kLargest = 1e6;

namespace field_table {

using enum ConfigFieldType;

constexpr ConfigField rope_number(std::string_view name, double min,
                                  std::optional<double> otherwise = {}) {
  return {.name = name,
          .type = number,
          .min = min,
          .max = kLargest,
          .otherwise = otherwise,
          .place = FieldPlace::rope};
}

constexpr ConfigField multiplier(std::string_view name, double otherwise) {
  return {.name = name, .type = number, .min = 1e-6, .max = kLargest, .otherwise = otherwise};
}

constexpr auto kFields = std::to_array<ConfigField>({
    {.name = "model_type", .type = word},
    {.name = "text_config", .type = object},
    {.name = "dtype", .type = word},
    {.name = "torch_dtype", .type = word},
    {.name = "vocab_size", .min = 1, .max = 1 << 24},
    {.name = "hidden_size", .min = 1, .max = 1 << 20},
    {.name = "intermediate_size", .min = 1, .max = 1 << 22},
    {.name = "num_hidden_layers", .min = 1, .max = 1024},
    {.name = "num_attention_heads", .min = 1, .max = kMaxHeads},
    {.name = "num_key_value_heads", .min = 1, .max = kMaxHeads},
    {.name = "head_dim", .min = 2, .max = 4096},
    {.name = "global_head_dim", .min = 2, .max = 4096},
    {.name = "num_global_key_value_heads", .min = 1, .max = kMaxHeads},
    {.name = "per_layer_config", .type = object},
    {.name = "attention_k_eq_v", .type = flag},
    {.name = "num_kv_shared_layers", .min = 0, .max = 1024},
    {.name = "use_double_wide_mlp", .type = flag},
    {.name = "altup_num_inputs", .min = 1, .max = 16},
    {.name = "altup_active_idx", .min = 0, .max = 15},
    {.name = "altup_correct_scale", .type = flag},
    {.name = "laurel_rank", .min = 1, .max = 1 << 16},
    {.name = "activation_sparsity_pattern", .type = list},
    {.name = "enable_moe_block", .type = flag},
    {.name = "top_k_experts", .min = 1, .max = kMaxExperts},
    {.name = "hidden_size_per_layer_input", .min = 0, .max = 1 << 16},
    {.name = "vocab_size_per_layer_input", .min = 1, .max = 1 << 24},
    {.name = "max_position_embeddings", .min = 1, .max = kMaxTokens},
    {.name = "rms_norm_eps", .type = number, .min = 0, .max = 1},
    {.name = "layer_norm_eps", .type = number, .min = 0, .max = 1},
    {.name = "norm_epsilon", .type = number, .min = 0, .max = 1},
    {.name = "norm_eps", .type = number, .min = 0, .max = 1},
    {.name = kNormWeightOffsetField, .type = number, .min = 0, .max = 1},
    {.name = kMultipliedWeightsField, .type = flag},
    {.name = kJoinedHeadsField, .type = flag},
    {.name = "hidden_act", .type = word},
    {.name = "hidden_activation", .type = word},
    {.name = "activation_function", .type = word},
    {.name = "tie_word_embeddings", .type = flag},
    {.name = "tie_embedding", .type = flag},
    {.name = "attention_bias", .type = flag},
    {.name = "attention_out_bias", .type = flag},
    {.name = "mlp_bias", .type = flag},
    {.name = "bias", .type = flag},
    {.name = "use_bias", .type = flag},
    {.name = "use_qkv_bias", .type = flag},
    {.name = "qk_layernorm", .type = flag},
    {.name = "use_parallel_residual", .type = flag},
    multiplier("embedding_multiplier", 1),
    multiplier("attention_multiplier", 1),
    multiplier("residual_multiplier", 1),
    multiplier("logits_scaling", 1),
    multiplier("logit_scale", 0.0625),
    {.name = "is_causal", .type = flag},
    {.name = "use_bidirectional_attention", .type = flag},
    {.name = "is_encoder_decoder", .type = flag},
    {.name = "add_cross_attention", .type = flag},
    {.name = "use_sliding_window", .type = flag},
    {.name = "sliding_window", .min = 1, .max = kMaxTokens},
    {.name = "layer_types", .type = list},
    {.name = "layers_block_type", .type = list},
    {.name = "mlp_layer_types", .type = list},
    {.name = "rotary_dim", .min = 2, .max = 4096},
    {.name = "position_embedding_type", .type = word},
    {.name = "type_vocab_size", .min = 0, .max = 1024},
    {.name = "pad_token_id", .min = 0, .max = 1 << 24},
    {.name = "is_decoder", .type = flag},
    {.name = "dim", .min = 1, .max = 1 << 20},
    {.name = "hidden_dim", .min = 1, .max = 1 << 22},
    {.name = "n_heads", .min = 1, .max = kMaxHeads},
    {.name = "n_layers", .min = 1, .max = 1024},
    {.name = "activation", .type = word},
    {.name = "norm_bias", .type = flag},
    {.name = "feed_forward_type", .type = word},
    {.name = "relative_attention_num_buckets", .min = 1, .max = 1 << 16},
    {.name = "relative_attention", .type = flag},
    {.name = "max_relative_positions", .min = -1, .max = 1 << 16},
    {.name = "position_buckets", .min = -1, .max = 1 << 16},
    {.name = "pos_att_type", .type = list},
    {.name = "position_biased_input", .type = flag},
    {.name = "share_att_key", .type = flag},
    {.name = "norm_rel_ebd", .type = word},
    {.name = "conv_kernel_size", .min = 0, .max = 64},
    {.name = "embedding_size", .min = 1, .max = 1 << 20},
    {.name = "local_attention", .min = 1, .max = kMaxTokens},
    {.name = "global_attn_every_n_layers", .min = 1, .max = 1024},
    {.name = "n_embd", .min = 1, .max = 1 << 20},
    {.name = "intermediate_size_mlp", .min = 1, .max = 1 << 22},
    {.name = "moe_layers", .type = list},
    {.name = "interleave_moe_layer_step", .min = 1, .max = 1024},
    {.name = "attention_chunk_size", .min = 1, .max = kMaxTokens},
    {.name = "attn_temperature_tuning", .type = flag},
    {.name = "floor_scale", .min = 1, .max = kMaxTokens},
    {.name = "attn_scale", .type = number, .min = 0, .max = kLargest},
    {.name = "lm_head_bias", .type = flag},
    {.name = "layer_rope_theta", .type = list},
    {.name = "router_jitter_noise", .type = number, .min = 0, .max = kLargest},
    {.name = "n_embed", .min = 1, .max = 1 << 20},
    {.name = "seq_length", .min = 1, .max = kMaxTokens},
    {.name = "d_model", .min = 1, .max = 1 << 20},
    {.name = "max_seq_len", .min = 1, .max = kMaxTokens},
    {.name = "expansion_ratio", .min = 1, .max = 64},
    {.name = "attention_heads", .min = 1, .max = kMaxHeads},
    {.name = "scale_embedding", .type = flag},
    {.name = "attn_config", .type = object},
    {.name = "attn_type", .type = word},
    {.name = "prefix_lm", .type = flag},
    {.name = "qk_ln", .type = flag},
    {.name = "attn_uses_sequence_id", .type = flag},
    {.name = "softmax_scale", .type = number, .min = 1e-6, .max = kLargest},
    {.name = "alibi_bias_max", .type = number, .min = kSmallest, .max = 64},
    {.name = "no_bias", .type = flag},
    {.name = "apply_residual_connection_post_layernorm", .type = flag},
    {.name = "n_inner", .min = 1, .max = 1 << 22},
    {.name = "n_head", .min = 1, .max = kMaxHeads},
    {.name = "n_layer", .min = 1, .max = 1024},
    {.name = "n_positions", .min = 1, .max = kMaxTokens},
    {.name = "max_trained_positions", .min = 1, .max = kMaxTokens},
    {.name = "qkv_proj_bias", .type = flag},
    {.name = "mlp_fc1_bias", .type = flag},
    {.name = "mlp_fc2_bias", .type = flag},
    {.name = "prenorm", .type = flag},
    {.name = "causal", .type = flag},
    {.name = "use_rms_norm", .type = flag},
    {.name = "parallel_block", .type = flag},
    {.name = "rotary_emb_interleaved", .type = flag},
    {.name = "rotary_emb_fraction", .type = number, .min = 0, .max = 1},
    {.name = "rotary_scaling_factor", .type = number, .min = kSmallest, .max = kLargest},
    {.name = "layer_norm_type", .type = word},
    {.name = "logn_attention_scale", .type = flag},
    {.name = "qkv_bias", .type = flag},
    {.name = "num_layers", .min = 1, .max = 1024},
    {.name = "attention_types", .type = list},
    {.name = "window_size", .min = 1, .max = kMaxTokens},
    {.name = "scale_attn_weights", .type = flag},
    {.name = "scale_attn_by_inverse_layer_idx", .type = flag},
    {.name = "alibi", .type = flag},
    {.name = "do_layer_norm_before", .type = flag},
    {.name = "_remove_final_layer_norm", .type = flag},
    {.name = "layer_norm_elementwise_affine", .type = flag},
    {.name = "multi_query", .type = flag},
    {.name = "new_decoder_architecture", .type = flag},
    {.name = "parallel_attn", .type = flag},
    {.name = "alpha", .type = number, .min = kSmallest, .max = kLargest, .place = FieldPlace::rope},
    {.name = "num_ln_in_parallel_attn", .min = 1, .max = 2},
    {.name = "num_kv_heads", .min = 1, .max = kMaxHeads},
    {.name = "ffn_hidden_size", .min = 1, .max = 1 << 22},
    {.name = "ffn_dim", .min = 1, .max = 1 << 22},
    {.name = "word_embed_proj_dim", .min = 1, .max = 1 << 20},
    {.name = "enable_bias", .type = flag},
    {.name = "rotary_emb_base", .type = number, .min = 1, .max = kMaxTheta},
    {.name = "rotary_pct", .type = number, .min = 0, .max = 1},
    {.name = "moe_k", .min = 1, .max = kMaxExperts},
    {.name = "moe_norm_min", .type = number, .min = 0, .max = 1},
    {.name = "moe_num_experts", .min = 1, .max = kMaxExperts},
    {.name = "moe_num_shared_experts", .min = 0, .max = 64},
    {.name = "moe_layer_start_index", .min = 0, .max = 1024},
    {.name = "moe_layer_end_index", .min = -1, .max = 1024},
    {.name = "moe_layer_interval", .min = 1, .max = 1024},
    {.name = "num_experts", .min = 1, .max = kMaxExperts},
    {.name = "num_local_experts", .min = 0, .max = kMaxExperts},
    {.name = "num_experts_per_tok", .min = 1, .max = kMaxExperts},
    {.name = "num_experts_per_token", .min = 1, .max = kMaxExperts},
    {.name = "num_expert_group", .min = 1, .max = kMaxExperts},
    {.name = "moe_renormalize", .type = flag},
    {.name = "moe_router_activation_func", .type = word},
    {.name = "model_max_length", .min = 1, .max = kMaxTokens},
    {.name = "mla_use_nope", .type = flag},
    {.name = "mla_use_output_gate", .type = flag},
    {.name = "use_full_rank_gate", .type = flag},
    {.name = "linear_attn_config", .type = object},
    {.name = "kda_layers", .type = list},
    {.name = "full_attn_layers", .type = list},
    {.name = "short_conv_kernel_size", .min = 2, .max = 8},
    {.name = "linear_head_dim", .min = 1, .max = 4096},
    {.name = "linear_num_heads", .min = 1, .max = 4096},
    {.name = "moe_intermediate_size", .min = 1, .max = 1 << 22},
    {.name = "shared_expert_intermediate_size", .min = 1, .max = 1 << 22},
    {.name = "shared_intermediate_size", .min = 0, .max = 1 << 22},
    {.name = "full_attention_interval", .min = 1, .max = 1024},
    {.name = "linear_conv_kernel_dim", .min = 2, .max = 8},
    {.name = "linear_key_head_dim", .min = 1, .max = 4096},
    {.name = "linear_value_head_dim", .min = 1, .max = 4096},
    {.name = "linear_num_key_heads", .min = 1, .max = 4096},
    {.name = "linear_num_value_heads", .min = 1, .max = 4096},
    {.name = "attn_layer_indices", .type = list},
    {.name = "num_heads", .min = 1, .max = 4096},
    {.name = "state_size", .min = 1, .max = 4096},
    {.name = "expand", .min = 1, .max = 64},
    {.name = "mamba_d_ssm", .min = 1, .max = 1 << 22},
    {.name = "mamba_rms_norm", .type = flag},
    {.name = "mamba_norm_before_gate", .type = flag},
    {.name = "projectors_bias", .type = flag},
    multiplier("lm_head_multiplier", 1),
    multiplier("key_multiplier", 1),
    multiplier("attention_in_multiplier", 1),
    multiplier("attention_out_multiplier", 1),
    multiplier("ssm_in_multiplier", 1),
    multiplier("ssm_out_multiplier", 1),
    {.name = "ssm_multipliers", .type = list},
    {.name = "mlp_multipliers", .type = list},
    {.name = "hybrid_override_pattern", .type = word},
    {.name = "layer_norm_epsilon", .type = number, .min = 0, .max = 1},
    {.name = "mlp_hidden_act", .type = word},
    {.name = "mamba_hidden_act", .type = word},
    {.name = "mamba_num_heads", .min = 1, .max = 4096},
    {.name = "mamba_head_dim", .min = 1, .max = 4096},
    {.name = "n_groups", .min = 1, .max = 4096},
    {.name = "ssm_state_size", .min = 1, .max = 4096},
    {.name = "conv_kernel", .min = 2, .max = 8},
    {.name = "use_conv_bias", .type = flag},
    {.name = "time_step_min", .type = number, .min = 0, .max = kLargest},
    {.name = "moe_shared_expert_intermediate_size", .min = 1, .max = 1 << 22},
    {.name = "moe_latent_size", .min = 1, .max = 1 << 22},
    {.name = "mamba_n_heads", .min = 1, .max = 4096},
    {.name = "mamba_d_head", .min = 1, .max = 4096},
    {.name = "mamba_n_groups", .min = 1, .max = 4096},
    {.name = "mamba_d_state", .min = 1, .max = 4096},
    {.name = "mamba_dt_rank", .min = 1, .max = 1 << 20},
    {.name = "time_step_rank", .min = 1, .max = 1 << 20},
    {.name = "mixer_rms_eps", .type = number, .min = 0, .max = 1},
    {.name = "attn_layer_period", .min = 1, .max = 1 << 20},
    {.name = "attn_layer_offset", .min = 0, .max = 1 << 20},
    {.name = "expert_layer_period", .min = 1, .max = 1 << 20},
    {.name = "expert_layer_offset", .min = 0, .max = 1 << 20},
    {.name = "mamba_d_conv", .min = 2, .max = 8},
    {.name = "mamba_expand", .min = 1, .max = 64},
    {.name = "mamba_conv_bias", .type = flag},
    {.name = "mamba_proj_bias", .type = flag},
    {.name = "time_step_limit", .type = list},
    {.name = "linear_allow_neg_eigval", .type = flag},
    {.name = "conv_L_cache", .min = 2, .max = 8},
    {.name = "conv_bias", .type = flag},
    {.name = "full_attn_idxs", .type = list},
    {.name = "use_sandwich_norm", .type = flag},
    {.name = "use_post_norm", .type = flag},
    {.name = "use_attention_gate", .type = flag},
    {.name = "block_ff_dim", .min = 1, .max = 1 << 22},
    {.name = "block_auto_adjust_ff_dim", .type = flag},
    {.name = "block_ffn_dim_multiplier", .type = number, .min = kSmallest, .max = 1000},
    {.name = "block_multiple_of", .min = 1, .max = 1 << 20},
    {.name = "num_dense_layers", .min = 0, .max = 1024},
    {.name = "use_expert_bias", .type = flag},
    {.name = "norm_topk_prob", .type = flag},
    {.name = "decoder_sparse_step", .min = 1, .max = 1024},
    {.name = "mlp_only_layers", .type = list},
    {.name = "n_routed_experts", .min = 1, .max = kMaxExperts},
    {.name = "n_shared_experts", .min = 0, .max = 64},
    {.name = "n_group", .min = 1, .max = kMaxExperts},
    {.name = "topk_group", .min = 1, .max = kMaxExperts},
    {.name = "first_k_dense_replace", .min = 0, .max = 1024},
    {.name = "moe_layer_freq", .min = 1, .max = 1024},
    {.name = "topk_method", .type = word},
    {.name = "num_shared_experts", .min = 0, .max = 64},
    {.name = "q_lora_rank", .min = 1, .max = 1 << 16},
    {.name = "kv_lora_rank", .min = 1, .max = 4096},
    {.name = "qk_nope_head_dim", .min = 1, .max = 4096},
    {.name = "qk_rope_head_dim", .min = 2, .max = 4096},
    {.name = "v_head_dim", .min = 1, .max = 4096},
    {.name = "rope_interleave", .type = flag},
    multiplier("scale_emb", 12),
    multiplier("scale_depth", 1.4),
    {.name = "dim_model_base", .min = 1, .max = 1 << 20},
    {.name = "num_nextn_predict_layers", .min = 0, .max = 64},
    {.name = "num_mtp_layers", .min = 0, .max = 64},
    {.name = "routed_scaling_factor", .type = number, .min = kSmallest, .max = kLargest},
    {.name = "use_qk_norm", .type = flag},
    {.name = "swiglu_limit", .type = number, .min = kSmallest, .max = kLargest},
    {.name = "swiglu_alpha", .type = number, .min = kSmallest, .max = kLargest},
    {.name = "clip_qkv", .type = number, .min = kSmallest, .max = kLargest},
    {.name = "max_window_layers", .min = 0, .max = 1 << 20, .otherwise = 28},
    {.name = "no_rope_layers", .type = list},
    {.name = "no_rope_layer_interval", .min = 1, .max = 1 << 20, .otherwise = 4},
    {.name = "sliding_window_pattern", .min = 1, .max = 1024},
    {.name = "_sliding_window_pattern", .min = 1, .max = 1024},
    {.name = "query_pre_attn_scalar", .type = number, .min = 1e-6, .max = 1e9, .otherwise = 256},
    {.name = "attn_logit_softcapping", .type = number, .min = kSmallest, .max = kLargest},
    {.name = "final_logit_softcapping", .type = number, .min = kSmallest, .max = kLargest},
    {.name = "partial_rotary_factor",
     .type = number,
     .min = 0,
     .max = 1,
     .place = FieldPlace::either},
    {.name = "rope_theta", .type = number, .min = 1, .max = kMaxTheta, .place = FieldPlace::either},
    {.name = "rope_local_base_freq", .type = number, .min = 1, .max = kMaxTheta},
    {.name = "global_rope_theta", .type = number, .min = 1, .max = kMaxTheta},
    {.name = "local_rope_theta", .type = number, .min = 1, .max = kMaxTheta},
    {.name = "original_max_position_embeddings",
     .min = 1,
     .max = kMaxTokens,
     .place = FieldPlace::either},
    {.name = "rope_parameters", .type = object},
    {.name = "rope_scaling", .type = object},

    {.name = "rope_type", .type = word, .place = FieldPlace::rope},
    {.name = "type", .type = word, .place = FieldPlace::rope},
    rope_number("factor", kSmallest),
    rope_number("low_freq_factor", kSmallest),
    rope_number("high_freq_factor", kSmallest),
    rope_number("attention_factor", kSmallest),
    rope_number("mixed_b", kSmallest),
    rope_number("beta_fast", 0, 32),
    rope_number("beta_slow", 0, 1),
    rope_number("mscale", 0, 0),
    rope_number("short_mscale", kSmallest),
    rope_number("long_mscale", kSmallest),
    rope_number("mscale_all_dim", 0, 0),
    rope_number("llama_4_scaling_beta", 0, 0),
    {.name = "truncate", .type = flag, .place = FieldPlace::rope},
    {.name = "short_factor", .type = list, .place = FieldPlace::rope},
    {.name = "long_factor", .type = list, .place = FieldPlace::rope},
});

}  // namespace field_table

const ConfigField& field_of(std::string_view name) {
  const auto fields = config_fields();
  const auto at = std::ranges::find(fields, name, &ConfigField::name);
  PL_CHECK(at != fields.end(), fmt::format("config field {} isn't in the table", name));
  return *at;
}

NumberRange range_of(const ConfigField& field) { return {.min = field.min, .max = field.max}; }

}  // namespace

std::span<const ConfigField> config_fields() { return field_table::kFields; }

void HfConfig::invalid(std::string_view key, std::string_view what) const {
  throw Error(ErrorCode::invalid, fmt::format("{}: {}", object_.name_of(key), what));
}

void HfConfig::unsupported(std::string_view key, std::string_view what) const {
  throw Error(ErrorCode::unsupported, fmt::format("{}: {}", object_.name_of(key), what));
}

void HfConfig::missing(const ConfigField& field) const {
  const bool is_integer = field.type == ConfigFieldType::integer;
  invalid(field.name,
          fmt::format("missing, expected {}",
                      range_words(is_integer ? "an integer" : "a number", range_of(field))));
}

int64_t HfConfig::integer(std::string_view key, std::optional<int64_t> otherwise) const {
  const ConfigField& field = field_of(key);
  if (const auto found = find(key)) return found->integer(range_of(field));
  if (otherwise) return *otherwise;
  if (field.otherwise) return static_cast<int64_t>(*field.otherwise);
  missing(field);
}

double HfConfig::number(std::string_view key, std::optional<double> otherwise) const {
  const ConfigField& field = field_of(key);
  if (const auto found = find(key)) return found->number(range_of(field));
  if (otherwise) return *otherwise;
  if (field.otherwise) return *field.otherwise;
  missing(field);
}

std::optional<int64_t> HfConfig::integer_or_null(std::string_view key, int64_t otherwise) const {
  if (is_null(key)) return std::nullopt;
  return integer(key, otherwise);
}

std::optional<double> HfConfig::number_or_null(std::string_view key,
                                               std::optional<double> otherwise) const {
  if (!has(key)) return is_null(key) ? std::nullopt : otherwise;
  return number(key);
}

bool HfConfig::boolean(std::string_view key, bool otherwise) const {
  return object_.boolean_or(field_of(key).name, otherwise);
}

std::string HfConfig::string(std::string_view key, std::string_view otherwise) const {
  const auto found = find(field_of(key).name);
  return found ? found->string() : std::string(otherwise);
}

std::optional<std::vector<bool>> read_sliding_layers(const HfConfig& config, int64_t num_layers) {
  constexpr std::string_view kKey = "layer_types";
  const auto found = config.find(kKey);
  if (!found) return std::nullopt;
  const auto types = found->items();
  if (static_cast<int64_t>(types.size()) != num_layers) {
    config.invalid(kKey, fmt::format("{} entries for {} layers", types.size(), num_layers));
  }
  std::vector<bool> sliding;
  for (const JsonCursor& type : types) {
    const std::string& name = type.string();
    if (name != "sliding_attention" && name != "full_attention") {
      type.fail(ErrorCode::unsupported,
                fmt::format("{} isn't supported; full_attention and sliding_attention are",
                            shown_text(name)));
    }
    sliding.push_back(name == "sliding_attention");
  }
  return sliding;
}

Activation read_activation(const HfConfig& config, std::string_view key,
                           std::string_view otherwise) {
  const std::string name = config.string(key, otherwise);
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::gelu_tanh;
  if (name == "gelu") return Activation::gelu_erf;
  if (name == "relu") return Activation::relu;
  config.unsupported(key, fmt::format("{} isn't supported; silu, gelu, gelu_pytorch_tanh and relu "
                                      "are",
                                      shown_text(name)));
}

}  // namespace paceline
