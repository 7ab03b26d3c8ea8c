// The methods of strings.
#pragma once

#include <string_view>

#include "chat/template_arguments.h"
#include "chat/template_runtime.h"

namespace paceline {

bool is_string_method(std::string_view name);

// Must agree with Python's str.
TemplateValue call_string_method(TemplateRuntime& runtime, const TemplateValue& self,
                                 std::string_view name, TemplateArguments arguments);

}  // namespace paceline
