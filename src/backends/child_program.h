// The program that runs models in Python: src/backends/python/child.py, which is a part of this
// one.
#pragma once

#include <string>

namespace paceline {

// Throws Error unsupported where this build leaves such children out (PACELINE_PYTHON_BACKENDS).
std::string child_program();
bool has_child_program();

}  // namespace paceline
