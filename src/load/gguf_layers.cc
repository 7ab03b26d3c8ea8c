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

// rope_freqs.weight: what each frequency is divided by, where ropes are stretched.
std::optional<Json> divisors_of(const GgufFile& file) {
  const GgufTensorInfo* table = file.find_tensor("rope_freqs.weight");
  if (table == nullptr) return std::nullopt;
  const size_t count = table->bytes.size() / sizeof(float);
  if (table->type != GgufType::f32 || table->extents.rank() != 1) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: tensor rope_freqs.weight: expected a vector "
                                                "of F32",
                                                file.path().string()));
  }
  Json::Array divisors;
  for (size_t i = 0; i < count; ++i) {
    float divisor = 0;
    std::memcpy(&divisor, table->bytes.data() + i * sizeof(float), sizeof(float));
    divisors.emplace_back(static_cast<double>(divisor));
  }
  return Json(std::move(divisors));
}

// With every list of factors the same; transformers' name for divisors by frequency.
Json divided_scaling(const Json& divisors, int64_t context) {
  return Json(Json::Object{{"rope_type", Json(std::string("longrope"))},
                           {"factor", Json(1.0)},
                           {"original_max_position_embeddings", Json(context)},
                           {"attention_factor", Json(1.0)},
                           {"short_factor", divisors},
                           {"long_factor", divisors}});
}

Json yarn_scaling(const GgufFields& fields, double factor, int64_t context) {
  const int64_t original = fields.integer("rope.scaling.original_context_length").value_or(context);
  Json::Object yarn = {{"rope_type", Json(std::string("yarn"))},
                       {"factor", Json(factor)},
                       {"original_max_position_embeddings", Json(original)}};
  for (const auto& [theirs, ours] : {std::pair{"rope.scaling.yarn_beta_fast", "beta_fast"},
                                     {"rope.scaling.yarn_beta_slow", "beta_slow"}}) {
    if (const auto beta = fields.number(theirs)) yarn.emplace_back(ours, *beta);
  }
  // Beside YaRN's own 0.1 ln(factor) + 1.
  const double scale = fields.number("rope.scaling.attn_factor").value_or(1.0);
  if (scale != 1.0 && factor > 1.0) {
    yarn.emplace_back("attention_factor", scale * (0.1 * std::log(factor) + 1.0));
  }
  return Json(std::move(yarn));
}

// Which layers have a window: a list in the file, or all but every pattern-th.
std::vector<bool> windowed_layers_of(const GgufFields& fields, int64_t layers) {
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

}  // namespace

Json gguf_rope_scaling(const GgufFile& file, const GgufFields& fields, int64_t context) {
  const bool old_spelling = fields.metadata().contains(fields.key("rope.scale_linear"));
  const std::string_view type =
      fields.string("rope.scaling.type").value_or(old_spelling ? "linear" : "none");
  const auto divisors = divisors_of(file);
  const std::string_view factor_key = old_spelling ? "rope.scale_linear" : "rope.scaling.factor";
  const double factor = fields.number(factor_key).value_or(1.0);
  if (!(factor > 0)) fields.corrupt(factor_key, fmt::format("{}, expected more than 0", factor));
  if (divisors && (type == "none" || factor == 1.0)) return divided_scaling(*divisors, context);
  if (divisors) fields.unsupported("rope.scaling.type", "scalings beside rope_freqs.weight");
  if (type == "none" || factor == 1.0) return Json();
  if (type == "yarn") return yarn_scaling(fields, factor, context);
  if (type == "linear") {
    return Json(Json::Object{{"rope_type", Json(std::string("linear"))}, {"factor", Json(factor)}});
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: {}: \"{}\" isn't supported; none, linear and yarn are",
                          fields.metadata().file(), fields.key("rope.scaling.type"), type));
}

void add_gguf_windows(const GgufFields& fields, int64_t layers, Json::Object& config) {
  const GgufArchitecture& architecture = fields.architecture();
  const int64_t window =
      fields.integer("attention.sliding_window").value_or(architecture.default_window);
  if (architecture.window_pattern == 0) {
    if (window > 0) config.emplace_back("sliding_window", window);
    return;
  }
  Json::Array types;
  for (const bool windowed : windowed_layers_of(fields, layers)) {
    types.emplace_back(
        std::string(windowed && window > 0 ? "sliding_attention" : "full_attention"));
  }
  config.emplace_back("layer_types", std::move(types));
  if (window > 0) config.emplace_back("sliding_window", window);
}

}  // namespace paceline
