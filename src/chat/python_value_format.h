// format(value, specification).
#pragma once

#include <string>
#include <string_view>

#include "chat/template_runtime.h"

namespace paceline {

// Throws TemplateError as Python does for a specification that isn't one, or not of this value.
std::string format_value(TemplateRuntime& runtime, const TemplateValue& value,
                         std::string_view specification);

}  // namespace paceline
