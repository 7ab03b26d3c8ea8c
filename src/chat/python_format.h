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

// Fields by order, number or name, their attributes and items, and a format specification. Must
// agree with string.Formatter, which Jinja's sandbox uses instead of str.format.
std::string format_braces(TemplateRuntime& runtime, std::string_view format,
                          const TemplateArguments& arguments);

}  // namespace paceline
