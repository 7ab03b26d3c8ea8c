// What becomes of the fields of transformers' configuration classes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "models/hf_config.h"

namespace paceline {

enum class ConfigFieldUse : uint8_t {
  obeyed,    // by the family, or by what reads the special tokens
  harmless,  // no result of a text model depends on it
  refused,   // a flag that must have the value without an effect
};

struct FieldRule {
  std::string_view name;
  ConfigFieldUse use = ConfigFieldUse::obeyed;
  std::string_view family = {};  // model_type; empty: of all families without a rule of their own
  bool inert = false;            // refused: the value without an effect
  std::string_view reason = {};  // refused
};

std::span<const FieldRule> field_rules();

// Null for a field that none of the families' classes has: transformers ignores it too.
const FieldRule* find_field_rule(std::string_view family, std::string_view field);

// Throws Error unsupported naming a refused flag that is set otherwise.
void check_refused_fields(const HfConfig& config, std::string_view family);

}  // namespace paceline
