#include "models/hf_config.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace paceline {
namespace {

[[noreturn]] void missing(const std::string& path, std::string_view expected) {
  throw Error(ErrorCode::invalid, fmt::format("{}: missing, expected {}", path, expected));
}

double positive(const HfConfig& config, std::string_view key, std::optional<double> fallback) {
  const double value = config.number(key, fallback);
  if (!(value > 0)) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: expected a positive number, found {}", config.path(key), value));
  }
  return value;
}

// The magnitude correction of YaRN for a context stretched `factor` times.
double yarn_magnitude(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

double read_yarn_attention_factor(const HfConfig& scaling, double factor) {
  if (scaling.has("attention_factor")) return positive(scaling, "attention_factor", {});
  if (scaling.has("mscale") && scaling.has("mscale_all_dim")) {
    return yarn_magnitude(factor, scaling.number("mscale")) /
           yarn_magnitude(factor, scaling.number("mscale_all_dim"));
  }
  return yarn_magnitude(factor, 1.0);
}

std::vector<float> read_divisors(const HfConfig& scaling, std::string_view key) {
  const std::string path = scaling.path(key);
  const Json* field = scaling.find(key);
  if (field == nullptr) missing(path, "a list of numbers");
  std::vector<float> divisors;
  for (const Json& item : field->as_array(path)) {
    divisors.push_back(static_cast<float>(item.as_double(path)));
    if (std::isfinite(divisors.back()) && divisors.back() > 0) continue;
    throw Error(ErrorCode::invalid,
                fmt::format("{}[{}]: expected a positive number", path, divisors.size() - 1));
  }
  return divisors;
}

// LongRoPE (Ding et al., 2024) whose short and long contexts have the same factors: each frequency
// has a divisor of its own (transformers' _compute_longrope_parameters).
RopeConfig read_divided(const HfConfig& scaling, double theta) {
  RopeConfig rope{.theta = theta, .scaling = RopeScaling::by_frequency};
  rope.frequency_divisors = read_divisors(scaling, "long_factor");
  if (read_divisors(scaling, "short_factor") != rope.frequency_divisors) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: differs from long_factor: frequencies that depend on the length "
                            "of the text aren't supported",
                            scaling.path("short_factor")));
  }
  rope.attention_factor = positive(scaling, "attention_factor", {});
  return rope;
}

RopeConfig read_scaling(const HfConfig& scaling, double theta, int64_t max_position) {
  RopeConfig rope{.theta = theta};
  const std::string type = scaling.string("rope_type", scaling.string("type", "default"));
  if (type == "default") return rope;
  if (type == "longrope") return read_divided(scaling, theta);
  rope.factor = positive(scaling, "factor", {});
  rope.original_max_position =
      positive(scaling, "original_max_position_embeddings", static_cast<double>(max_position));
  if (type == "linear") {
    rope.scaling = RopeScaling::linear;
  } else if (type == "llama3") {
    rope.scaling = RopeScaling::by_wavelength;
    rope.low_freq_factor = positive(scaling, "low_freq_factor", 1.0);
    rope.high_freq_factor = positive(scaling, "high_freq_factor", 4.0);
    if (rope.high_freq_factor == rope.low_freq_factor) {
      throw Error(ErrorCode::invalid, fmt::format("{}: equals low_freq_factor, must be larger",
                                                  scaling.path("high_freq_factor")));
    }
  } else if (type == "yarn") {
    rope.scaling = RopeScaling::yarn;
    rope.beta_fast = positive(scaling, "beta_fast", 32.0);
    rope.beta_slow = positive(scaling, "beta_slow", 1.0);
    rope.attention_factor = read_yarn_attention_factor(scaling, rope.factor);
  } else {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{}: \"{}\" isn't supported; default, linear, llama3, yarn and longrope are",
                    scaling.path("rope_type"), type));
  }
  return rope;
}

}  // namespace

std::string HfConfig::path(std::string_view key) const {
  return fmt::format("{}: {}", where_, key);
}

int64_t HfConfig::integer(std::string_view key, std::optional<int64_t> fallback,
                          Range range) const {
  const Json* field = find(key);
  if (field == nullptr && fallback) return *fallback;
  if (field == nullptr) missing(path(key), "an integer");
  const int64_t value = field->as_int(path(key));
  if (value < range.min || value > range.max) {
    throw Error(ErrorCode::invalid, fmt::format("{}: expected {} to {}, found {}", path(key),
                                                range.min, range.max, value));
  }
  return value;
}

double HfConfig::number(std::string_view key, std::optional<double> fallback) const {
  const Json* field = find(key);
  if (field == nullptr && fallback) return *fallback;
  if (field == nullptr) missing(path(key), "a number");
  return field->as_double(path(key));
}

bool HfConfig::boolean(std::string_view key, bool fallback) const {
  const Json* field = find(key);
  return field == nullptr ? fallback : field->as_bool(path(key));
}

std::string HfConfig::string(std::string_view key, std::string_view fallback) const {
  const Json* field = find(key);
  return field == nullptr ? std::string(fallback) : field->as_string(path(key));
}

RopeConfig read_rope(const HfConfig& config, const RopeFields& fields) {
  const int64_t max_position = config.integer("max_position_embeddings", 2048, {1, 1 << 30});
  if (const Json* parameters = config.find("rope_parameters")) {
    const Json* nested = parameters->find_value(fields.layer_type);
    const HfConfig rope(nested != nullptr ? *nested : *parameters, config.path("rope_parameters"));
    const double fallback = positive(config, fields.theta_key, fields.default_theta);
    return read_scaling(rope, positive(rope, "rope_theta", fallback), max_position);
  }
  const double theta = positive(config, fields.theta_key, fields.default_theta);
  const Json* scaling = fields.scaled ? config.find("rope_scaling") : nullptr;
  if (scaling == nullptr) return {.theta = theta};
  scaling->as_object(config.path("rope_scaling"));
  return read_scaling(HfConfig(*scaling, config.path("rope_scaling")), theta, max_position);
}

std::optional<std::vector<bool>> read_sliding_layers(const HfConfig& config, int64_t num_layers) {
  const Json* field = config.find("layer_types");
  if (field == nullptr) return std::nullopt;
  const std::string path = config.path("layer_types");
  const Json::Array& types = field->as_array(path);
  if (static_cast<int64_t>(types.size()) != num_layers) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: {} entries for {} layers", path, types.size(), num_layers));
  }
  std::vector<bool> sliding;
  for (const Json& type : types) {
    const std::string& name = type.as_string(path);
    if (name != "sliding_attention" && name != "full_attention") {
      throw Error(
          ErrorCode::unsupported,
          fmt::format("{}: \"{}\" isn't supported; full_attention and sliding_attention are", path,
                      name));
    }
    sliding.push_back(name == "sliding_attention");
  }
  return sliding;
}

Activation read_activation(const HfConfig& config, std::string_view key,
                           std::string_view fallback) {
  const std::string name = config.string(key, fallback);
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::gelu_tanh;
  if (name == "gelu") return Activation::gelu_erf;
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: \"{}\" isn't supported; silu, gelu and gelu_pytorch_tanh are",
                          config.path(key), name));
}

}  // namespace paceline
