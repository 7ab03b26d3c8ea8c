// Hunyuan (transformers' modeling_hunyuan_v1_dense and _hunyuan_v1_moe): Llama's block with norms
// of each head of q and k behind the rotation; a mixture of experts with a shared one.
#include <fmt/format.h>

#include "models/family.h"
#include "models/mixture_fields.h"

namespace paceline {
namespace {

constexpr CommonDefaults kHunyuanDefaults = {
    .vocab_size = 290943, .num_heads = 32, .intermediate_size = 11008, .norm_eps = 1e-5};

// A number of all layers, or a list with one for each; these must be the same.
int64_t read_for_layers(const HfConfig& config, std::string_view key, int64_t otherwise,
                        const NumberRange& range) {
  const auto found = config.find(key);
  if (!found) return otherwise;
  if (!found->is_array()) return found->integer(range);
  const auto items = found->items();
  if (items.empty()) config.invalid(key, "an empty list, expected a number for each layer");
  const int64_t first = items.front().integer(range);
  for (const JsonCursor& item : items) {
    if (item.integer(range) == first) continue;
    item.fail(ErrorCode::unsupported,
              fmt::format("found {} after {}, expected the same for all layers",
                          item.integer(range), first));
  }
  return first;
}

}  // namespace

DecoderConfig read_hunyuan(const HfConfig& config, const WeightReader& weights) {
  DecoderConfig decoder = read_common(config, weights, kHunyuanDefaults);
  decoder.activation = read_activation(config, "hidden_act", "silu");
  decoder.qkv_bias = decoder.output_bias = config.boolean("attention_bias", false);
  decoder.qk_norm = QkNorm::head;
  decoder.rotates_first = true;
  decoder.attention_names.q_norm = "query_layernorm";
  decoder.attention_names.k_norm = "key_layernorm";
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{.may_have_alpha = true}}, decoder);
  return decoder;
}

DecoderConfig read_hunyuan_moe(const HfConfig& config, const WeightReader& weights) {
  constexpr NumberRange kExperts = {.min = 1, .max = 4096};
  DecoderConfig decoder = read_hunyuan(config, weights);
  MixtureConfig mixture;
  mixture.routing.num_experts = read_for_layers(config, "num_experts", 1, kExperts);
  mixture.routing.experts_per_token = read_for_layers(config, "moe_topk", 1, kExperts);
  if (mixture.routing.experts_per_token > mixture.routing.num_experts) {
    config.invalid("moe_topk", fmt::format("{} of {} experts", mixture.routing.experts_per_token,
                                           mixture.routing.num_experts));
  }
  mixture.routing.normalise = true;
  mixture.routing.shared = SharedExpert::plain;
  mixture.expert_size = mixture.shared_size = decoder.intermediate_size;
  mixture.names.router = "mlp.gate.wg";
  mixture.names.shared = "mlp.shared_mlp";
  decoder.mixture = mixture;
  mix_all_layers(decoder.layers);
  return decoder;
}

}  // namespace paceline
