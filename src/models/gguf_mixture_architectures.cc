// GGUF architectures of mixtures of experts, and of latent attention.
#include "models/gguf_architecture_groups.h"

namespace paceline {
namespace {

constexpr std::array<GgufNamePair, 4> kGlmMoeNames = {{
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "mlp.shared_experts.down_proj"},
}};
constexpr std::array<GgufNamePair, 2> kGptOssNames = {{
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_gate_inp", "mlp.router"},
}};
constexpr std::array<GgufNamePair, 5> kGlmMoeSizes = {{
    {"expert_shared_count", "n_shared_experts"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"nextn_predict_layers", "num_nextn_predict_layers"},
}};
constexpr GgufArchitecture kGraniteMoe = {.name = "granitemoe",
                                          .model_type = "granitemoe",
                                          .hf_class = "GraniteMoeForCausalLM",
                                          .shared_type = "granitemoeshared",
                                          .shared_class = "GraniteMoeSharedForCausalLM",
                                          .has_mixtures = true,
                                          .normalises_experts = true,
                                          .interleaved_rotary = true,
                                          .fields = kGraniteFields,
                                          .sizes = kGraniteMoeSizes,
                                          .may_not_rotate = true};
constexpr GgufArchitecture kGlmMoe = {.name = "glm4moe",
                                      .model_type = "glm4_moe",
                                      .hf_class = "Glm4MoeForCausalLM",
                                      .has_mixtures = true,
                                      .experts_field = "n_routed_experts",
                                      .expert_gating = 2,
                                      .tensors = kGlmMoeNames,
                                      .fields = kGlmMoeFields,
                                      .sizes = kGlmMoeSizes,
                                      .rope = GgufRope::partial};
constexpr GgufArchitecture kGptOss = {.name = "gpt-oss",
                                      .model_type = "gpt_oss",
                                      .hf_class = "GptOssForCausalLM",
                                      .has_mixtures = true,
                                      .normalises_experts = true,
                                      .expert_gating = 3,
                                      .tensors = kGptOssNames,
                                      .rope = GgufRope::untruncated,
                                      .window_pattern = 2};

constexpr std::array<GgufNamePair, 2> kDeepSeekSizes = {{
    {"expert_shared_count", "n_shared_experts"},
    {"leading_dense_block_count", "first_k_dense_replace"},
}};
constexpr GgufArchitecture kDeepSeek2 = {.name = "deepseek2",
                                         .model_type = "deepseek_v2",
                                         .hf_class = "DeepseekV2ForCausalLM",
                                         .sigmoid_type = "deepseek_v3",
                                         .sigmoid_class = "DeepseekV3ForCausalLM",
                                         .has_mixtures = true,
                                         .experts_field = "n_routed_experts",
                                         .tensors = kLatentTensors,
                                         .fields = kGlmMoeFields,
                                         .sizes = kDeepSeekSizes,
                                         .has_latents = true};
constexpr GgufArchitecture kMiniCpm3 = {.name = "minicpm3",
                                        .model_type = "minicpm3",
                                        .hf_class = "MiniCPM3ForCausalLM",
                                        .tensors = kLatentTensors,
                                        .rope = GgufRope::long_factors,
                                        .has_latents = true};

constexpr std::array<GgufNamePair, 6> kHunyuanNames = {{
    {"attn_q_norm", "self_attn.query_layernorm"},
    {"attn_k_norm", "self_attn.key_layernorm"},
    {"ffn_gate_inp", "mlp.gate.wg"},
    {"ffn_gate_shexp", "mlp.shared_mlp.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_mlp.up_proj"},
    {"ffn_down_shexp", "mlp.shared_mlp.down_proj"},
}};
constexpr std::array<GgufNamePair, 1> kHunyuanSizes = {{{"expert_used_count", "moe_topk"}}};
constexpr GgufArchitecture kHunyuan = {.name = "hunyuan-dense",
                                       .model_type = "hunyuan_v1_dense",
                                       .hf_class = "HunYuanDenseV1ForCausalLM",
                                       .tensors = kHunyuanNames};
constexpr GgufArchitecture kHunyuanMoe = {.name = "hunyuan-moe",
                                          .model_type = "hunyuan_v1_moe",
                                          .hf_class = "HunYuanMoEV1ForCausalLM",
                                          .has_mixtures = true,
                                          .normalises_experts = true,
                                          .tensors = kHunyuanNames,
                                          .sizes = kHunyuanSizes};
constexpr std::array<GgufNamePair, 3> kSharedExpertNames = {{
    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "mlp.shared_experts.down_proj"},
}};
constexpr std::array<GgufNamePair, 1> kErnieMoeWholeNames = {{
    {"exp_probs_b.bias", "mlp.moe_statics.e_score_correction_bias"},
}};
constexpr std::array<GgufNamePair, 4> kErnieMoeSizes = {{
    {"expert_used_count", "moe_k"},
    {"expert_shared_count", "moe_num_shared_experts"},
    {"leading_dense_block_count", "moe_layer_start_index"},
    {"interleave_moe_layer_step", "moe_layer_interval"},
}};
constexpr GgufArchitecture kErnieMoe = {.name = "ernie4_5-moe",
                                        .model_type = "ernie4_5_moe",
                                        .hf_class = "Ernie4_5_MoeForCausalLM",
                                        .has_mixtures = true,
                                        .experts_field = "moe_num_experts",
                                        .normalises_experts = true,
                                        .tensors = kSharedExpertNames,
                                        .whole_tensors = kErnieMoeWholeNames,
                                        .sizes = kErnieMoeSizes,
                                        .bias_field = "use_bias"};

constexpr GgufArchitecture kDots1 = {.name = "dots1",
                                     .model_type = "dots1",
                                     .hf_class = "Dots1ForCausalLM",
                                     .has_mixtures = true,
                                     .experts_field = "n_routed_experts",
                                     .expert_gating = 2,
                                     .tensors = kSharedExpertNames,
                                     .fields = kGlmMoeFields,
                                     .sizes = kGlmMoeSizes};
constexpr GgufArchitecture kMiniMaxM2 = {.name = "minimax-m2",
                                         .model_type = "minimax_m2",
                                         .hf_class = "MiniMaxM2ForCausalLM",
                                         .has_mixtures = true,
                                         .experts_field = "num_local_experts",
                                         .normalises_experts = true,
                                         .expert_gating = 2,
                                         .rope = GgufRope::partial};
constexpr GgufArchitecture kMellum = {.name = "mellum",
                                      .model_type = "mellum",
                                      .hf_class = "MellumForCausalLM",
                                      .has_mixtures = true,
                                      .experts_field = "num_local_experts",
                                      .normalises_experts = true,
                                      .rope = GgufRope::by_layer,
                                      .window_pattern = 4};

constexpr auto kMixtureArchitectures = std::to_array<GgufArchitecture>(
    {{.name = "qwen2moe",
      .model_type = "qwen2_moe",
      .hf_class = "Qwen2MoeForCausalLM",
      .has_mixtures = true},
     {.name = "qwen3moe",
      .model_type = "qwen3_moe",
      .hf_class = "Qwen3MoeForCausalLM",
      .has_mixtures = true,
      .normalises_experts = true},
     {.name = "olmoe", .model_type = "olmoe", .hf_class = "OlmoeForCausalLM", .has_mixtures = true},
     kGraniteMoe,
     kGlmMoe,
     kGptOss,
     kDeepSeek2,
     kMiniCpm3,
     kHunyuan,
     kHunyuanMoe,
     kErnieMoe,
     kDots1,
     kMiniMaxM2,
     kMellum});

}  // namespace

std::span<const GgufArchitecture> gguf_mixture_architectures() { return kMixtureArchitectures; }

}  // namespace paceline
