#include "models/gguf_architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/error.h"
#include "models/refused_kinds.h"

namespace paceline {
namespace {

// Keys and names are from gguf-py's constants.py and tensor_mapping.py, defaults from llama.cpp's
// loading of each architecture's hyperparameters.
constexpr std::array<GgufNamePair, 5> kMixtralNames = {{
    {".mlp.gate.", ".block_sparse_moe.gate."},
    {".mlp.experts.", ".block_sparse_moe.experts."},
    {".gate_proj.", ".w1."},
    {".down_proj.", ".w2."},
    {".up_proj.", ".w3."},
}};
constexpr GgufArchitecture kLlama = {.name = "llama",
                                     .model_type = "llama",
                                     .hf_class = "LlamaForCausalLM",
                                     .windowed_type = "mistral",
                                     .windowed_class = "MistralForCausalLM",
                                     .mixture_type = "mixtral",
                                     .mixture_class = "MixtralForCausalLM",
                                     .mixture_names = kMixtralNames,
                                     .has_mixtures = true,
                                     .normalises_experts = true,
                                     .interleaved_rotary = true};
constexpr GgufArchitecture kMistral = {.name = "mistral",
                                       .model_type = "mistral",
                                       .hf_class = "MistralForCausalLM",
                                       .interleaved_rotary = true};
constexpr GgufArchitecture kGemma = {.name = "gemma",
                                     .model_type = "gemma",
                                     .hf_class = "GemmaForCausalLM",
                                     .norms_plus_one = true,
                                     .activation = "gelu_pytorch_tanh"};
constexpr GgufArchitecture kGemma2 = {.name = "gemma2",
                                      .model_type = "gemma2",
                                      .hf_class = "Gemma2ForCausalLM",
                                      .four_norms = true,
                                      .norms_plus_one = true,
                                      .activation = "gelu_pytorch_tanh",
                                      .default_window = 4096,
                                      .window_pattern = 2,
                                      .attention_soft_cap = 50,
                                      .final_soft_cap = 30,
                                      .widely_scaled_layers = 46};
constexpr GgufArchitecture kGemma3 = {.name = "gemma3",
                                      .model_type = "gemma3_text",
                                      .hf_class = "Gemma3ForCausalLM",
                                      .four_norms = true,
                                      .norms_plus_one = true,
                                      .two_ropes = true,
                                      .activation = "gelu_pytorch_tanh",
                                      .window_pattern = 6,
                                      .widely_scaled_layers = 62};

// convert_hf_to_gguf.py's and gguf-py's names for Gemma 4.
constexpr std::array<GgufNamePair, 11> kGemma4Names = {{
    {"ffn_gate_inp", "router.proj"},
    {"ffn_gate_exps", "experts.gate_proj"},
    {"ffn_up_exps", "experts.up_proj"},
    {"ffn_down_exps", "experts.down_proj"},
    {"ffn_gate_up_exps", "experts.gate_up_proj"},
    {"pre_ffw_norm_2", "pre_feedforward_layernorm_2"},
    {"post_ffw_norm_1", "post_feedforward_layernorm_1"},
    {"post_ffw_norm_2", "post_feedforward_layernorm_2"},
    {"inp_gate", "per_layer_input_gate"},
    {"proj", "per_layer_projection"},
    {"post_norm", "post_per_layer_input_norm"},
}};
constexpr std::array<GgufNamePair, 6> kGemma4WholeNames = {{
    {"layer_output_scale.weight", "layer_scalar"},
    {"ffn_gate_inp.scale", "router.scale"},
    {"ffn_down_exps.scale", "router.per_expert_scale"},
    {"per_layer_token_embd.weight", "embed_tokens_per_layer.weight"},
    {"per_layer_model_proj.weight", "per_layer_model_projection.weight"},
    {"per_layer_proj_norm.weight", "per_layer_projection_norm.weight"},
}};
constexpr GgufArchitecture kGemma4 = {.name = "gemma4",
                                      .model_type = "gemma4_text",
                                      .hf_class = "Gemma4ForCausalLM",
                                      .has_mixtures = true,
                                      .normalises_experts = true,
                                      .tensors = kGemma4Names,
                                      .whole_tensors = kGemma4WholeNames,
                                      .four_norms = true,
                                      .mixed_layers = true,
                                      .activation = "gelu_pytorch_tanh",
                                      .window_pattern = 6};

constexpr std::array<GgufNamePair, 2> kBehindNames = {{
    {"post_attention_norm", "post_attention_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
}};
constexpr std::array<GgufNamePair, 2> kPhi3Names = {{
    {"attn_qkv", "self_attn.qkv_proj"},
    {"ffn_up", "mlp.gate_up_proj"},
}};
constexpr std::array<GgufNamePair, 3> kGlm4Names = {{
    {"ffn_up", "mlp.gate_up_proj"},
    {"post_attention_norm", "post_self_attn_layernorm"},
    {"post_ffw_norm", "post_mlp_layernorm"},
}};
constexpr std::array<GgufNamePair, 2> kStarcoder2Names = {{
    {"ffn_up", "mlp.c_fc"},
    {"ffn_down", "mlp.c_proj"},
}};
constexpr std::array<GgufNamePair, 2> kStableLmNames = {{
    {"attn_q_norm", "self_attn.q_layernorm.norms"},
    {"attn_k_norm", "self_attn.k_layernorm.norms"},
}};
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
constexpr std::array<GgufNamePair, 4> kGraniteFields = {{
    {"embedding_scale", "embedding_multiplier"},
    {"attention.scale", "attention_multiplier"},
    {"residual_scale", "residual_multiplier"},
    {"logit_scale", "logits_scaling"},
}};
constexpr std::array<GgufNamePair, 1> kGraniteMoeSizes = {{
    {"expert_shared_feed_forward_length", "shared_intermediate_size"},
}};
constexpr std::array<GgufNamePair, 1> kGlmMoeFields = {{
    {"expert_weights_scale", "routed_scaling_factor"},
}};
constexpr std::array<GgufNamePair, 5> kGlmMoeSizes = {{
    {"expert_shared_count", "n_shared_experts"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"nextn_predict_layers", "num_nextn_predict_layers"},
}};
constexpr std::array<GgufNamePair, 2> kCohere2Fields = {{
    {"attention.layer_norm_epsilon", "layer_norm_eps"},
    {"logit_scale", "logit_scale"},
}};
constexpr std::array<GgufNamePair, 1> kStableLmFields = {{
    {"attention.layer_norm_epsilon", "layer_norm_eps"},
}};
constexpr std::array<GgufNamePair, 1> kStarcoder2Fields = {{
    {"attention.layer_norm_epsilon", "norm_epsilon"},
}};

constexpr GgufArchitecture kPhi3 = {.name = "phi3",
                                    .model_type = "phi3",
                                    .hf_class = "Phi3ForCausalLM",
                                    .tensors = kPhi3Names,
                                    .rope = GgufRope::long_factors};
constexpr std::array<GgufNamePair, 1> kSeedOssNames = {{
    {"post_attention_norm", "post_attention_layernorm"},
}};
constexpr GgufArchitecture kSeedOss = {.name = "seed_oss",
                                       .model_type = "seed_oss",
                                       .hf_class = "SeedOssForCausalLM",
                                       .tensors = kSeedOssNames,
                                       .output_bias_field = "attention_out_bias"};
constexpr GgufArchitecture kArcee = {.name = "arcee",
                                     .model_type = "arcee",
                                     .hf_class = "ArceeForCausalLM",
                                     .interleaved_rotary = true,
                                     .activation = "relu2"};
constexpr GgufArchitecture kErnie45 = {.name = "ernie4_5",
                                       .model_type = "ernie4_5",
                                       .hf_class = "Ernie4_5ForCausalLM",
                                       .bias_field = "use_bias"};
constexpr GgufArchitecture kSmolLm3 = {.name = "smollm3",
                                       .model_type = "smollm3",
                                       .hf_class = "SmolLM3ForCausalLM",
                                       .interleaved_rotary = true};
constexpr GgufArchitecture kOlmo2 = {.name = "olmo2",
                                     .model_type = "olmo2",
                                     .hf_class = "Olmo2ForCausalLM",
                                     .windowed_type = "olmo3",
                                     .windowed_class = "Olmo3ForCausalLM",
                                     .tensors = kBehindNames,
                                     .rope = GgufRope::by_layer,
                                     .window_pattern = 4};
constexpr GgufArchitecture kGranite = {.name = "granite",
                                       .model_type = "granite",
                                       .hf_class = "GraniteForCausalLM",
                                       .interleaved_rotary = true,
                                       .fields = kGraniteFields,
                                       .may_not_rotate = true};
constexpr GgufArchitecture kGlm4 = {.name = "glm4",
                                    .model_type = "glm4",
                                    .hf_class = "Glm4ForCausalLM",
                                    .tensors = kGlm4Names,
                                    .rope = GgufRope::partial};
constexpr GgufArchitecture kExaone4 = {.name = "exaone4",
                                       .model_type = "exaone4",
                                       .hf_class = "Exaone4ForCausalLM",
                                       .tensors = kBehindNames,
                                       .window_pattern = 4};
constexpr GgufArchitecture kCohere2 = {.name = "cohere2",
                                       .model_type = "cohere2",
                                       .hf_class = "Cohere2ForCausalLM",
                                       .fields = kCohere2Fields,
                                       .window_pattern = 4};
constexpr GgufArchitecture kStableLm = {.name = "stablelm",
                                        .model_type = "stablelm",
                                        .hf_class = "StableLmForCausalLM",
                                        .tensors = kStableLmNames,
                                        .fields = kStableLmFields,
                                        .rope = GgufRope::partial,
                                        .bias_field = "use_qkv_bias",
                                        .may_be_parallel = true};
constexpr GgufArchitecture kStarcoder2 = {.name = "starcoder2",
                                          .model_type = "starcoder2",
                                          .hf_class = "Starcoder2ForCausalLM",
                                          .tensors = kStarcoder2Names,
                                          .fields = kStarcoder2Fields,
                                          .bias_field = "use_bias",
                                          .activation = "gelu_pytorch_tanh"};
constexpr GgufArchitecture kMistral3 = {.name = "mistral3",
                                        .model_type = "ministral3",
                                        .hf_class = "Ministral3ForCausalLM",
                                        .interleaved_rotary = true,
                                        .rope = GgufRope::growing};
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

// Tensors of gated delta nets (gguf-py's tensor_mapping.py). ssm_a is -exp(A_log).
constexpr std::array<GgufNamePair, 10> kDeltaNetNames = {{
    {"post_attention_norm", "post_attention_layernorm"},
    {"attn_qkv", "linear_attn.in_proj_qkv"},
    {"attn_gate", "linear_attn.in_proj_z"},
    {"ssm_beta", "linear_attn.in_proj_b"},
    {"ssm_alpha", "linear_attn.in_proj_a"},
    {"ssm_ba", "linear_attn.in_proj_ba"},  // of Qwen3-Next, by key head
    {"ssm_conv1d", "linear_attn.conv1d"},
    {"ssm_norm", "linear_attn.norm"},
    {"ssm_out", "linear_attn.out_proj"},
    {"ffn_gate_up_exps", "mlp.experts.gate_up_proj"},
}};
constexpr std::array<GgufNamePair, 2> kDeltaNetWholeNames = {{
    {"ssm_a", "linear_attn.A"},
    {"ssm_dt.bias", "linear_attn.dt_bias"},
}};
constexpr GgufArchitecture kQwen35 = {.name = "qwen35",
                                      .model_type = "qwen3_5_text",
                                      .hf_class = "Qwen3_5ForCausalLM",
                                      .tensors = kDeltaNetNames,
                                      .whole_tensors = kDeltaNetWholeNames,
                                      .rope = GgufRope::partial,
                                      .norms_plus_one = true,
                                      .mixers = GgufMixers::delta_nets,
                                      .value_heads_in_turns = true,
                                      .has_position_sections = true};
constexpr GgufArchitecture kQwen35Moe = {.name = "qwen35moe",
                                         .model_type = "qwen3_5_moe_text",
                                         .hf_class = "Qwen3_5MoeForCausalLM",
                                         .has_mixtures = true,
                                         .normalises_experts = true,
                                         .tensors = kDeltaNetNames,
                                         .whole_tensors = kDeltaNetWholeNames,
                                         .rope = GgufRope::partial,
                                         .norms_plus_one = true,
                                         .mixers = GgufMixers::delta_nets,
                                         .value_heads_in_turns = true,
                                         .has_position_sections = true};
constexpr GgufArchitecture kQwen3Next = {.name = "qwen3next",
                                         .model_type = "qwen3_next",
                                         .hf_class = "Qwen3NextForCausalLM",
                                         .has_mixtures = true,
                                         .normalises_experts = true,
                                         .tensors = kDeltaNetNames,
                                         .whole_tensors = kDeltaNetWholeNames,
                                         .rope = GgufRope::partial,
                                         .norms_plus_one = true,
                                         .mixers = GgufMixers::delta_nets};

constexpr std::array<GgufNamePair, 4> kMambaNames = {{
    {"ssm_in", "mamba.in_proj"},
    {"ssm_conv1d", "mamba.conv1d"},
    {"ssm_norm", "mamba.norm"},
    {"ssm_out", "mamba.out_proj"},
}};
constexpr std::array<GgufNamePair, 3> kMambaWholeNames = {{
    {"ssm_a", "mamba.A"},
    {"ssm_d", "mamba.D"},
    {"ssm_dt.bias", "mamba.dt_bias"},
}};
constexpr GgufArchitecture kGraniteHybrid = {.name = "granitehybrid",
                                             .model_type = "granitemoehybrid",
                                             .hf_class = "GraniteMoeHybridForCausalLM",
                                             .has_mixtures = true,
                                             .experts_field = "num_local_experts",
                                             .normalises_experts = true,
                                             .interleaved_rotary = true,
                                             .tensors = kMambaNames,
                                             .whole_tensors = kMambaWholeNames,
                                             .fields = kGraniteFields,
                                             .sizes = kGraniteMoeSizes,
                                             .mixers = GgufMixers::mamba2};

constexpr std::array<GgufNamePair, 8> kFalconH1Names = {{
    {"ssm_in", "mamba.in_proj"},
    {"ssm_conv1d", "mamba.conv1d"},
    {"ssm_norm", "mamba.norm"},
    {"ssm_out", "mamba.out_proj"},
    {"ffn_norm", "pre_ff_layernorm"},
    {"ffn_gate", "feed_forward.gate_proj"},
    {"ffn_up", "feed_forward.up_proj"},
    {"ffn_down", "feed_forward.down_proj"},
}};
constexpr std::array<GgufNamePair, 5> kFalconH1WholeNames = {{
    {"ssm_a", "mamba.A"},
    {"ssm_d", "mamba.D"},
    {"ssm_dt.bias", "mamba.dt_bias"},
    {"ffn_norm", "pre_ff_layernorm.weight"},
    {"output_norm.weight", "final_layernorm.weight"},
}};
constexpr GgufArchitecture kFalconH1 = {.name = "falcon-h1",
                                        .model_type = "falcon_h1",
                                        .hf_class = "FalconH1ForCausalLM",
                                        .tensors = kFalconH1Names,
                                        .whole_tensors = kFalconH1WholeNames,
                                        .mixers = GgufMixers::beside,
                                        .multiplied_weights = true};

// Layers of one branch, which is called mixer whatever it is.
constexpr std::array<GgufNamePair, 18> kNemotronNames = {{
    {"attn_norm", "norm"},
    {"attn_q", "mixer.q_proj"},
    {"attn_k", "mixer.k_proj"},
    {"attn_v", "mixer.v_proj"},
    {"attn_output", "mixer.o_proj"},
    {"ssm_in", "mixer.in_proj"},
    {"ssm_conv1d", "mixer.conv1d"},
    {"ssm_norm", "mixer.norm"},
    {"ssm_out", "mixer.out_proj"},
    {"ffn_up", "mixer.up_proj"},
    {"ffn_down", "mixer.down_proj"},
    {"ffn_gate_inp", "mixer.gate"},
    {"ffn_up_exps", "mixer.experts.up_proj"},
    {"ffn_down_exps", "mixer.experts.down_proj"},
    {"ffn_up_shexp", "mixer.shared_experts.up_proj"},
    {"ffn_down_shexp", "mixer.shared_experts.down_proj"},
    {"ffn_latent_down", "mixer.fc1_latent_proj"},
    {"ffn_latent_up", "mixer.fc2_latent_proj"},
}};
constexpr std::array<GgufNamePair, 5> kNemotronWholeNames = {{
    {"ssm_a", "mixer.A"},
    {"ssm_d", "mixer.D"},
    {"ssm_dt.bias", "mixer.dt_bias"},
    {"exp_probs_b.bias", "mixer.gate.e_score_correction_bias"},
    {"output_norm.weight", "norm_f.weight"},
}};
constexpr std::array<GgufNamePair, 5> kNemotronSizes = {{
    {"moe_latent_size", "moe_latent_size"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
}};
constexpr GgufArchitecture kNemotronH = {.name = "nemotron_h",
                                         .model_type = "nemotron_h",
                                         .hf_class = "NemotronHForCausalLM",
                                         .interleaved_rotary = true,
                                         .tensors = kNemotronNames,
                                         .whole_tensors = kNemotronWholeNames,
                                         .mixers = GgufMixers::alone};
constexpr GgufArchitecture kNemotronHMoe = {.name = "nemotron_h_moe",
                                            .model_type = "nemotron_h",
                                            .hf_class = "NemotronHForCausalLM",
                                            .has_mixtures = true,
                                            .experts_field = "n_routed_experts",
                                            .normalises_experts = true,
                                            .expert_gating = 2,
                                            .interleaved_rotary = true,
                                            .tensors = kNemotronNames,
                                            .whole_tensors = kNemotronWholeNames,
                                            .fields = kGlmMoeFields,
                                            .sizes = kNemotronSizes,
                                            .mixers = GgufMixers::alone};
constexpr GgufArchitecture kMamba2 = {.name = "mamba2",
                                      .model_type = "mamba2",
                                      .hf_class = "Mamba2ForCausalLM",
                                      .tensors = kNemotronNames,
                                      .whole_tensors = kNemotronWholeNames,
                                      .mixers = GgufMixers::mamba2_only};

constexpr std::array<GgufNamePair, 6> kMambaOnlyNames = {{
    {"attn_norm", "norm"},
    {"ssm_in", "mixer.in_proj"},
    {"ssm_conv1d", "mixer.conv1d"},
    {"ssm_x", "mixer.x_proj"},
    {"ssm_dt", "mixer.dt_proj"},
    {"ssm_out", "mixer.out_proj"},
}};
constexpr std::array<GgufNamePair, 3> kMambaOnlyWholeNames = {{
    {"ssm_a", "mixer.A"},
    {"ssm_d", "mixer.D"},
    {"output_norm.weight", "norm_f.weight"},
}};
constexpr GgufArchitecture kMamba = {.name = "mamba",
                                     .model_type = "mamba",
                                     .hf_class = "MambaForCausalLM",
                                     .step_norms_type = "falcon_mamba",
                                     .step_norms_class = "FalconMambaForCausalLM",
                                     .tensors = kMambaOnlyNames,
                                     .whole_tensors = kMambaOnlyWholeNames,
                                     .mixers = GgufMixers::mamba1_only};

constexpr std::array<GgufNamePair, 16> kJambaNames = {{
    {"ssm_in", "mamba.in_proj"},
    {"ssm_conv1d", "mamba.conv1d"},
    {"ssm_x", "mamba.x_proj"},
    {"ssm_dt", "mamba.dt_proj"},
    {"ssm_out", "mamba.out_proj"},
    {"ssm_dt_norm", "mamba.dt_layernorm"},
    {"ssm_b_norm", "mamba.b_layernorm"},
    {"ssm_c_norm", "mamba.c_layernorm"},
    {"ffn_norm", "pre_ff_layernorm"},
    {"ffn_gate", "feed_forward.gate_proj"},
    {"ffn_up", "feed_forward.up_proj"},
    {"ffn_down", "feed_forward.down_proj"},
    {"ffn_gate_inp", "feed_forward.router"},
    {"ffn_gate_exps", "feed_forward.experts.gate_proj"},
    {"ffn_up_exps", "feed_forward.experts.up_proj"},
    {"ffn_down_exps", "feed_forward.experts.down_proj"},
}};
constexpr std::array<GgufNamePair, 3> kJambaWholeNames = {{
    {"ssm_a", "mamba.A"},
    {"ssm_d", "mamba.D"},
    {"output_norm.weight", "final_layernorm.weight"},
}};
constexpr GgufArchitecture kJamba = {.name = "jamba",
                                     .model_type = "jamba",
                                     .hf_class = "JambaForCausalLM",
                                     .has_mixtures = true,
                                     .tensors = kJambaNames,
                                     .whole_tensors = kJambaWholeNames,
                                     .mixers = GgufMixers::mamba1};

constexpr std::array<GgufNamePair, 15> kLfm2Names = {{
    {"attn_norm", "operator_norm"},
    {"attn_output", "self_attn.out_proj"},
    {"attn_q_norm", "self_attn.q_layernorm"},
    {"attn_k_norm", "self_attn.k_layernorm"},
    {"shortconv.in_proj", "conv.in_proj"},
    {"shortconv.conv", "conv.conv"},
    {"shortconv.out_proj", "conv.out_proj"},
    {"ffn_norm", "ffn_norm"},
    {"ffn_gate", "feed_forward.w1"},
    {"ffn_up", "feed_forward.w3"},
    {"ffn_down", "feed_forward.w2"},
    {"ffn_gate_inp", "feed_forward.gate"},
    {"ffn_gate_exps", "feed_forward.experts.gate_proj"},
    {"ffn_up_exps", "feed_forward.experts.up_proj"},
    {"ffn_down_exps", "feed_forward.experts.down_proj"},
}};
// The final norm, which other architectures call output_norm; so do some files of these.
constexpr std::array<GgufNamePair, 3> kLfm2WholeNames = {{
    {"token_embd_norm.weight", "embedding_norm.weight"},
    {"output_norm.weight", "embedding_norm.weight"},
    {"exp_probs_b.bias", "feed_forward.expert_bias"},
}};
constexpr std::array<GgufNamePair, 3> kLfm2ExpertNames = {{
    {".gate_proj.", ".w1."},
    {".down_proj.", ".w2."},
    {".up_proj.", ".w3."},
}};
constexpr std::array<GgufNamePair, 2> kLfm2Fields = {{
    {"attention.layer_norm_rms_epsilon", "norm_eps"},
    {"expert_weights_scale", "routed_scaling_factor"},
}};
constexpr std::array<GgufNamePair, 1> kLfm2Sizes = {{
    {"shortconv.l_cache", "conv_L_cache"},
}};
constexpr GgufArchitecture kLfm2 = {.name = "lfm2",
                                    .model_type = "lfm2",
                                    .hf_class = "Lfm2ForCausalLM",
                                    .tensors = kLfm2Names,
                                    .whole_tensors = kLfm2WholeNames,
                                    .fields = kLfm2Fields,
                                    .sizes = kLfm2Sizes,
                                    .mixers = GgufMixers::convolutions};
constexpr GgufArchitecture kLfm2Moe = {.name = "lfm2moe",
                                       .model_type = "lfm2_moe",
                                       .hf_class = "Lfm2MoeForCausalLM",
                                       .mixture_names = kLfm2ExpertNames,
                                       .has_mixtures = true,
                                       .normalises_experts = true,
                                       .expert_gating = 2,
                                       .tensors = kLfm2Names,
                                       .whole_tensors = kLfm2WholeNames,
                                       .fields = kLfm2Fields,
                                       .sizes = kLfm2Sizes,
                                       .mixers = GgufMixers::convolutions};

// Newer files of DeepSeek have kv_b_proj as two tensors of three dimensions.
constexpr std::array<GgufNamePair, 11> kLatentTensors = {{
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
// Kimi delta attention (gguf-py's tensor_mapping.py, llama.cpp's convert_hf_to_gguf.py).
constexpr std::array<GgufNamePair, 11> kKimiWholeTensors = {{
    {"ssm_conv1d_q.weight", "self_attn.q_conv1d.weight"},
    {"ssm_conv1d_k.weight", "self_attn.k_conv1d.weight"},
    {"ssm_conv1d_v.weight", "self_attn.v_conv1d.weight"},
    {"ssm_f_a.weight", "self_attn.f_a_proj.weight"},
    {"ssm_f_b.weight", "self_attn.f_b_proj.weight"},
    {"ssm_g_a.weight", "self_attn.g_a_proj.weight"},
    {"ssm_g_b.weight", "self_attn.g_b_proj.weight"},
    {"ssm_beta.weight", "self_attn.b_proj.weight"},
    {"ssm_norm.weight", "self_attn.o_norm.weight"},
    {"ssm_a", "self_attn.A"},
    {"ssm_dt.bias", "self_attn.dt_bias"},
}};
constexpr std::array<GgufNamePair, 4> kKimiSizes = {{
    {"expert_shared_count", "num_shared_experts"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"kda.head_dim", "linear_head_dim"},
    {"ssm.conv_kernel", "linear_conv_kernel_dim"},
}};
constexpr GgufArchitecture kKimiLinear = {.name = "kimi-linear",
                                          .model_type = "kimi_linear",
                                          .hf_class = "KimiLinearForCausalLM",
                                          .has_mixtures = true,
                                          .normalises_experts = true,
                                          .expert_gating = 2,
                                          .tensors = kLatentTensors,
                                          .whole_tensors = kKimiWholeTensors,
                                          .fields = kGlmMoeFields,
                                          .sizes = kKimiSizes,
                                          .mixers = GgufMixers::channel_deltas,
                                          .has_latents = true};
constexpr GgufArchitecture kMiniCpm3 = {.name = "minicpm3",
                                        .model_type = "minicpm3",
                                        .hf_class = "MiniCPM3ForCausalLM",
                                        .tensors = kLatentTensors,
                                        .rope = GgufRope::long_factors,
                                        .has_latents = true};

// Decoders from before Llama, and their kin.
constexpr std::array<GgufNamePair, 5> kGpt2Names = {{
    {"attn_norm", "ln_1"},
    {"ffn_norm", "ln_2"},
    {"attn_qkv", "attn.c_attn"},
    {"attn_output", "attn.c_proj"},
    {"ffn_up", "mlp.c_fc"},
}};
constexpr std::array<GgufNamePair, 5> kGpt2WholeNames = {{
    {"ffn_down.weight", "mlp.c_proj.weight"},
    {"ffn_down.bias", "mlp.c_proj.bias"},
    {"position_embd.weight", "embed_positions.weight"},
    {"output_norm.weight", "ln_f.weight"},
    {"output_norm.bias", "ln_f.bias"},
}};
constexpr std::array<GgufNamePair, 1> kGptFields = {{
    {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
}};
constexpr std::array<GgufNamePair, 1> kGptSizes = {{{"feed_forward_length", "n_inner"}}};
constexpr GgufArchitecture kGpt2 = {.name = "gpt2",
                                    .model_type = "gpt2",
                                    .hf_class = "GPT2LMHeadModel",
                                    .tensors = kGpt2Names,
                                    .whole_tensors = kGpt2WholeNames,
                                    .fields = kGptFields,
                                    .sizes = kGptSizes,
                                    .activation = "gelu_new"};
constexpr GgufArchitecture kStarcoder = {.name = "starcoder",
                                         .model_type = "gpt_bigcode",
                                         .hf_class = "GPTBigCodeForCausalLM",
                                         .tensors = kGpt2Names,
                                         .whole_tensors = kGpt2WholeNames,
                                         .fields = kGptFields,
                                         .sizes = kGptSizes,
                                         .activation = "gelu_pytorch_tanh"};
constexpr std::array<GgufNamePair, 4> kNeoXNames = {{
    {"attn_qkv", "attention.query_key_value"},
    {"attn_output", "attention.dense"},
    {"ffn_up", "mlp.dense_h_to_4h"},
    {"ffn_down", "mlp.dense_4h_to_h"},
}};
constexpr std::array<GgufNamePair, 2> kNeoXWholeNames = {{
    {"output_norm.weight", "final_layer_norm.weight"},
    {"output_norm.bias", "final_layer_norm.bias"},
}};
constexpr std::array<GgufNamePair, 1> kNeoXFlags = {{
    {"use_parallel_residual", "use_parallel_residual"},
}};
constexpr GgufArchitecture kNeoX = {.name = "gptneox",
                                    .model_type = "gpt_neox",
                                    .hf_class = "GPTNeoXForCausalLM",
                                    .tensors = kNeoXNames,
                                    .whole_tensors = kNeoXWholeNames,
                                    .fields = kStableLmFields,
                                    .rope = GgufRope::partial,
                                    .flags = kNeoXFlags,
                                    .theta_field = "rotary_emb_base",
                                    .share_field = "rotary_pct",
                                    .joined_heads = true,
                                    .activation = "gelu"};
constexpr std::array<GgufNamePair, 3> kPhi2Names = {{
    {"attn_output", "self_attn.dense"},
    {"ffn_up", "mlp.fc1"},
    {"ffn_down", "mlp.fc2"},
}};
constexpr std::array<GgufNamePair, 2> kPhi2WholeNames = {{
    {"output_norm.weight", "final_layernorm.weight"},
    {"output_norm.bias", "final_layernorm.bias"},
}};
constexpr GgufArchitecture kPhi2 = {.name = "phi2",
                                    .model_type = "phi",
                                    .hf_class = "PhiForCausalLM",
                                    .tensors = kPhi2Names,
                                    .whole_tensors = kPhi2WholeNames,
                                    .fields = kStableLmFields,
                                    .rope = GgufRope::partial,
                                    .activation = "gelu_new"};
constexpr std::array<GgufNamePair, 1> kNemotronFields = {{
    {"attention.layer_norm_epsilon", "norm_eps"},
}};
constexpr GgufArchitecture kNemotron = {.name = "nemotron",
                                        .model_type = "nemotron",
                                        .hf_class = "NemotronForCausalLM",
                                        .fields = kNemotronFields,
                                        .rope = GgufRope::partial,
                                        .norms_plus_one = true,
                                        .activation = "relu2"};
constexpr std::array<GgufNamePair, 1> kOlmoFields = {{{"attention.clamp_kqv", "clip_qkv"}}};
constexpr GgufArchitecture kOlmo = {.name = "olmo",
                                    .model_type = "olmo",
                                    .hf_class = "OlmoForCausalLM",
                                    .interleaved_rotary = true,
                                    .fields = kOlmoFields};
constexpr GgufArchitecture kCommandR = {.name = "command-r",
                                        .model_type = "cohere",
                                        .hf_class = "CohereForCausalLM",
                                        .fields = kCohere2Fields,
                                        .may_have_qk_norm = true};
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
constexpr std::array<GgufNamePair, 3> kErnieMoeNames = {{
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
                                        .tensors = kErnieMoeNames,
                                        .whole_tensors = kErnieMoeWholeNames,
                                        .sizes = kErnieMoeSizes,
                                        .bias_field = "use_bias"};

constexpr auto kArchitectures = std::to_array<GgufArchitecture>(
    {kLlama,
     kMistral,
     {.name = "qwen2", .model_type = "qwen2", .hf_class = "Qwen2ForCausalLM"},
     {.name = "qwen3", .model_type = "qwen3", .hf_class = "Qwen3ForCausalLM"},
     {.name = "qwen2vl",
      .model_type = "qwen2_5_vl_text",
      .hf_class = "Qwen2_5_VLForConditionalGeneration",
      .has_position_sections = true},
     {.name = "qwen3vl",
      .model_type = "qwen3_vl_text",
      .hf_class = "Qwen3VLForConditionalGeneration",
      .has_position_sections = true},
     kSeedOss,
     kArcee,
     kErnie45,
     kGemma,
     kGemma2,
     kGemma3,
     kPhi3,
     kSmolLm3,
     kOlmo2,
     kGranite,
     kGlm4,
     kExaone4,
     kGemma4,
     kCohere2,
     kStableLm,
     kStarcoder2,
     kMistral3,
     {.name = "qwen2moe",
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
     kQwen35,
     kQwen35Moe,
     kQwen3Next,
     kGraniteHybrid,
     kNemotronH,
     kNemotronHMoe,
     kFalconH1,
     kMamba2,
     kMamba,
     kJamba,
     kLfm2,
     kLfm2Moe,
     kDeepSeek2,
     kKimiLinear,
     kMiniCpm3,
     kGpt2,
     kStarcoder,
     kNeoX,
     kPhi2,
     kNemotron,
     kOlmo,
     kCommandR,
     kHunyuan,
     kHunyuanMoe,
     kErnieMoe});

using NamePair = std::pair<std::string_view, std::string_view>;

constexpr std::array<NamePair, 3> kOutsideLayers = {
    NamePair{"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
};
constexpr std::array<NamePair, 24> kInLayers = {
    NamePair{"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.experts.gate_proj"},
    {"ffn_up_exps", "mlp.experts.up_proj"},
    {"ffn_down_exps", "mlp.experts.down_proj"},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
    {"nextn.eh_proj", "eh_proj"},
    {"nextn.embed_tokens", "embed_tokens"},
    {"nextn.enorm", "enorm"},
    {"nextn.hnorm", "hnorm"},
    {"nextn.shared_head_head", "shared_head.head"},
    {"nextn.shared_head_norm", "shared_head.norm"},
};
// With the kind, which checkpoints don't have here.
constexpr std::array<NamePair, 2> kWholeInLayers = {
    NamePair{"attn_sinks.weight", "self_attn.sinks"},
    {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
};
constexpr std::array<NamePair, 1> kTwoNorms = {NamePair{"ffn_norm", "post_attention_layernorm"}};
constexpr std::array<NamePair, 3> kFourNorms = {
    NamePair{"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};

std::string_view find_name(std::span<const NamePair> names, std::string_view gguf_name) {
  for (const auto& [theirs, ours] : names) {
    if (theirs == gguf_name) return ours;
  }
  return {};
}

std::string_view find_in_layer(const GgufArchitecture& architecture, std::string_view part) {
  for (const GgufNamePair& own : architecture.tensors) {
    if (own.theirs == part) return own.ours;
  }
  const std::string_view name = find_name(kInLayers, part);
  if (!name.empty()) return name;
  return architecture.four_norms ? find_name(kFourNorms, part) : find_name(kTwoNorms, part);
}

}  // namespace

const GgufArchitecture& find_gguf_architecture(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "general.architecture";
  const auto name = metadata.string(kKey);
  if (!name) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: {} is missing", metadata.file(), kKey));
  }
  std::string known;
  for (const GgufArchitecture& architecture : kArchitectures) {
    if (architecture.name == *name) return architecture;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", architecture.name);
  }
  throw Error(ErrorCode::unsupported, fmt::format("{}: {}: {}", metadata.file(), kKey,
                                                  unsupported_words(name->substr(0, 64), known)));
}

const GgufArchitecture* find_gguf_architecture(std::string_view model_type, bool has_mixture) {
  const auto* const found = std::ranges::find_if(kArchitectures, [&](const GgufArchitecture& one) {
    const std::string_view types[] = {one.model_type,      one.windowed_type, one.mixture_type,
                                      one.step_norms_type, one.sigmoid_type,  one.shared_type};
    return (one.has_mixtures || !has_mixture) &&
           std::ranges::find(types, model_type) != std::end(types);
  });
  return found == kArchitectures.end() ? nullptr : found;
}

std::vector<std::string> gguf_tensor_names(const GgufArchitecture& architecture,
                                           int64_t num_layers) {
  std::vector<std::string> in_layer;  // with their kinds
  const auto add_kinds = [&](std::string_view stem) {
    for (const std::string_view kind : {"weight", "bias"}) {
      in_layer.push_back(fmt::format("{}.{}", stem, kind));
    }
  };
  for (const GgufNamePair& own : architecture.whole_tensors) in_layer.emplace_back(own.theirs);
  for (const GgufNamePair& own : architecture.tensors) add_kinds(own.theirs);
  for (const NamePair& name : kInLayers) add_kinds(name.first);
  for (const NamePair& name : kWholeInLayers) in_layer.emplace_back(name.first);
  const std::span<const NamePair> norms =
      architecture.four_norms ? std::span<const NamePair>(kFourNorms) : kTwoNorms;
  for (const NamePair& name : norms) add_kinds(name.first);
  std::vector<std::string> names;
  for (const NamePair& name : kOutsideLayers) {
    for (const std::string_view kind : {"weight", "bias"}) {
      names.push_back(fmt::format("{}.{}", name.first, kind));
    }
  }
  for (const GgufNamePair& own : architecture.whole_tensors) names.emplace_back(own.theirs);
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    for (const std::string& name : in_layer) names.push_back(fmt::format("blk.{}.{}", layer, name));
  }
  return names;
}

std::string transformers_name(const GgufArchitecture& architecture, std::string_view name) {
  std::string renamed(name);
  if (name.ends_with(kGgufDecayRates)) return renamed + "_log";
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  if (!has(".mlp.gate.") && !has(".mlp.experts.") && !has(".feed_forward.experts.")) return renamed;
  for (const GgufNamePair& part : architecture.mixture_names) {
    const size_t at = renamed.find(part.theirs);
    if (at != renamed.npos) renamed.replace(at, part.theirs.size(), part.ours);
  }
  return renamed;
}

std::optional<std::string> checkpoint_name(const GgufArchitecture& architecture,
                                           std::string_view gguf_name) {
  constexpr std::string_view kLayer = "blk.";
  std::string_view layer, whole = gguf_name;  // "3" and "attn_q.weight"
  if (whole.starts_with(kLayer)) {
    const size_t end = std::min(whole.find('.', kLayer.size()), whole.size());
    layer = whole.substr(kLayer.size(), end - kLayer.size());
    whole.remove_prefix(std::min(end + 1, whole.size()));
  }
  const std::string prefix = layer.empty() ? "model." : fmt::format("model.layers.{}.", layer);
  for (const GgufNamePair& own : architecture.whole_tensors) {
    if (own.theirs == whole) return fmt::format("{}{}", prefix, own.ours);
  }
  const size_t dot = whole.rfind('.');
  if (dot == whole.npos) return std::string(gguf_name);
  const std::string_view kind = whole.substr(dot + 1);  // "weight", "bias"
  const std::string_view stem = whole.substr(0, dot);
  if (stem == "rope_freqs" || stem == "rope_factors_long" || stem == "rope_factors_short" ||
      stem == "attn_rot_embd")
    return std::nullopt;
  if (layer.empty()) {
    const std::string_view name = find_name(kOutsideLayers, stem);
    return name.empty() ? std::string(gguf_name) : fmt::format("{}.{}", name, kind);
  }
  if (const std::string_view name = find_name(kWholeInLayers, whole); !name.empty()) {
    return fmt::format("{}{}", prefix, name);
  }
  const std::string_view name = find_in_layer(architecture, stem);
  if (name.empty()) return std::string(gguf_name);
  return fmt::format("{}{}.{}", prefix, name, kind);
}

}  // namespace paceline
