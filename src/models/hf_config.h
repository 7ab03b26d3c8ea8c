// HfConfig reads the fields of a Hugging Face config.json in the spellings of transformers 4 and 5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "models/decoder_config.h"

namespace paceline {

// The bounds a size from a file must lie in before anything is allocated by it.
struct Range {
  int64_t min = 1;
  int64_t max = int64_t{1} << 24;
};

// Errors are Error invalid "config.json: FIELD: ..." naming what was found and what was expected. A
// null counts as absent.
class HfConfig {
 public:
  // `json` must outlive it; `where` names the file in errors.
  HfConfig(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  bool has(std::string_view key) const { return json_.find_value(key) != nullptr; }
  const Json* find(std::string_view key) const { return json_.find_value(key); }
  std::string path(std::string_view key) const;

  int64_t integer(std::string_view key, std::optional<int64_t> fallback = {},
                  Range range = {}) const;
  // A finite number.
  double number(std::string_view key, std::optional<double> fallback = {}) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string string(std::string_view key, std::string_view fallback) const;

 private:
  const Json& json_;
  std::string where_;
};

// What is added to stored norm weights, in configs made from files that store the sums; of our own.
inline constexpr std::string_view kNormWeightOffsetField = "paceline_norm_weight_offset";

// The rope of one kind of layer: `rope_parameters` (transformers 5, flat or nested by layer type)
// or `rope_theta` and `rope_scaling` (transformers 4). Scalings other than default, linear, llama3,
// yarn, and longrope with one list of factors throw Error unsupported.
struct RopeFields {
  std::string_view layer_type = "full_attention";  // the key in nested rope_parameters
  std::string_view theta_key = "rope_theta";       // transformers 4
  bool scaled = true;                              // transformers 4: rope_scaling applies
  double default_theta = 10000.0;
};
RopeConfig read_rope(const HfConfig& config, const RopeFields& fields);

// `layer_types` as true for "sliding_attention", false for "full_attention"; nothing when absent.
std::optional<std::vector<bool>> read_sliding_layers(const HfConfig& config, int64_t num_layers);

// hidden_act / hidden_activation.
Activation read_activation(const HfConfig& config, std::string_view key, std::string_view fallback);

}  // namespace paceline
