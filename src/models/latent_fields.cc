#include "models/latent_fields.h"

#include <fmt/format.h>

#include <cmath>

namespace paceline {
namespace {

LatentConfig read_latent(const HfConfig& config, const LatentDefaults& defaults,
                         const DecoderConfig& decoder) {
  const int64_t value_dim = defaults.value_dim.value_or(decoder.hidden_size / decoder.num_heads);
  // Null is as absent for the others.
  const bool has_rank = defaults.query_rank && !config.is_null("q_lora_rank");
  return {.query_rank = config.has("q_lora_rank") ? config.integer("q_lora_rank")
                        : has_rank                ? *defaults.query_rank
                                                  : 0,
          .rank = config.integer("kv_lora_rank", defaults.rank),
          .nope_dim = config.integer("qk_nope_head_dim", defaults.nope_dim),
          .rope_dim = config.integer("qk_rope_head_dim", defaults.rope_dim),
          .value_dim = config.integer("v_head_dim", value_dim),
          .has_bias = config.boolean("attention_bias", false)};
}

void check_latent(const HfConfig& config, const LatentConfig& latent) {
  constexpr int64_t kMaxRow = 4096;  // as of head_dim
  if (latent.row_dim() > kMaxRow) {
    config.invalid("kv_lora_rank", fmt::format("{} and qk_rope_head_dim {}, expected at most {} "
                                               "together",
                                               latent.rank, latent.rope_dim, kMaxRow));
  }
}

void read_latent_rope(const HfConfig& config, const LatentDefaults& defaults,
                      const LatentConfig& latent, DecoderConfig& decoder) {
  // Null is false, as in transformers.
  const bool is_interleaved = !defaults.has_interleave_field
                                  ? defaults.interleaved
                                  : !config.is_null("rope_interleave") &&
                                        config.boolean("rope_interleave", defaults.interleaved);
  decoder.rope_pairs = is_interleaved ? RopePairs::neighbours : RopePairs::halves;
  RopeFields rope = defaults.rope;
  rope.scales_scores = true;
  decoder.head_dim = latent.rope_dim;
  if (defaults.rope_of_whole_head) {
    decoder.head_dim = latent.query_dim();
    rope.rotates_part = true;
    rope.default_share =
        static_cast<double>(latent.rope_dim) / static_cast<double>(latent.query_dim());
  }
  read_ropes(config, {rope}, decoder);
  if (decoder.rotary_dim == latent.rope_dim) return;
  config.invalid("partial_rotary_factor",
                 fmt::format("{} elements of a head rotate, expected the {} of qk_rope_head_dim",
                             decoder.rotary_dim, latent.rope_dim));
}

}  // namespace

void read_latent_attention(const HfConfig& config, const LatentDefaults& defaults,
                           DecoderConfig& decoder) {
  const LatentConfig latent = read_latent(config, defaults, decoder);
  check_latent(config, latent);
  decoder.attention_scale = 1.0f / std::sqrt(static_cast<float>(latent.query_dim()));
  if (defaults.has_rope) read_latent_rope(config, defaults, latent, decoder);
  decoder.num_kv_heads = 1;
  decoder.head_dim = latent.row_dim();
  decoder.latent = latent;
}

}  // namespace paceline
