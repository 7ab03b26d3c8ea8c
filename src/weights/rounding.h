// Shared by the quantisers: rounding of small numbers, and the error for values that aren't finite.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace paceline {

// Rounds to the nearest integer, ties to even, for magnitudes below 2^22: the sum leaves no bits
// for a fraction. (Unlike std::rint it is vectorised on every instruction set.)
inline float round_small(float value) {
  constexpr float kNoFraction = 0x1.8p23f;
  return (value + kNoFraction) - kNoFraction;
}

[[noreturn]] inline void throw_not_finite(std::string_view where, int64_t row) {
  throw Error(ErrorCode::numerical,
              fmt::format("{}: row {} can't be quantised: expected finite numbers, found NaN, an "
                          "infinity or a range beyond float32",
                          where, row));
}

}  // namespace paceline
