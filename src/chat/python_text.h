// How Python's str() and repr() write values.
#pragma once

#include <string>

#include "chat/template_value.h"

namespace paceline {

// They throw TemplateError exhausted rather than let `out` grow beyond `limit` bytes.
void append_str(std::string& out, const TemplateValue& value, size_t limit);
void append_repr(std::string& out, const TemplateValue& value, size_t limit);

// repr(float): the shortest digits that read back, e.g. 1e-08, 2.0, inf.
std::string float_repr(double value);

}  // namespace paceline
