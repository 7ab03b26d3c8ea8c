#include "models/field_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace paceline {
namespace {

namespace rule_table {

using enum ConfigFieldUse;

constexpr std::string_view kCrossAttention =
    "there is no cross-attention, so a decoder after an encoder would give wrong results";

constexpr auto kRules = std::to_array<FieldRule>({
    // Sizes and the type.
    {.name = "dtype"},
    {.name = "vocab_size"},
    {.name = "hidden_size"},
    {.name = "intermediate_size"},
    {.name = "num_hidden_layers"},
    {.name = "num_attention_heads"},
    {.name = "num_key_value_heads"},
    {.name = "head_dim"},
    {.name = "max_position_embeddings"},
    {.name = "per_layer_config"},
    {.name = "attention_k_eq_v"},
    {.name = "num_kv_shared_layers"},
    {.name = "use_double_wide_mlp"},
    {.name = "hidden_size_per_layer_input"},
    {.name = "altup_num_inputs"},
    {.name = "altup_active_idx"},
    {.name = "altup_correct_scale"},
    {.name = "altup_coef_clip", .use = harmless},  // of coefficients in training
    {.name = "laurel_rank"},
    {.name = "activation_sparsity_pattern"},
    {.name = "vocab_size_per_layer_input"},
    // The computation.
    {.name = "rms_norm_eps"},
    {.name = "layer_norm_eps"},
    {.name = "norm_epsilon"},
    {.name = "norm_eps"},
    {.name = "hidden_act"},
    {.name = "hidden_act", .use = harmless, .family = "gpt_oss"},  // its activation is fixed
    {.name = "hidden_activation"},
    {.name = "tie_word_embeddings"},
    {.name = "tie_word_embeddings", .use = harmless, .family = "bert"},  // encoders have no head
    {.name = "tie_word_embeddings", .use = harmless, .family = "roberta"},
    {.name = "tie_word_embeddings", .use = harmless, .family = "xlm-roberta"},
    {.name = "tie_word_embeddings", .use = harmless, .family = "camembert"},
    {.name = "tie_word_embeddings", .use = harmless, .family = "distilbert"},
    {.name = "tie_word_embeddings", .use = harmless, .family = "modernbert"},
    {.name = "tie_word_embeddings", .use = harmless, .family = "nomic_bert"},
    {.name = "tie_word_embeddings", .use = harmless, .family = "gte"},
    {.name = "tie_word_embeddings", .use = harmless, .family = "eurobert"},
    {.name = "attention_bias"},
    {.name = "attention_out_bias"},
    {.name = "mlp_bias"},
    {.name = "bias"},
    {.name = "use_bias"},
    {.name = "use_qkv_bias"},
    {.name = "qk_layernorm"},
    {.name = "use_parallel_residual"},
    {.name = "embedding_multiplier"},
    {.name = "attention_multiplier"},
    {.name = "residual_multiplier"},
    {.name = "logits_scaling"},
    {.name = "logit_scale"},
    {.name = "original_max_position_embeddings"},
    {.name = "no_rope_layers"},
    {.name = "no_rope_layer_interval"},
    {.name = "sliding_window_pattern"},
    {.name = "rope_parameters"},
    {.name = "use_sliding_window"},
    {.name = "sliding_window"},
    {.name = "max_window_layers"},
    {.name = "layer_types"},
    {.name = "full_attention_interval"},
    {.name = "linear_conv_kernel_dim"},
    {.name = "linear_key_head_dim"},
    {.name = "linear_value_head_dim"},
    {.name = "linear_num_key_heads"},
    {.name = "linear_num_value_heads"},
    {.name = "linear_allow_neg_eigval"},
    {.name = "linear_attn_config"},
    {.name = "linear_head_dim"},
    {.name = "linear_num_heads"},
    {.name = "mla_use_nope",
     .use = refused,
     .family = "kimi_linear",
     .inert = true,
     .reason = "latent attention has no rope in this family"},
    {.name = "moe_router_activation_func"},
    {.name = "use_grouped_topk", .use = harmless},  // one group is none
    {.name = "model_max_length"},
    {.name = "num_experts_per_token"},
    {.name = "num_expert_group"},
    {.name = "moe_renormalize"},
    {.name = "head_dim", .use = harmless, .family = "kimi_linear"},
    {.name = "rope_theta", .use = harmless, .family = "kimi_linear"},
    {.name = "rope_scaling", .use = harmless, .family = "kimi_linear"},
    {.name = "num_key_value_heads", .use = harmless, .family = "kimi_linear"},
    {.name = "conv_L_cache"},
    {.name = "conv_bias"},
    {.name = "full_attn_idxs"},
    {.name = "use_sandwich_norm"},
    {.name = "use_attention_gate"},
    {.name = "block_auto_adjust_ff_dim"},
    {.name = "block_ffn_dim_multiplier"},
    {.name = "block_multiple_of"},
    {.name = "position_embedding_type"},
    {.name = "type_vocab_size"},
    {.name = "is_decoder"},
    {.name = "dim"},
    {.name = "hidden_dim"},
    {.name = "n_heads"},
    {.name = "n_layers"},
    {.name = "activation"},
    {.name = "sinusoidal_pos_embds", .use = harmless},  // of initial values
    {.name = "local_attention"},
    {.name = "norm_bias"},
    {.name = "query_pre_attn_scalar"},
    {.name = "attn_logit_softcapping"},
    {.name = "attn_logit_softcapping", .use = harmless, .family = "gemma3_text"},
    {.name = "final_logit_softcapping"},
    // Mixtures of experts.
    {.name = "num_experts"},
    {.name = "num_local_experts"},
    {.name = "n_routed_experts"},
    {.name = "num_experts_per_tok"},
    {.name = "enable_moe_block"},
    {.name = "top_k_experts"},
    {.name = "moe_intermediate_size"},
    {.name = "shared_expert_intermediate_size"},
    {.name = "shared_intermediate_size"},
    {.name = "n_shared_experts"},
    {.name = "decoder_sparse_step"},
    {.name = "mlp_only_layers"},
    {.name = "first_k_dense_replace"},
    {.name = "num_dense_layers"},
    {.name = "use_expert_bias"},
    {.name = "norm_topk_prob"},
    {.name = "routed_scaling_factor"},
    {.name = "n_group"},
    {.name = "topk_method"},
    {.name = "norm_topk_prob", .use = harmless, .family = "deepseek_v2"},  // as in transformers
    {.name = "moe_layer_freq"},
    {.name = "q_lora_rank"},
    {.name = "kv_lora_rank"},
    {.name = "qk_nope_head_dim"},
    {.name = "qk_rope_head_dim"},
    {.name = "v_head_dim"},
    {.name = "rope_interleave"},
    {.name = "scale_emb"},
    {.name = "scale_depth"},
    {.name = "dim_model_base"},
    {.name = "mlp_bias",
     .use = refused,
     .family = "deepseek_v2",
     .reason = "experts have no biases in this family"},
    // Latent attention has one head of keys, of qk_rope_head_dim and kv_lora_rank.
    {.name = "num_key_value_heads", .use = harmless, .family = "deepseek_v2"},
    {.name = "num_key_value_heads", .use = harmless, .family = "deepseek_v3"},
    {.name = "num_key_value_heads", .use = harmless, .family = "sarvam_mla"},
    {.name = "num_key_value_heads", .use = harmless, .family = "glm4_moe_lite"},
    {.name = "num_key_value_heads", .use = harmless, .family = "youtu"},
    {.name = "num_key_value_heads", .use = harmless, .family = "mistral4"},
    {.name = "num_key_value_heads", .use = harmless, .family = "minicpm3"},
    {.name = "head_dim", .use = harmless, .family = "deepseek_v2"},
    {.name = "head_dim", .use = harmless, .family = "minicpm3"},
    {.name = "embedding_initializer_range", .use = harmless},
    {.name = "topk_group"},
    {.name = "qkv_bias"},
    {.name = "clip_qkv"},
    {.name = "use_qk_norm"},
    {.name = "swiglu_limit"},
    {.name = "swiglu_alpha"},
    {.name = "num_mtp_layers"},
    {.name = "num_mtp_layers", .use = harmless, .family = "mellum"},
    {.name = "attn_layer_indices"},
    {.name = "num_heads"},
    {.name = "state_size"},
    {.name = "expand"},
    {.name = "time_step_min", .use = harmless, .family = "mamba2"},  // of initial values
    {.name = "time_step_min", .use = harmless, .family = "mamba"},
    {.name = "time_step_min", .use = harmless, .family = "falcon_mamba"},
    {.name = "time_step_scale", .use = harmless},
    {.name = "time_step_init_scheme", .use = harmless},
    {.name = "time_step_rank", .use = harmless, .family = "mamba2"},
    {.name = "time_step_rank"},
    {.name = "mixer_rms_eps"},
    {.name = "mamba_dt_rank"},
    {.name = "attn_layer_period"},
    {.name = "attn_layer_offset"},
    {.name = "expert_layer_period"},
    {.name = "expert_layer_offset"},
    {.name = "use_mambapy", .use = harmless},
    {.name = "use_associative_scan", .use = harmless},
    {.name = "mamba_d_ssm"},
    {.name = "mamba_expand", .use = harmless, .family = "falcon_h1"},  // beside mamba_d_ssm
    {.name = "mamba_rms_norm"},
    {.name = "mamba_norm_before_gate"},
    {.name = "projectors_bias"},
    {.name = "lm_head_multiplier"},
    {.name = "key_multiplier"},
    {.name = "attention_in_multiplier"},
    {.name = "attention_out_multiplier"},
    {.name = "ssm_in_multiplier"},
    {.name = "ssm_out_multiplier"},
    {.name = "ssm_multipliers"},
    {.name = "mlp_multipliers"},
    {.name = "hybrid_override_pattern"},
    {.name = "layers_block_type"},
    {.name = "mlp_layer_types"},
    {.name = "rotary_dim"},
    {.name = "mtp_layer_types", .use = harmless},
    {.name = "mtp_mlp_layer_types", .use = harmless},
    {.name = "layer_norm_epsilon"},
    {.name = "mlp_hidden_act"},
    {.name = "mamba_hidden_act"},
    {.name = "mamba_num_heads"},
    {.name = "mamba_head_dim"},
    {.name = "n_groups"},
    {.name = "ssm_state_size"},
    {.name = "conv_kernel"},
    {.name = "use_conv_bias"},
    {.name = "time_step_min"},
    {.name = "time_step_limit", .use = harmless, .family = "nemotron_h"},  // as in transformers
    {.name = "time_step_max", .use = harmless},                            // of initial values
    {.name = "time_step_floor", .use = harmless},
    {.name = "moe_shared_expert_intermediate_size"},
    {.name = "moe_latent_size"},
    {.name = "moe_shared_expert_overlap", .use = harmless},               // of two streams of a GPU
    {.name = "attention_bias", .use = harmless, .family = "nemotron_h"},  // projections have none
    {.name = "sliding_window", .use = harmless, .family = "nemotron_h"},
    {.name = "n_shared_experts", .use = harmless, .family = "nemotron_h"},
    {.name = "mamba_proj_bias", .use = harmless, .family = "nemotron_h"},
    {.name = "num_hidden_layers", .use = harmless, .family = "nemotron_h"},
    {.name = "num_nextn_predict_layers", .use = harmless, .family = "nemotron_h"},
    {.name = "mtp_layers_block_type", .use = harmless},
    {.name = "use_mamba_kernels", .use = harmless},
    {.name = "mamba_ssm_cache_dtype", .use = harmless},
    {.name = "chunk_size", .use = harmless},
    {.name = "expand", .use = harmless, .family = "nemotron_h"},
    {.name = "residual_in_fp32", .use = harmless},  // it always is here
    {.name = "rescale_prenorm_residual", .use = harmless},
    {.name = "mamba_n_heads"},
    {.name = "mamba_n_groups"},
    {.name = "mamba_d_state"},
    {.name = "mamba_d_head"},
    {.name = "mamba_d_conv"},
    {.name = "mamba_expand"},
    {.name = "mamba_chunk_size", .use = harmless},  // ours are kStateChunk
    {.name = "num_logits_to_keep", .use = harmless},
    {.name = "z_loss_coefficient", .use = harmless},
    {.name = "mamba_conv_bias"},
    {.name = "mamba_proj_bias"},
    {.name = "time_step_limit"},
    {.name = "output_router_logits", .use = harmless},
    {.name = "router_aux_loss_coef", .use = harmless},  // of a loss beside the model's
    {.name = "router_jitter_noise", .use = harmless},   // in training alone
    // Special tokens: text/ and engine/ obey them.
    {.name = "bos_token_id"},
    {.name = "eos_token_id"},
    {.name = "pad_token_id"},
    {.name = "cls_token_id", .use = harmless},  // the tokenizer has them
    {.name = "sep_token_id", .use = harmless},
    {.name = "mask_token_id", .use = harmless},
    // A model around the text model.
    {.name = "text_config"},
    {.name = "vision_config", .use = harmless},
    {.name = "audio_config", .use = harmless},
    {.name = "audio_token_id", .use = harmless},
    {.name = "audio_soft_tokens_per_image", .use = harmless},
    {.name = "vision_soft_tokens_per_image", .use = harmless},
    {.name = "boi_token_id", .use = harmless},
    {.name = "eoi_token_id", .use = harmless},
    {.name = "boa_token_id", .use = harmless},
    {.name = "eoa_token_index", .use = harmless},
    {.name = "eoa_token_id", .use = harmless},
    {.name = "mm_tokens_per_image", .use = harmless},
    {.name = "boi_token_index", .use = harmless},
    {.name = "eoi_token_index", .use = harmless},
    {.name = "image_token_index", .use = harmless},
    {.name = "image_token_id", .use = harmless},
    {.name = "video_token_id", .use = harmless},
    {.name = "vision_start_token_id", .use = harmless},
    {.name = "vision_end_token_id", .use = harmless},
    {.name = "scale_factor", .use = harmless},
    {.name = "projector_hidden_act", .use = harmless},
    {.name = "vision_feature_layer", .use = harmless},
    {.name = "multimodal_projector_bias", .use = harmless},
    {.name = "spatial_merge_size", .use = harmless},
    // Attention to what a causal decoder doesn't see. The classes no longer have all of these
    // fields, but files do.
    {.name = "use_bidirectional_attention"},
    {.name = "is_causal"},
    {.name = "is_encoder_decoder", .use = refused, .reason = kCrossAttention},
    {.name = "add_cross_attention", .use = refused, .reason = kCrossAttention},
    // Training: dropout acts in it alone, and paceline train has LoRA's own.
    {.name = "initializer_range", .use = harmless},
    {.name = "linear_a_log_min", .use = harmless},  // of parameters before training
    {.name = "linear_a_log_max", .use = harmless},
    {.name = "linear_dt_min", .use = harmless},
    {.name = "linear_dt_max", .use = harmless},
    {.name = "linear_dt_init_floor", .use = harmless},
    {.name = "attention_dropout", .use = harmless},
    {.name = "attention_probs_dropout_prob", .use = harmless},
    {.name = "hidden_dropout_prob", .use = harmless},
    {.name = "classifier_dropout", .use = harmless},
    {.name = "dropout", .use = harmless},
    {.name = "qa_dropout", .use = harmless},
    {.name = "seq_classif_dropout", .use = harmless},
    {.name = "hidden_dropout", .use = harmless},
    {.name = "residual_dropout", .use = harmless},
    {.name = "embedding_dropout", .use = harmless},
    {.name = "resid_pdrop", .use = harmless},
    {.name = "embd_pdrop", .use = harmless},
    {.name = "mlp_dropout", .use = harmless},
    {.name = "initializer_cutoff_factor", .use = harmless},
    // Heads: of labels (load/score_head.h has these), of masked tokens.
    {.name = "classifier_activation", .use = harmless},
    {.name = "classifier_bias", .use = harmless},
    {.name = "classifier_pooling", .use = harmless},
    {.name = "decoder_bias", .use = harmless},
    {.name = "sparse_prediction", .use = harmless},
    {.name = "sparse_pred_ignore_index", .use = harmless},
    {.name = "problem_type", .use = harmless},
    {.name = "id2label", .use = harmless},
    {.name = "label2id", .use = harmless},
    // How transformers computes, or what it returns.
    {.name = "architectures", .use = harmless},
    {.name = "transformers_version", .use = harmless},
    {.name = "output_hidden_states", .use = harmless},
    {.name = "return_dict", .use = harmless},
    {.name = "use_cache", .use = harmless},
    {.name = "chunk_size_feed_forward", .use = harmless},
    {.name = "deterministic_flash_attn", .use = harmless},
    {.name = "pretraining_tp", .use = harmless},  // slices of products, whose sums are the same
});

}  // namespace rule_table

}  // namespace

std::span<const FieldRule> field_rules() { return rule_table::kRules; }

const FieldRule* find_field_rule(std::string_view family, std::string_view field) {
  const FieldRule* of_all = nullptr;
  for (const FieldRule& rule : field_rules()) {
    if (rule.name != field) continue;
    if (rule.family == family) return &rule;
    if (rule.family.empty()) of_all = &rule;
  }
  return of_all;
}

void check_refused_fields(const HfConfig& config, std::string_view family) {
  for (const FieldRule& rule : field_rules()) {
    if (rule.use != ConfigFieldUse::refused || find_field_rule(family, rule.name) != &rule)
      continue;
    if (config.boolean(rule.name, rule.inert) == rule.inert) continue;
    config.unsupported(rule.name, fmt::format("{} isn't supported: {}", !rule.inert, rule.reason));
  }
}

}  // namespace paceline
