// FieldInfo describes a field of a request for documentation.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "protocol/field_type.h"

namespace paceline {

enum class FieldUse : uint8_t {
  implemented,
  accepted,  // can't change the answer: checked, then ignored
  refused,   // part of the API, not offered here
};

// monostate: leaving the field out differs from any value.
using FieldDefault = std::variant<std::monostate, bool, int64_t, double, std::string_view>;

struct FieldNotes {
  FieldDefault by_default = {};
  std::string_view when_unset = {};  // what leaving it out means, where no value says the same
  std::string_view alias_of = {};    // the field that it is another name of
};
inline constexpr FieldNotes kOff = {.by_default = false};
inline constexpr FieldNotes kOn = {.by_default = true};

struct FieldInfo : FieldNotes {
  std::string_view name;
  FieldType type = kAnyValue;
  std::string_view help = {};  // one sentence; for a refused field an alternative, or nothing
  FieldUse use = FieldUse::implemented;
  bool is_required = false;
};

using FieldList = std::vector<FieldInfo>;

}  // namespace paceline
