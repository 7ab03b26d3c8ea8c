// Finds the variables that a body hides before it sets them.
#pragma once

#include "chat/template_tree.h"

namespace paceline {

// Jinja compiles a body that sets x to a function with a local x. A body inside it that reads x
// sees that one, even before it is set and even if there is an x outside:
//   {% for m in messages %}{{ x }}{% endfor %}{% set x = 1 %}
// prints nothing. Not so when the body itself reads x first, or sets it under an `if`. Must agree
// with jinja2.idtracking.
void find_hidden_names(ScopedBody& root);

}  // namespace paceline
