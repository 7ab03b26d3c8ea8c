// Python's two ways to fill in a string: "%s" % x and "{}".format(x).
#pragma once

#include <string>
#include <string_view>

#include "chat/template_arguments.h"
#include "chat/template_runtime.h"

namespace paceline {

// `values` is a tuple, a dict for %(name)s, or one value. Throws TemplateError as Python does.
std::string format_percent(TemplateRuntime& runtime, std::string_view format,
                           const TemplateValue& values);

// Fields by order, number or name, with a format specification; attributes and items of fields are
// refused.
std::string format_braces(TemplateRuntime& runtime, std::string_view format,
                          const TemplateArguments& arguments);

enum class Alignment { left, right, center };
// Padded to `width` characters; charged for.
std::string padded(TemplateRuntime& runtime, std::string_view text, int64_t width,
                   std::string_view fill, Alignment alignment);

}  // namespace paceline
