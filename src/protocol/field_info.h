// FieldInfo is what documentation needs to know of a field.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "protocol/field_type.h"

namespace paceline {

enum class FieldUse : uint8_t {
  implemented,
  accepted,  // can't change the answer: checked and then left alone
  refused,   // part of the API, not offered here
};

// None: absent is not the same as any value.
using FieldDefault = std::variant<std::monostate, bool, int64_t, double, std::string_view>;

struct FieldInfo {
  std::string_view name;
  FieldType type = kAnyValue;
  FieldUse use = FieldUse::implemented;
  bool is_required = false;
  FieldDefault by_default = {};
  std::string_view when_unset = {};  // what absent means, in words, where it is no one value
  std::string_view alias_of = {};    // the field that it is another name of
  std::string_view help = {};  // one sentence; of a refused field what to do instead, or nothing
};

using FieldList = std::vector<FieldInfo>;

}  // namespace paceline
