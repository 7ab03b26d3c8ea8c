// Schemas made of others, for parts of arguments.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "grammar/schema_node.h"

namespace paceline {

// What a schema's `type` may name.
inline constexpr std::array<std::pair<std::string_view, JsonKinds>, 7> kJsonTypes{
    {{"null", kNullKind},
     {"boolean", kFalseKind | kTrueKind},
     {"number", kNumberKind},
     {"integer", kNumberKind},
     {"string", kStringKind},
     {"array", kArrayKind},
     {"object", kObjectKind}}};

// The schema with `"type"` of these kinds only, in words of JSON Schema.
std::string schema_of_kinds(std::string_view schema, JsonKinds kinds);

// The schema with its properties in alphabetical order, whatever the letters' case.
std::string with_sorted_properties(std::string_view schema);

// Whether `first` comes before `second` in that order.
bool is_before(std::string_view first, std::string_view second);

}  // namespace paceline
