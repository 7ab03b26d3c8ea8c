// The tests behind "is".
#pragma once

#include <string_view>

#include "chat/template_arguments.h"
#include "chat/template_runtime.h"

namespace paceline {

// Must agree with jinja2.tests. Throws TemplateError naming an unknown test.
bool apply_test(TemplateRuntime& runtime, std::string_view name, const TemplateValue& value,
                TemplateArguments arguments);
bool is_test(std::string_view name);

}  // namespace paceline
