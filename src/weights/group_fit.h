// Fits the scale and the offset of a group of weights to codes, by weighted squared errors.
#pragma once

#include <cstdint>
#include <span>

namespace paceline {

// Element i of a group is scale * code + offset; codes are 0 to `steps`.
struct GroupFit {
  float scale = 0;
  float offset = 0;
  float error = 0;  // the weighted sum of squares
};

enum class OffsetSign : uint8_t { any, not_positive };

// The best of some ranges, each refined by least squares. `weights` are as many as `values`, and
// not negative.
GroupFit fit_range(std::span<const float> values, std::span<const float> weights, int steps,
                   OffsetSign sign);

// The same around zero, codes `low` (negative) to `high`, without an offset.
GroupFit fit_symmetric(std::span<const float> values, std::span<const float> weights, int low,
                       int high);

// The code from `low` to `high` that is nearest to `value` / `scale`; 0, or the nearest bound to
// it, for a scale of 0.
int nearest_code(float value, float scale, int low, int high);

// The weighted sum of squared errors with the nearest codes.
float fit_error(std::span<const float> values, std::span<const float> weights, float scale,
                float offset, int low, int high);

}  // namespace paceline
