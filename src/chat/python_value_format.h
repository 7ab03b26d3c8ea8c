// format(value, specification).
#pragma once

#include <string>
#include <string_view>

#include "chat/template_runtime.h"

namespace paceline {

// Throws TemplateError, as Python raises, for a malformed specification or one of another type.
std::string format_value(TemplateRuntime& runtime, const TemplateValue& value,
                         std::string_view specification);

}  // namespace paceline
