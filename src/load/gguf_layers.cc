#include "load/gguf_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace paceline {
namespace {

// rope_freqs.weight and its kind: the divisor of each frequency of a stretched rope.
std::optional<Json> divisors_of(const GgufFile& file, std::string_view name) {
  const GgufTensorInfo* table = file.find_tensor(name);
  if (table == nullptr) return std::nullopt;
  const size_t count = table->bytes.size() / sizeof(float);
  if (table->type != GgufType::f32 || table->extents.rank() != 1) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tensor {}: expected a vector of F32", file.path().string(), name));
  }
  Json::Array divisors;
  for (size_t i = 0; i < count; ++i) {
    float divisor = 0;
    std::memcpy(&divisor, table->bytes.data() + i * sizeof(float), sizeof(float));
    divisors.emplace_back(static_cast<double>(divisor));
  }
  return Json(std::move(divisors));
}

// Divides each frequency by its own number and multiplies the angles: transformers' longrope with
// equal factors for short and long texts.
Json divided_scaling(const Json& divisors, double attention_factor) {
  return Json(Json::Object{{"rope_type", Json(std::string("longrope"))},
                           {"attention_factor", Json(attention_factor)},
                           {"short_factor", divisors},
                           {"long_factor", divisors}});
}

Json linear_scaling(const GgufRopeShape& shape, double factor, double attention_factor) {
  if (attention_factor != 1.0) {
    constexpr int64_t kMaxPairs = 2048;  // the config's reader refuses larger heads
    const auto count = static_cast<size_t>(std::clamp<int64_t>(shape.rotated / 2, 0, kMaxPairs));
    return divided_scaling(Json(Json::Array(count, Json(factor))), attention_factor);
  }
  if (factor == 1.0) return Json();
  return Json(Json::Object{{"rope_type", Json(std::string("linear"))}, {"factor", Json(factor)}});
}

double magnitude(double factor, double multiplier) {
  return factor <= 1.0 ? 1.0 : 1.0 + 0.1 * multiplier * std::log(factor);
}

// YaRN's own factor of all angles: transformers' attention_factor, which convert_hf_to_gguf.py
// writes. 1 counts as absent, because llama.cpp writes it into every file that it saves.
std::optional<double> yarn_attention_factor(const GgufFields& fields) {
  const double factor = fields.number("rope.scaling.yarn_attn_factor").value_or(1.0);
  return factor == 1.0 ? std::nullopt : std::optional<double>(factor);
}

// `attention_factor` multiplies YaRN's own, which the log multiplier divides (llama.cpp).
Json yarn_scaling(const GgufFields& fields, const GgufRopeShape& shape, double factor,
                  double attention_factor) {
  const int64_t original =
      fields.integer("rope.scaling.original_context_length").value_or(shape.context);
  Json::Object yarn = {{"rope_type", Json(std::string("yarn"))},
                       {"factor", Json(factor)},
                       {"original_max_position_embeddings", Json(original)}};
  for (const auto& [theirs, ours] : {std::pair{"rope.scaling.yarn_beta_fast", "beta_fast"},
                                     {"rope.scaling.yarn_beta_slow", "beta_slow"}}) {
    if (const auto beta = fields.number(theirs)) yarn.emplace_back(ours, *beta);
  }
  const double multiplier = fields.number("rope.scaling.yarn_log_multiplier").value_or(0.0);
  if (fields.architecture().has_latents) {
    // convert_hf_to_gguf.py writes a tenth of mscale_all_dim; llama.cpp takes mscale to be the
    // same.
    yarn.emplace_back("mscale", 10.0 * multiplier);
    yarn.emplace_back("mscale_all_dim", 10.0 * multiplier);
    return Json(std::move(yarn));
  }
  const double divisor = multiplier == 0.0 ? 1.0 : magnitude(factor, multiplier);
  const auto stored = yarn_attention_factor(fields);
  if (attention_factor != 1.0 || divisor != 1.0 || stored) {
    const double own = stored.value_or(magnitude(factor, 1.0) / divisor);
    yarn.emplace_back("attention_factor", attention_factor * own);
  }
  return Json(std::move(yarn));
}

// The divisor of positions; 0 counts as absent, as in llama.cpp.
double factor_of(const GgufFields& fields) {
  constexpr std::string_view kKey = "rope.scaling.factor";
  constexpr std::string_view kOldKey = "rope.scale_linear";
  const std::string_view key = fields.number(kKey) ? kKey : kOldKey;
  const double factor = fields.number(key).value_or(0.0);
  if (factor < 0) fields.corrupt(key, fmt::format("{}, expected more than 0", factor));
  return factor == 0.0 ? 1.0 : factor;
}

// Whether the extrapolation factor means YaRN (1) or linear scaling (0); a negative one is the
// type's default.
bool is_yarn(const GgufFields& fields, std::string_view type) {
  constexpr std::string_view kKey = "rope.scaling.yarn_ext_factor";
  const double usual = type == "yarn" ? 1.0 : 0.0;
  double kept = fields.number(kKey).value_or(usual);
  if (kept < 0) kept = usual;
  if (kept != 0.0 && kept != usual) {
    fields.unsupported(
        kKey, fmt::format("factors other than 0 and 1 (found {}, scaling type {})", kept, type));
  }
  return kept == 1.0;
}

// The file's factor of all angles, in addition to its scaling's.
double attention_factor_of(const GgufFields& fields, bool yarn) {
  const double factor = fields.number("rope.scaling.attn_factor").value_or(1.0);
  if (factor != 1.0 && fields.architecture().two_ropes) {
    fields.unsupported("rope.scaling.attn_factor", "factors beside two ropes");
  }
  return yarn ? factor : factor * yarn_attention_factor(fields).value_or(1.0);
}

// The lists of LongRoPE; nothing in files of models without it.
std::optional<Json> longrope_of(const GgufFile& file, const GgufFields& fields) {
  auto longer = divisors_of(file, "rope_factors_long.weight");
  auto shorter = divisors_of(file, "rope_factors_short.weight");
  if (!longer && !shorter) return std::nullopt;
  if (!longer || !shorter) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: rope_factors_long.weight and rope_factors_short.weight: expected "
                            "both",
                            file.path().string()));
  }
  return Json(Json::Object{
      {"rope_type", Json(std::string("longrope"))},
      {"attention_factor", Json(fields.number("rope.scaling.attn_factor").value_or(1.0))},
      {"short_factor", std::move(*shorter)},
      {"long_factor", std::move(*longer)}});
}

// `rope_scaling`; null: none.
Json gguf_rope_scaling(const GgufFile& file, const GgufFields& fields, const GgufRopeShape& shape) {
  const std::string_view type = fields.string("rope.scaling.type").value_or("linear");
  if (type != "none" && type != "linear" && type != "yarn") {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{}: {}: \"{}\" isn't supported; none, linear and yarn are",
                    fields.metadata().file(), fields.key("rope.scaling.type"), type.substr(0, 64)));
  }
  const double factor = type == "none" ? 1.0 : factor_of(fields);
  const bool yarn = is_yarn(fields, type);
  const double attention_factor = attention_factor_of(fields, yarn);
  if (const auto divisors = divisors_of(file, "rope_freqs.weight")) {
    if (factor == 1.0) return divided_scaling(*divisors, attention_factor);
    fields.unsupported("rope.scaling.factor", "scalings beside rope_freqs.weight");
  }
  if (yarn && factor != 1.0) return yarn_scaling(fields, shape, factor, attention_factor);
  return linear_scaling(shape, factor, attention_factor);
}

double rope_theta(const GgufFields& fields) {
  return fields.number("rope.freq_base").value_or(1e4);
}

// A rope as an object of its own: its scaling, or none, with theta.
Json::Object whole_rope(const Json& scaling, double theta) {
  Json::Object rope;
  if (scaling.is_null()) {
    rope.emplace_back("rope_type", std::string("default"));
  } else {
    rope = *scaling.object();
  }
  rope.emplace_back("rope_theta", theta);
  return rope;
}

}  // namespace

void add_gguf_rope(const GgufFile& file, const GgufFields& fields, const GgufRopeShape& shape,
                   Json::Object& config) {
  const GgufRope kind = fields.architecture().rope;
  if (kind == GgufRope::long_factors) {
    if (auto longrope = longrope_of(file, fields)) {
      config.emplace_back("rope_scaling", std::move(*longrope));
      const auto original = fields.integer("rope.scaling.original_context_length");
      config.emplace_back("original_max_position_embeddings", original.value_or(shape.context));
      return;
    }
  }
  Json scaling = gguf_rope_scaling(file, fields, shape);
  const bool is_windowed = fields.integer("attention.sliding_window").value_or(0) > 0;
  if (kind == GgufRope::by_layer && is_windowed) {
    const double sliding_theta = fields.number("rope.freq_base_swa").value_or(rope_theta(fields));
    config.emplace_back(
        "rope_parameters",
        Json(Json::Object{{"full_attention", Json(whole_rope(scaling, rope_theta(fields)))},
                          {"sliding_attention", Json(whole_rope(Json(), sliding_theta))}}));
  } else if (kind == GgufRope::untruncated) {
    Json::Object rope = whole_rope(scaling, rope_theta(fields));
    rope.emplace_back("truncate", false);
    config.emplace_back("rope_parameters", Json(std::move(rope)));
  } else if (kind == GgufRope::growing) {
    Json::Object rope = whole_rope(scaling, rope_theta(fields));
    const double growth = fields.number("attention.temperature_scale").value_or(0.0);
    rope.emplace_back("llama_4_scaling_beta", growth);
    const auto has_context = [](const auto& member) {
      return member.first == "original_max_position_embeddings";
    };
    if (std::ranges::none_of(rope, has_context)) {  // transformers needs it, whatever beta is
      rope.emplace_back("original_max_position_embeddings", shape.context);
    }
    config.emplace_back("rope_parameters", Json(std::move(rope)));
  } else if (!scaling.is_null()) {
    config.emplace_back("rope_scaling", std::move(scaling));
  }
}

std::vector<bool> gguf_windowed_layers(const GgufFields& fields, int64_t layers) {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  std::vector<bool> windowed;
  if (fields.metadata().is_array(fields.key(kPattern))) {
    const auto listed = fields.metadata().integers(fields.key(kPattern)).value();
    if (static_cast<int64_t>(listed.size()) < layers) {
      fields.corrupt(kPattern, fmt::format("{} entries for {} layers", listed.size(), layers));
    }
    for (int64_t i = 0; i < layers; ++i) windowed.push_back(listed[static_cast<size_t>(i)] != 0);
    return windowed;
  }
  const int64_t pattern =
      std::max<int64_t>(fields.integer(kPattern).value_or(fields.architecture().window_pattern), 0);
  for (int64_t i = 0; i < layers; ++i) windowed.push_back(pattern == 0 || (i + 1) % pattern != 0);
  return windowed;
}

void add_gguf_mixed_ropes(const GgufFile& file, const GgufFields& fields, Json::Object& config) {
  constexpr double kNoAngle = 1e10;  // a divisor that leaves none; files have 1e30
  if (factor_of(fields) != 1.0) fields.unsupported("rope.scaling.factor", "scalings of two ropes");
  for (const auto& [rotated, head] : {std::pair{"rope.dimension_count", "attention.key_length"},
                                      {"rope.dimension_count_swa", "attention.key_length_swa"}}) {
    if (fields.integer(rotated).value_or(fields.size(head)) != fields.size(head)) {
      fields.unsupported(rotated, "parts of heads that rotate");
    }
  }
  Json::Object full = {{"rope_type", Json(std::string("proportional"))},
                       {"rope_theta", Json(rope_theta(fields))}};
  if (const auto divisors = divisors_of(file, "rope_freqs.weight")) {
    const Json::Array& all = divisors->as_array("rope_freqs.weight");
    size_t kept = 0;
    while (kept < all.size() && *all[kept].number() == 1.0) ++kept;
    for (size_t i = kept; i < all.size(); ++i) {
      if (*all[i].number() < kNoAngle) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("{}: tensor rope_freqs.weight: found {}, expected 1 for the first "
                                "frequencies and 1e30 for the others",
                                file.path().string(), *all[i].number()));
      }
    }
    // Of the whole head; half of an element more, because the config's reader rounds down.
    const double share = (static_cast<double>(kept) + 0.25) / static_cast<double>(all.size());
    full.emplace_back("partial_rotary_factor", std::min(share, 1.0));
  }
  Json::Object sliding = whole_rope(Json(), fields.number("rope.freq_base_swa").value_or(1e4));
  config.emplace_back("rope_parameters",
                      Json(Json::Object{{"full_attention", Json(std::move(full))},
                                        {"sliding_attention", Json(std::move(sliding))}}));
}

void add_gguf_windows(const GgufFields& fields, int64_t layers, Json::Object& config) {
  const GgufArchitecture& architecture = fields.architecture();
  const int64_t window =
      fields.integer("attention.sliding_window").value_or(architecture.default_window);
  if (architecture.window_pattern == 0) {
    config.emplace_back("sliding_window", window > 0 ? Json(window) : Json());  // null: none
    return;
  }
  Json::Array types;
  for (const bool windowed : gguf_windowed_layers(fields, layers)) {
    types.emplace_back(
        std::string(windowed && window > 0 ? "sliding_attention" : "full_attention"));
  }
  config.emplace_back("layer_types", std::move(types));
  config.emplace_back("sliding_window", window > 0 ? Json(window) : Json());
}

}  // namespace paceline
