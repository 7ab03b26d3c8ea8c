// Every field of transformers' configuration classes is obeyed, harmless or refused, as the table
// says.
#include "models/field_rules.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/json.h"
#include "base/mapped_file.h"
#include "models/family.h"
#include "paceline/error.h"
#include "tests/source_path.h"
#include "weights/checkpoint.h"

namespace paceline::testing {
namespace {

Json field_goldens() {
  const std::string path = source_path("tests/goldens/configs/fields.json");
  return parse_json(read_text_file(path, 1 << 20), path);
}

// A model of the family in which every obeyed field takes part.
const std::map<std::string, std::string>& fields_of_family() {
  static const std::map<std::string, std::string> fields = {
      {"llama", R"("rope_theta": 500)"},
      {"iquestcoder", ""},
      {"internlm3", R"("attention_bias": true, "mlp_bias": true)"},
      {"seed_oss", ""},
      {"arcee", ""},
      {"helium", ""},
      {"ernie4_5", ""},
      {"cwm", R"("sliding_window": 8)"},
      {"ministral", R"("sliding_window": 8)"},
      {"glm", ""},
      {"gemma", ""},
      {"qwen2_vl_text",
       R"("use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1)"},
      {"qwen2_5_vl_text",
       R"("use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1)"},
      {"qwen3_vl_text", ""},
      {"mellum", R"("sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"],
                    "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
                    "mlp_layer_types": ["dense", "sparse"])"},
      {"cohere", ""},
      {"solar_open", R"("n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 4,
                        "topk_group": 3, "moe_intermediate_size": 16, "n_shared_experts": 1)"},
      {"dots1", R"("n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 4, "topk_group": 3,
                   "moe_intermediate_size": 16, "n_shared_experts": 1, "first_k_dense_replace": 1,
                   "sliding_window": 8, "max_window_layers": 1)"},
      {"minimax_m2", R"("num_local_experts": 6, "num_experts_per_tok": 2)"},
      {"mistral", R"("sliding_window": 8)"},
      {"qwen2", R"("use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1)"},
      {"qwen3", R"("use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1)"},
      {"gemma2", R"("sliding_window": 8)"},
      {"gemma3_text", R"("sliding_window": 8, "sliding_window_pattern": 2)"},
      {"gemma3n_text", R"("sliding_window": 8, "hidden_size_per_layer_input": 4,
                          "layer_types": ["full_attention", "sliding_attention",
                                          "sliding_attention"], "num_kv_shared_layers": 1,
                          "activation_sparsity_pattern": [0.5, 0, 0])"},
      {"gemma4_text", R"("sliding_window": 8, "hidden_size_per_layer_input": 4,
                         "global_head_dim": 24, "num_kv_shared_layers": 1,
                         "layer_types": ["sliding_attention", "full_attention",
                                         "full_attention"],
                         "attention_k_eq_v": true, "use_double_wide_mlp": true,
                         "enable_moe_block": true, "num_experts": 6, "top_k_experts": 2,
                         "moe_intermediate_size": 16)"},
      {"gemma4_unified_text", R"("sliding_window": 8, "num_kv_shared_layers": 1,
                                 "global_head_dim": 24,
                                 "layer_types": ["sliding_attention", "full_attention",
                                                 "full_attention"],
                                 "use_double_wide_mlp": true)"},
      {"phi3", R"("sliding_window": 8, "max_position_embeddings": 512,
                  "original_max_position_embeddings": 64,
                  "rope_parameters": {"rope_type": "longrope",
                      "short_factor": [1, 2, 3, 4, 5, 6, 7, 8],
                      "long_factor": [1, 2, 3, 4, 5, 6, 7, 8]})"},
      {"smollm3",
       R"("use_sliding_window": true, "sliding_window": 8, "no_rope_layer_interval": 2)"},
      {"olmo2", ""},
      {"olmo3", R"("sliding_window": 8)"},
      {"granite", ""},
      {"glm4", ""},
      {"exaone4", R"("sliding_window": 8, "sliding_window_pattern": 2)"},
      {"cohere2", R"("sliding_window": 8)"},
      {"stablelm", ""},
      {"starcoder2", R"("sliding_window": 8)"},
      {"ministral3", R"("sliding_window": 8)"},
      {"qwen2_moe", R"("use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1,
                       "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
                       "shared_expert_intermediate_size": 24, "mlp_only_layers": [0])"},
      {"qwen3_moe", R"("use_sliding_window": true, "sliding_window": 8, "num_experts": 6,
                       "num_experts_per_tok": 2, "moe_intermediate_size": 16,
                       "mlp_only_layers": [0])"},
      {"olmoe", R"("num_experts": 6, "num_experts_per_tok": 2)"},
      {"mixtral", R"("num_local_experts": 6, "num_experts_per_tok": 2, "sliding_window": 8)"},
      {"glm4_moe", R"("n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 4,
                      "topk_group": 3, "moe_intermediate_size": 16, "n_shared_experts": 1,
                      "first_k_dense_replace": 1)"},
      {"gpt_oss", R"("num_local_experts": 6, "num_experts_per_tok": 2, "sliding_window": 8)"},
      {"granitemoe", R"("num_local_experts": 6, "num_experts_per_tok": 2)"},
      {"granitemoeshared", R"("num_local_experts": 6, "num_experts_per_tok": 2,
                              "shared_intermediate_size": 24)"},
      {"granitemoehybrid", R"("num_local_experts": 6, "num_experts_per_tok": 2,
                              "shared_intermediate_size": 24,
                              "layer_types": ["attention", "mamba"], "mamba_n_heads": 8,
                              "position_embedding_type": "rope")"},
      {"mamba", ""},
      {"falcon_mamba", ""},
      {"jamba", R"("attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 6)"},
      {"mamba2", R"("num_heads": 4, "n_groups": 4)"},
      {"falcon_h1", R"("mamba_d_ssm": 64, "mamba_n_heads": 8, "mamba_rms_norm": true)"},
      {"nemotron_h", R"("layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"],
                        "mamba_num_heads": 8, "mamba_head_dim": 8, "n_routed_experts": 8,
                        "n_group": 4, "topk_group": 3, "num_experts_per_tok": 2,
                        "mlp_bias": false)"},
      {"bamba", R"("attn_layer_indices": [1], "mamba_n_heads": 8)"},
      {"qwen3_next", R"("layer_types": ["linear_attention", "full_attention"], "num_experts": 6,
                        "num_experts_per_tok": 2, "moe_intermediate_size": 16,
                        "shared_expert_intermediate_size": 24, "mlp_only_layers": [0],
                        "linear_num_key_heads": 2, "linear_num_value_heads": 4)"},
      {"olmo_hybrid", R"("layer_types": ["linear_attention", "full_attention"],
                         "linear_num_key_heads": 2)"},
      {"qwen3_5_text", R"("layer_types": ["linear_attention", "full_attention"],
                          "linear_num_key_heads": 2, "linear_num_value_heads": 4)"},
      {"qwen3_5_moe_text", R"("layer_types": ["linear_attention", "full_attention"],
                              "num_experts": 6, "num_experts_per_tok": 2,
                              "moe_intermediate_size": 16, "shared_expert_intermediate_size": 24,
                              "linear_num_key_heads": 2, "linear_num_value_heads": 4)"},
      {"lfm2", R"("full_attn_idxs": [1], "block_multiple_of": 4)"},
      {"lfm2_moe", R"("layer_types": ["conv", "full_attention"], "num_experts": 6,
                      "num_experts_per_tok": 2, "moe_intermediate_size": 16,
                      "num_dense_layers": 1)"},
      {"bert", ""},
      {"roberta", ""},
      {"xlm-roberta", ""},
      {"camembert", ""},
      {"distilbert", ""},
      {"modernbert", R"("layer_types": ["sliding_attention", "full_attention"])"},
      {"nomic_bert", ""},
      {"gte", ""},
      {"eurobert", ""},
      {"lfm3", R"("layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8)"},
      {"deepseek_v2", R"("n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 4,
                         "topk_group": 3, "topk_method": "group_limited_greedy")"},
      {"deepseek_v3", R"("n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 4,
                         "topk_group": 3, "first_k_dense_replace": 1, "norm_topk_prob": false)"},
      {"sarvam_mla", R"("n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 4,
                        "topk_group": 3, "norm_topk_prob": false)"},
      {"glm4_moe_lite", R"("n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 4,
                           "topk_group": 3, "norm_topk_prob": false)"},
      {"mistral4", R"("n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 4,
                      "topk_group": 3, "norm_topk_prob": false, "qk_nope_head_dim": 64,
                      "qk_rope_head_dim": 64)"},
      {"youtu", ""},
      {"minicpm3", ""},
      {"kimi_linear", R"("num_local_experts": 8, "num_experts_per_tok": 2, "n_group": 4,
                         "topk_group": 3, "norm_topk_prob": false,
                         "layer_types": ["linear_attention", "full_attention"])"},
  };
  return fields;
}

// Other values, in the types of the classes; for one family alone where its name stands before.
const std::map<std::string, std::string>& another_value() {
  static const std::map<std::string, std::string> values = {
      {"dtype", R"("float16")"},
      {"vocab_size", "96"},
      {"type_vocab_size", "3"},
      {"dim", "64"},
      {"hidden_dim", "40"},
      {"n_heads", "8"},
      {"n_layers", "3"},
      {"activation", R"("gelu_new")"},
      {"hidden_size", "64"},
      {"intermediate_size", "40"},
      {"num_hidden_layers", "3"},
      {"num_attention_heads", "8"},
      {"num_key_value_heads", "1"},
      {"head_dim", "12"},
      {"max_position_embeddings", "77"},
      {"rms_norm_eps", "0.125"},
      {"hidden_act", R"("gelu")"},
      {"hidden_activation", R"("gelu")"},
      {"tie_word_embeddings", "false"},
      {"attention_bias", "true"},
      {"mlp_bias", "true"},
      {"attention_out_bias", "true"},
      {"gemma.hidden_act", R"("silu")"},
      {"bert.hidden_act", R"("gelu_new")"},
      {"roberta.hidden_act", R"("gelu_new")"},
      {"xlm-roberta.hidden_act", R"("gelu_new")"},
      {"camembert.hidden_act", R"("gelu_new")"},
      {"gte.hidden_act", R"("silu")"},
      {"modernbert.hidden_activation", R"("silu")"},
      {"modernbert.rope_parameters", R"({"full_attention": {"rope_type": "linear", "factor": 3}})"},
      {"local_attention", "5"},
      {"norm_bias", "true"},
      {"cls_token_id", "3"},
      {"sep_token_id", "3"},
      {"mask_token_id", "3"},
      {"mlp_dropout", "0.5"},
      {"initializer_cutoff_factor", "3"},
      {"classifier_activation", R"("relu")"},
      {"classifier_bias", "true"},
      {"classifier_pooling", R"("mean")"},
      {"decoder_bias", "false"},
      {"sparse_prediction", "true"},
      {"sparse_pred_ignore_index", "3"},
      {"deterministic_flash_attn", "true"},
      {"mlp_layer_types", R"(["sparse", "sparse"])"},
      {"mtp_layer_types", R"(["full_attention"])"},
      {"mtp_mlp_layer_types", R"(["dense"])"},
      {"rope_parameters", R"({"rope_type": "linear", "factor": 3, "rope_theta": 77})"},
      {"use_sliding_window", "false"},
      {"sliding_window", "5"},
      {"max_window_layers", "0"},
      {"layer_types", R"(["full_attention", "full_attention"])"},
      {"query_pre_attn_scalar", "3"},
      {"attn_logit_softcapping", "7"},
      {"final_logit_softcapping", "7"},
      {"layer_norm_eps", "0.125"},
      {"norm_epsilon", "0.125"},
      {"use_bias", "false"},
      {"use_qkv_bias", "true"},
      {"qk_layernorm", "true"},
      {"use_parallel_residual", "true"},
      {"embedding_multiplier", "3"},
      {"attention_multiplier", "3"},
      {"residual_multiplier", "3"},
      {"logits_scaling", "3"},
      {"logit_scale", "3"},
      {"num_experts", "5"},
      {"num_local_experts", "5"},
      {"n_routed_experts", "12"},
      {"num_experts_per_tok", "1"},
      {"moe_intermediate_size", "12"},
      {"shared_expert_intermediate_size", "12"},
      {"shared_intermediate_size", "12"},
      {"n_shared_experts", "2"},
      {"decoder_sparse_step", "3"},
      {"mlp_only_layers", "[]"},
      {"first_k_dense_replace", "2"},
      {"norm_topk_prob", "true"},
      {"routed_scaling_factor", "3"},
      {"n_group", "2"},
      {"topk_group", "2"},
      {"qkv_bias", "true"},
      {"clip_qkv", "3"},
      {"use_qk_norm", "true"},
      {"swiglu_limit", "3"},
      {"swiglu_alpha", "3"},
      {"num_mtp_layers", "3"},
      {"norm_eps", "0.125"},
      {"linear_conv_kernel_dim", "3"},
      {"linear_key_head_dim", "10"},
      {"linear_value_head_dim", "10"},
      {"linear_num_key_heads", "1"},
      {"linear_num_value_heads", "2"},
      {"linear_allow_neg_eigval", "false"},
      {"linear_head_dim", "10"},
      {"linear_num_heads", "1"},
      {"linear_a_log_min", "0.5"},
      {"linear_a_log_max", "5"},
      {"linear_dt_min", "0.01"},
      {"linear_dt_max", "0.5"},
      {"linear_dt_init_floor", "0.01"},
      {"conv_L_cache", "4"},
      {"conv_bias", "true"},
      {"full_attn_idxs", "[0]"},
      {"use_sandwich_norm", "false"},
      {"use_attention_gate", "false"},
      {"block_auto_adjust_ff_dim", "false"},
      {"block_ffn_dim_multiplier", "9.5"},
      {"block_multiple_of", "24"},
      {"num_dense_layers", "0"},
      {"use_expert_bias", "false"},
      {"output_router_logits", "true"},
      {"router_aux_loss_coef", "0.5"},
      {"router_jitter_noise", "0.5"},
      {"original_max_position_embeddings", "32"},
      {"no_rope_layers", "[0, 0]"},
      {"no_rope_layer_interval", "1"},
      {"sliding_window_pattern", "1"},
      {"hidden_dropout", "0.5"},
      {"residual_dropout", "0.5"},
      {"embedding_dropout", "0.5"},
      {"resid_pdrop", "0.5"},
      {"embd_pdrop", "0.5"},
      {"initializer_range", "0.5"},
      {"attention_dropout", "0.5"},
      {"problem_type", R"("regression")"},
      {"id2label", R"({"0": "a"})"},
      {"label2id", R"({"a": 0})"},
      {"architectures", R"(["Other"])"},
      {"transformers_version", R"("4.0.0")"},
      {"output_hidden_states", "true"},
      {"return_dict", "false"},
      {"use_cache", "false"},
      {"chunk_size_feed_forward", "4"},
      {"pretraining_tp", "2"},
      {"use_bidirectional_attention", "true"},
      {"is_encoder_decoder", "true"},
      {"add_cross_attention", "true"},
      {"is_decoder", "true"},
      {"attention_probs_dropout_prob", "0.5"},
      {"hidden_dropout_prob", "0.5"},
      {"classifier_dropout", "0.5"},
      {"dropout", "0.5"},
      {"qa_dropout", "0.5"},
      {"dropout", "0.5"},
      {"seq_classif_dropout", "0.5"},
      {"sinusoidal_pos_embds", "true"},
      {"granitemoehybrid.layer_types", R"(["mamba", "attention"])"},
      {"attn_layer_indices", "[0]"},
      {"num_heads", "8"},
      {"state_size", "8"},
      {"time_step_rank", "8"},
      {"mamba_d_ssm", "32"},
      {"mamba_rms_norm", "false"},
      {"mamba_norm_before_gate", "false"},
      {"projectors_bias", "true"},
      {"lm_head_multiplier", "3"},
      {"key_multiplier", "3"},
      {"attention_in_multiplier", "3"},
      {"attention_out_multiplier", "3"},
      {"ssm_in_multiplier", "3"},
      {"ssm_out_multiplier", "3"},
      {"ssm_multipliers", "[1, 1, 1, 1, 2]"},
      {"mlp_multipliers", "[1, 2]"},
      {"layers_block_type", R"(["linear_attention", "full_attention"])"},
      {"layer_norm_epsilon", "0.125"},
      {"mlp_hidden_act", R"("relu")"},
      {"mamba_hidden_act", R"("gelu")"},
      {"mamba_num_heads", "4"},
      {"mamba_head_dim", "4"},
      {"n_groups", "2"},
      {"ssm_state_size", "8"},
      {"conv_kernel", "3"},
      {"use_conv_bias", "false"},
      {"time_step_min", "0.5"},
      {"time_step_max", "0.5"},
      {"time_step_floor", "0.5"},
      {"moe_shared_expert_intermediate_size", "12"},
      {"moe_latent_size", "8"},
      {"moe_shared_expert_overlap", "false"},
      {"num_nextn_predict_layers", "1"},
      {"mtp_layers_block_type", R"(["moe"])"},
      {"use_mamba_kernels", "false"},
      {"mamba_ssm_cache_dtype", R"("bfloat16")"},
      {"chunk_size", "8"},
      {"expand", "4"},
      {"residual_in_fp32", "true"},
      {"rescale_prenorm_residual", "false"},
      {"num_logits_to_keep", "2"},
      {"z_loss_coefficient", "0.5"},
      {"position_embedding_type", R"("nope")"},
      {"mamba_n_heads", "4"},
      {"mamba_n_groups", "2"},
      {"mamba_d_state", "8"},
      {"mamba_d_head", "4"},
      {"mamba_d_conv", "2"},
      {"mamba_expand", "4"},
      {"mamba_chunk_size", "8"},
      {"mamba_conv_bias", "false"},
      {"mamba_proj_bias", "true"},
      {"time_step_limit", "[0, 1]"},
      {"time_step_scale", "2"},
      {"time_step_init_scheme", R"("constant")"},
      {"mixer_rms_eps", "0.125"},
      {"mamba_dt_rank", "3"},
      {"attn_layer_period", "1"},
      {"attn_layer_offset", "0"},
      {"expert_layer_period", "1"},
      {"expert_layer_offset", "0"},
      {"use_mambapy", "true"},
      {"use_associative_scan", "false"},
      {"topk_method", R"("greedy")"},
      {"moe_layer_freq", "2"},
      {"q_lora_rank", "24"},
      {"kv_lora_rank", "24"},
      {"qk_nope_head_dim", "24"},
      {"qk_rope_head_dim", "24"},
      {"v_head_dim", "24"},
      {"rope_interleave", "false"},
      {"scale_emb", "3"},
      {"scale_depth", "3"},
      {"dim_model_base", "24"},
      {"embedding_initializer_range", "0.5"},
      {"deepseek_v2.n_shared_experts", "1"},
      {"per_layer_config", R"({"1": {"head_dim": 8}})"},
      {"attention_k_eq_v", "false"},
      {"num_kv_shared_layers", "0"},
      {"use_double_wide_mlp", "false"},
      {"enable_moe_block", "false"},
      {"top_k_experts", "1"},
      {"hidden_size_per_layer_input", "0"},
      {"vocab_size_per_layer_input", "99"},
      {"altup_num_inputs", "2"},
      {"altup_active_idx", "1"},
      {"altup_coef_clip", "3"},
      {"altup_correct_scale", "false"},
      {"laurel_rank", "3"},
      {"activation_sparsity_pattern", "[0, 0, 0]"},
      {"gemma3n_text.num_hidden_layers", "4"},
      {"gemma3n_text.layer_types", R"(["sliding_attention", "full_attention", "full_attention"])"},
      {"gemma3n_text.rope_parameters",
       R"({"full_attention": {"rope_type": "linear", "factor": 3, "rope_theta": 77}})"},
      {"gemma4_text.num_hidden_layers", "4"},
      {"gemma4_text.layer_types", R"(["full_attention", "full_attention", "full_attention"])"},
      {"gemma4_text.rope_parameters",
       R"({"full_attention": {"rope_type": "linear", "factor": 3, "rope_theta": 77}})"},
      {"gemma4_text.use_bidirectional_attention", R"("all")"},
      {"gemma4_unified_text.num_hidden_layers", "4"},
      {"gemma4_unified_text.layer_types",
       R"(["full_attention", "full_attention", "full_attention"])"},
      {"gemma4_unified_text.rope_parameters",
       R"({"full_attention": {"rope_type": "linear", "factor": 3, "rope_theta": 77}})"},
      {"gemma4_unified_text.use_bidirectional_attention", R"("all")"},
      {"gemma4_unified_text.attention_k_eq_v", "true"},
  };
  return values;
}

// Read by other modules than models/.
const std::set<std::string>& special_tokens() {
  static const std::set<std::string> names = {"bos_token_id", "eos_token_id", "pad_token_id"};
  return names;
}

Json config_of_family(const std::string& family) {
  const std::string& own = fields_of_family().at(family);
  return parse_json(R"({"model_type": ")" + family + R"(", "vocab_size": 64, "hidden_size": 32,
      "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
      "head_dim": 16, "num_hidden_layers": )" +
                        (own.find("num_kv_shared_layers") != own.npos ? "3" : "2") +
                        (own.empty() ? "" : ", " + own) + "}",
                    "config.json");
}

DecoderConfig read(const Json& json) {
  Memory memory;
  return read_decoder_config(json, WeightReader(*make_dummy_checkpoint(DType::f32, 0, memory)),
                             "config.json");
}

// What the value does to the model of its family.
ConfigFieldUse found_use(const Json& base, const std::string& field, const std::string& value) {
  Json::Object changed;
  for (const auto& [key, member] : base.as_object("config.json")) {
    if (key != field) changed.emplace_back(key, member);
  }
  changed.emplace_back(field, parse_json(value, field));
  try {
    return read(Json(std::move(changed))) == read(base) ? ConfigFieldUse::harmless
                                                        : ConfigFieldUse::obeyed;
  } catch (const Error& error) {
    return error.code() == ErrorCode::unsupported ? ConfigFieldUse::refused
                                                  : ConfigFieldUse::obeyed;
  }
}

// A flag's default isn't listed: both values are tried.
ConfigFieldUse found_use(const std::string& family, const std::string& field) {
  const Json base = config_of_family(family);
  const auto own = another_value().find(family + "." + field);
  const std::string& other = own != another_value().end() ? own->second : another_value().at(field);
  const bool is_flag = other == "true" || other == "false";
  const ConfigFieldUse use = found_use(base, field, other);
  if (!is_flag || use != ConfigFieldUse::harmless) return use;
  return found_use(base, field, other == "true" ? "false" : "true");
}

TEST(FieldRules, EveryFieldOfAClassHasARuleThatHolds) {
  const Json goldens = field_goldens();
  int checked = 0;
  for (const auto& [family, fields] : goldens.as_object("families")) {
    for (const Json& item : fields.as_array(family)) {
      const std::string& field = item.as_string(family);
      SCOPED_TRACE(family + "." + field);
      const FieldRule* const rule = find_field_rule(family, field);
      ASSERT_NE(rule, nullptr);
      if (!fields_of_family().contains(family) || special_tokens().contains(field)) continue;
      ASSERT_TRUE(another_value().contains(field)) << "no other value to try";
      const ConfigFieldUse found = found_use(family, field);
      if (rule->use == ConfigFieldUse::obeyed) {  // a family may refuse the other value
        EXPECT_NE(found, ConfigFieldUse::harmless);
      } else {
        EXPECT_EQ(found, rule->use);
      }
      ++checked;
    }
  }
  EXPECT_GT(checked, 400);
}

}  // namespace
}  // namespace paceline::testing
