// The op table's cases of stored keys and values: attention, storing, copies of blocks.
#pragma once

#include <vector>

#include "tests/kernels/op_cases.h"

namespace paceline {

std::vector<OpCase> kv_cases();

}  // namespace paceline
