// The chat formats for models without a template.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace paceline {

struct BuiltinTemplate {
  std::string_view name;
  std::string_view marker;  // the token that opens a turn, which identifies the format
  std::string_view source;
};

extern const std::array<BuiltinTemplate, 3> kBuiltinTemplates;

// "chatml, gemma, llama3", for messages.
std::string builtin_template_names();

}  // namespace paceline
