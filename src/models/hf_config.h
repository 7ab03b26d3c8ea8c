// HfConfig reads the fields of a Hugging Face config.json, each within the range of one table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "models/decoder_config.h"

namespace paceline {

enum class FieldType : uint8_t { integer, number, flag, word, list, object };
enum class FieldPlace : uint8_t { top, rope, either };  // rope: rope_parameters, rope_scaling

// A field of config.json. Sizes are bounded here, before anything is allocated by them.
struct ConfigField {
  std::string_view name;
  FieldType type = FieldType::integer;
  double min = 0;  // integers and numbers: both bounds included
  double max = 0;
  // transformers' default where it is the same for all families. Without one the field is required,
  // unless a family has a default of its own.
  std::optional<double> otherwise = {};
  FieldPlace place = FieldPlace::top;
};

// Every field that is read.
std::span<const ConfigField> config_fields();

// Errors are Error invalid "config.json: FIELD: ..." naming what was found and what was expected. A
// null counts as absent unless a function says otherwise. Every name must be in config_fields().
class HfConfig {
 public:
  // `json` must outlive it; `where` names the file in errors.
  HfConfig(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  bool has(std::string_view key) const { return find(key) != nullptr; }
  bool is_null(std::string_view key) const;
  const Json* find(std::string_view key) const { return json_.find_value(key); }
  std::string path(std::string_view key) const;

  // `otherwise`: a family's default, which goes before the table's.
  int64_t integer(std::string_view key, std::optional<int64_t> otherwise = {}) const;
  double number(std::string_view key, std::optional<double> otherwise = {}) const;
  // The same of fields that may be null, which is nothing; an absent one is `otherwise`.
  std::optional<int64_t> integer_or_null(std::string_view key, int64_t otherwise) const;
  std::optional<double> number_or_null(std::string_view key, std::optional<double> otherwise) const;
  bool boolean(std::string_view key, bool otherwise) const;
  std::string string(std::string_view key, std::string_view otherwise) const;

  // Error invalid "config.json: FIELD: WHAT".
  [[noreturn]] void invalid(std::string_view key, std::string_view what) const;
  [[noreturn]] void unsupported(std::string_view key, std::string_view what) const;

 private:
  [[noreturn]] void missing(const ConfigField& field) const;

  const Json& json_;
  std::string where_;
};

// A field of Paceline's own: what is added to stored norm weights. Configs that are made from GGUF
// files have it, because these files hold 1 + w.
inline constexpr std::string_view kNormWeightOffsetField = "paceline_norm_weight_offset";

// `layer_types` as true for "sliding_attention", false for "full_attention"; nothing when absent.
std::optional<std::vector<bool>> read_sliding_layers(const HfConfig& config, int64_t num_layers);

// hidden_act / hidden_activation.
Activation read_activation(const HfConfig& config, std::string_view key,
                           std::string_view otherwise);

}  // namespace paceline
