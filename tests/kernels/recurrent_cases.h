// The op table's cases of layers with states.
#pragma once

#include <vector>

#include "tests/kernels/op_cases.h"

namespace paceline {

std::vector<OpCase> recurrent_cases();

}  // namespace paceline
