// GGUF architectures of dense models whose layers are attention and MLPs as Llama's.
#include "models/gguf_architecture_groups.h"

namespace paceline {
namespace {

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
constexpr std::array<GgufNamePair, 2> kApertusNames = {{
    {"attn_norm", "attention_layernorm"},
    {"ffn_norm", "feedforward_layernorm"},
}};
constexpr std::array<GgufNamePair, 4> kApertusNumbers = {{
    {"xielu.alpha_n", "mlp.act_fn.alpha_n"},
    {"xielu.alpha_p", "mlp.act_fn.alpha_p"},
    {"xielu.beta", "mlp.act_fn.beta?"},
    {"xielu.eps", "mlp.act_fn.eps?"},
}};
constexpr GgufArchitecture kApertus = {.name = "apertus",
                                       .model_type = "apertus",
                                       .hf_class = "ApertusForCausalLM",
                                       .tensors = kApertusNames,
                                       .layer_numbers = kApertusNumbers,
                                       .activation = "xielu"};
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

constexpr GgufArchitecture kExaone = {
    .name = "exaone", .model_type = "exaone", .hf_class = "ExaoneForCausalLM"};
constexpr GgufArchitecture kJais2 = {.name = "jais2",
                                     .model_type = "jais2",
                                     .hf_class = "Jais2ForCausalLM",
                                     .fields = kStableLmFields,
                                     .activation = "relu2"};

constexpr auto kDenseArchitectures = std::to_array<GgufArchitecture>(
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
     kExaone,
     kJais2,
     kApertus});

}  // namespace

std::span<const GgufArchitecture> gguf_dense_architectures() { return kDenseArchitectures; }

}  // namespace paceline
