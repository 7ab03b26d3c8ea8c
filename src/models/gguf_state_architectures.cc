// GGUF architectures whose layers, some or all, have states.
#include "models/gguf_architecture_groups.h"

namespace paceline {
namespace {

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

constexpr auto kStateArchitectures = std::to_array<GgufArchitecture>(
    {kQwen35, kQwen35Moe, kQwen3Next, kGraniteHybrid, kNemotronH, kNemotronHMoe, kFalconH1, kMamba2,
     kMamba, kJamba, kLfm2, kLfm2Moe, kKimiLinear});

}  // namespace

std::span<const GgufArchitecture> gguf_state_architectures() { return kStateArchitectures; }

}  // namespace paceline
