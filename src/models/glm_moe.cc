// GLM 4.5's mixtures of experts (transformers' modeling_glm4_moe): DeepSeek V3's router and shared
// experts behind some dense layers.
#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kGlmMoeDefaults = {
    .num_heads = 96, .num_kv_heads = 8, .max_position = 131072};

}  // namespace

DecoderConfig read_glm4_moe(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kGlmMoeDefaults);
  decoder.norm_eps = static_cast<float>(config.number("rms_norm_eps", 1e-5));
  decoder.activation = read_activation(config, "hidden_act", "silu");
  if (config.boolean("use_qk_norm", false)) decoder.qk_norm = QkNorm::head;
  decoder.qkv_bias = config.boolean("attention_bias", false);
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  // The layers that predict further tokens come after these; they aren't used.
  const std::string_view key =
      config.has("num_mtp_layers") ? "num_mtp_layers" : "num_nextn_predict_layers";
  decoder.num_unused_layers = config.integer(key, 1);

  decoder.mixture = read_mixture(config, {.experts_key = "n_routed_experts",
                                          .num_experts = 128,
                                          .experts_per_token = 8,
                                          .expert_size = 1408});
  MixtureConfig& mixture = *decoder.mixture;
  read_grouped_routing(config, mixture.routing);
  mixture.has_choice_bias = true;
  if (const int64_t shared = config.integer("n_shared_experts", 1); shared > 0) {
    mixture.routing.shared = SharedExpert::plain;
    mixture.shared_size = shared * mixture.expert_size;
    mixture.names.shared = "mlp.shared_experts";
  }
  const auto dense = static_cast<size_t>(config.integer("first_k_dense_replace", 1));
  for (size_t i = dense; i < decoder.layers.size(); ++i) decoder.layers[i].is_mixture = true;
  read_ropes(config, {{.rotates_part = true, .default_share = 0.5}}, decoder);
  return decoder;
}

}  // namespace paceline
