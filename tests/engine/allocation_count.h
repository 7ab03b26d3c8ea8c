// Counts the calls of operator new in this program.
#pragma once

#include <cstdint>

namespace paceline::testing {

int64_t num_allocations();

}  // namespace paceline::testing
