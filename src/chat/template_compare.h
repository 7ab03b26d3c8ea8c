// Equality and order of template values, as Python has them.
#pragma once

#include <cstdint>

#include "chat/template_value.h"

namespace paceline {

// Throws only when its limit is reached: values of incomparable types are unequal. Numbers are
// equal by value, whatever their type (True == 1 == 1.0).
bool equal(const TemplateValue& a, const TemplateValue& b);

// a < b. Throws TemplateError naming both types when they have no order.
bool less(const TemplateValue& a, const TemplateValue& b);

// item in container. Throws TemplateError for what is no container.
bool contains(const TemplateValue& container, const TemplateValue& item);

}  // namespace paceline
