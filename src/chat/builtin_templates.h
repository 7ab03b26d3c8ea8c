// The chat formats that are used when a model carries no template.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace paceline {

struct BuiltinTemplate {
  std::string_view name;
  std::string_view marker;  // the token that opens a turn, by which the format is known
  std::string_view source;
};

extern const std::array<BuiltinTemplate, 3> kBuiltinTemplates;

// "chatml, gemma, llama3", for messages.
std::string builtin_template_names();

}  // namespace paceline
