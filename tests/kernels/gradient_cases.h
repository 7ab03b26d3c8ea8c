// The op table's cases of backward passes.
#pragma once

#include <vector>

#include "tests/kernels/op_cases.h"

namespace paceline {

std::vector<OpCase> gradient_cases();

}  // namespace paceline
