// Where the states of recurrent layers advance.
#pragma once

#include <cstdint>

namespace paceline {

// States advance at positions that are multiples of this. Rows in between are kept with the state
// before them, so that the bits of a row don't depend on how its sequence was cut into steps.
constexpr int64_t kStateChunk = 16;

}  // namespace paceline
