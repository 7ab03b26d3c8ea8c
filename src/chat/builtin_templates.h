// The chat formats that are used when a model carries no template.
#pragma once

#include <array>
#include <string_view>

namespace paceline {

struct BuiltinTemplate {
  std::string_view name;
  std::string_view source;
};

extern const std::array<BuiltinTemplate, 3> kBuiltinTemplates;

}  // namespace paceline
