// The parser of chat templates.
#pragma once

#include <string_view>

#include "chat/template_tree.h"

namespace paceline {

// Throws TemplateError with the position of what is wrong.
ScopedBody parse_template(std::string_view source);

}  // namespace paceline
