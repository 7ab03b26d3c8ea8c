// The op table's cases of packed matrices: products, packing, embedding.
#pragma once

#include <vector>

#include "tests/kernels/op_cases.h"

namespace paceline {

std::vector<OpCase> matrix_cases();

}  // namespace paceline
