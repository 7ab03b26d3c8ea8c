// Equality and order of template values like Python's.
#pragma once

#include "chat/template_tree.h"
#include "chat/template_value.h"

namespace paceline {

// Throws only at its limit of steps: values of incomparable types are unequal. Numbers of any type
// are compared by value (True == 1 == 1.0).
bool equal(const TemplateValue& a, const TemplateValue& b);

// a < b. Throws TemplateError naming both types when they have no order.
bool less(const TemplateValue& a, const TemplateValue& b);

// item in container. Throws TemplateError if `container` isn't one.
bool contains(const TemplateValue& container, const TemplateValue& item);

// a OP b, with the errors of the three above.
bool compare(CompareOperator op, const TemplateValue& a, const TemplateValue& b);

}  // namespace paceline
