// The methods of strings, lists and dicts.
#pragma once

#include <string_view>

#include "chat/template_arguments.h"
#include "chat/template_runtime.h"

namespace paceline {

bool has_method(const TemplateValue& self, std::string_view name);

// `name` must be a method of self. Methods that would change a list or dict are refused, as in the
// sandbox of transformers.
TemplateValue call_method(TemplateRuntime& runtime, const TemplateValue& self,
                          std::string_view name, TemplateArguments arguments);

bool is_string_method(std::string_view name);

// Must agree with Python's str.
TemplateValue call_string_method(TemplateRuntime& runtime, const TemplateValue& self,
                                 std::string_view name, TemplateArguments arguments);

}  // namespace paceline
