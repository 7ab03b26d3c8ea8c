// The op table's cases of products with the matrices of LoRA adapters.
#pragma once

#include <vector>

#include "tests/kernels/op_cases.h"

namespace paceline {

std::vector<OpCase> lora_cases();

}  // namespace paceline
