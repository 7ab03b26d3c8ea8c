// Finds the variables that a body shadows before it sets them.
#pragma once

#include "chat/template_tree.h"

namespace paceline {

// Jinja compiles a body that sets x to a function with a local x. A nested body that reads x sees
// the local one, even before it is set and even if there is an outer x:
//   {% for m in messages %}{{ x }}{% endfor %}{% set x = 1 %}
// prints nothing. The exceptions: the body itself reads x first, or sets it under an `if`. Must
// agree with jinja2.idtracking.
void find_hidden_names(ScopedBody& root);

}  // namespace paceline
