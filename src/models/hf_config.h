// HfConfig reads the fields of a Hugging Face config.json; one table has their ranges.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_cursor.h"
#include "models/decoder_config.h"

namespace paceline {

enum class ConfigFieldType : uint8_t { integer, number, flag, word, list, object };
enum class FieldPlace : uint8_t { top, rope, either };  // rope: rope_parameters, rope_scaling

// A field of config.json. Its range bounds sizes before any allocation.
struct ConfigField {
  std::string_view name;
  ConfigFieldType type = ConfigFieldType::integer;
  double min = 0;  // integers and numbers: inclusive bounds
  double max = 0;
  // transformers' default if all families share it. Without one the field is required, unless a
  // family has its own default.
  std::optional<double> otherwise = {};
  FieldPlace place = FieldPlace::top;
};

// All fields that are read.
std::span<const ConfigField> config_fields();

// Errors are the cursor's: "config.json: FIELD: found VALUE, expected ...". A null counts as absent
// unless a function says otherwise. Every name must be in config_fields().
class HfConfig {
 public:
  // `object` is the file's root, or an object in it.
  explicit HfConfig(JsonCursor object) : object_(std::move(object)) {}

  const JsonCursor& object() const { return object_; }
  std::optional<JsonCursor> find(std::string_view key) const { return object_.find(key); }
  bool has(std::string_view key) const { return find(key).has_value(); }
  bool is_null(std::string_view key) const { return object_.contains(key) && !has(key); }

  // `otherwise` is a family's default, which overrides the table's.
  int64_t integer(std::string_view key, std::optional<int64_t> otherwise = {}) const;
  double number(std::string_view key, std::optional<double> otherwise = {}) const;
  // For a field that may be null: nothing for null, `otherwise` when absent.
  std::optional<int64_t> integer_or_null(std::string_view key, int64_t otherwise) const;
  std::optional<double> number_or_null(std::string_view key, std::optional<double> otherwise) const;
  bool boolean(std::string_view key, bool otherwise) const;
  std::string string(std::string_view key, std::string_view otherwise) const;

  // Error invalid "config.json: FIELD: WHAT".
  [[noreturn]] void invalid(std::string_view key, std::string_view what) const;
  [[noreturn]] void unsupported(std::string_view key, std::string_view what) const;

 private:
  [[noreturn]] void missing(const ConfigField& field) const;

  JsonCursor object_;
};

// A field of Paceline's own: the offset added to stored norm weights. Configs made from GGUF files
// have it, because these files store 1 + w.
inline constexpr std::string_view kNormWeightOffsetField = "paceline_norm_weight_offset";
// A flag of configs made for files whose weights have the model's multipliers multiplied in.
inline constexpr std::string_view kMultipliedWeightsField = "paceline_multiplied_weights";
// A flag of configs made for files that have the queries of all heads, then their keys and their
// values in one matrix, of a family whose own files have them by head.
inline constexpr std::string_view kJoinedHeadsField = "paceline_joined_heads";

// `layer_types`: true for "sliding_attention", false for "full_attention"; nothing when absent.
std::optional<std::vector<bool>> read_sliding_layers(const HfConfig& config, int64_t num_layers);

// hidden_act / hidden_activation.
Activation read_activation(const HfConfig& config, std::string_view key,
                           std::string_view otherwise);

}  // namespace paceline
