// GGUF architectures of decoders from before Llama, and of their kin.
#include "models/gguf_architecture_groups.h"

namespace paceline {
namespace {

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

// In files with two norms a layer attn_norm is the MLP's.
constexpr std::array<GgufNamePair, 5> kFalconNames = {{
    {"attn_norm_2", "ln_attn"},
    {"attn_qkv", "self_attention.query_key_value"},
    {"attn_output", "self_attention.dense"},
    {"ffn_up", "mlp.dense_h_to_4h"},
    {"ffn_down", "mlp.dense_4h_to_h"},
}};
constexpr std::array<GgufNamePair, 2> kFalconWholeNames = {{
    {"output_norm.weight", "ln_f.weight"},
    {"output_norm.bias", "ln_f.bias"},
}};
constexpr std::array<GgufNamePair, 2> kFalconSizes = {{
    {"feed_forward_length", "ffn_hidden_size"},
    {"attention.head_count_kv", "num_kv_heads"},
}};
constexpr GgufArchitecture kFalcon = {.name = "falcon",
                                      .model_type = "falcon",
                                      .hf_class = "FalconForCausalLM",
                                      .tensors = kFalconNames,
                                      .whole_tensors = kFalconWholeNames,
                                      .fields = kGptFields,
                                      .sizes = kFalconSizes,
                                      .bias_field = "bias",
                                      .joined_heads = true,
                                      .has_norms_beside = true,
                                      .activation = "gelu"};

constexpr auto kEarlyArchitectures = std::to_array<GgufArchitecture>(
    {kGpt2, kStarcoder, kNeoX, kPhi2, kNemotron, kOlmo, kCommandR, kFalcon});

}  // namespace

std::span<const GgufArchitecture> gguf_early_architectures() { return kEarlyArchitectures; }

}  // namespace paceline
