// Philox: a counter-based random generator; any draw is a pure function of (seed, counter).
#pragma once

#include <array>
#include <cstdint>

namespace paceline {

// Philox4x32-10 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011).
std::array<uint32_t, 4> philox4x32(uint64_t seed, uint64_t counter, uint64_t stream = 0);

// Uniform in [0, 1), 53 bits.
double uniform_draw(uint64_t seed, uint64_t counter);

}  // namespace paceline
