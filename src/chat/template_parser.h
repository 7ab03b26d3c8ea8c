// The parser of chat templates.
#pragma once

#include <string_view>

#include "chat/template_tree.h"

namespace paceline {

// Blocks, brackets and conditionals may be nested so deep.
inline constexpr int kMaxTemplateNesting = 64;

// Throws TemplateError with the position of what is wrong.
TemplateBody parse_template(std::string_view source);

}  // namespace paceline
