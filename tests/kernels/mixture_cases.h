// The op cases of mixtures: the choice of experts and their weighted sums.
#pragma once

#include <vector>

#include "tests/kernels/op_cases.h"

namespace paceline {

std::vector<OpCase> mixture_cases();

}  // namespace paceline
