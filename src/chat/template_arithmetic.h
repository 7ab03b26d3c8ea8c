// The operators + - * / // % ** of template values.
#pragma once

#include "chat/template_runtime.h"
#include "chat/template_tree.h"

namespace paceline {

// Must agree with Python on numbers (integers of 64 bits: an error beyond), strings, lists and
// tuples. Throws TemplateError naming both types when the operator doesn't support them.
TemplateValue arithmetic(TemplateRuntime& runtime, BinaryOperator op, const TemplateValue& a,
                         const TemplateValue& b);

// -value
TemplateValue negated(const TemplateValue& value);

}  // namespace paceline
