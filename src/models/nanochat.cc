// NanoChat (transformers' modeling_nanochat): norms without weights, of the embedding too, and of q
// and k behind a rotation that turns backwards; an MLP of relu(x)^2 without a gate.
#include "models/family.h"

namespace paceline {
namespace {

constexpr CommonDefaults kNanoChatDefaults = {
    .vocab_size = 50304, .num_heads = 6, .intermediate_size = 8192, .hidden_size = 768};

}  // namespace

DecoderConfig read_nanochat(const HfConfig& config, const WeightReader& weights) {
  constexpr double kCap = 15.0;
  DecoderConfig decoder = read_common(config, weights, kNanoChatDefaults);
  read_plain_mlp(config, "hidden_act", "relu2", decoder);
  decoder.mlp_names.up = "fc1";
  decoder.mlp_names.down = "fc2";
  decoder.qkv_bias = decoder.output_bias = config.boolean("attention_bias", false);
  decoder.norm_weight = false;
  decoder.embedding_norm = true;
  decoder.qk_norm = QkNorm::head;
  decoder.rotates_first = true;
  decoder.final_soft_cap =
      static_cast<float>(config.number_or_null("final_logit_softcapping", kCap).value_or(0.0));
  decoder.layers = uniform_layers(read_num_layers(config), 0);
  read_ropes(config, {{}}, decoder);
  for (RopeConfig& rope : decoder.ropes) rope.backwards = true;
  return decoder;
}

}  // namespace paceline
