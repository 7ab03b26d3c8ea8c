#include "weights/group_fit.h"

#include <algorithm>
#include <cmath>

#include "weights/rounding.h"

namespace paceline {
namespace {

// Sums over a group from which the least squares follow.
struct Moments {
  double w = 0, wx = 0, wq = 0, wqq = 0, wqx = 0;
};

Moments moments_of(std::span<const float> values, std::span<const float> weights,
                   const GroupFit& fit, int low, int high) {
  Moments sums;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i], w = weights[i];
    const double q = nearest_code(values[i] - fit.offset, fit.scale, low, high);
    sums.w += w;
    sums.wx += w * x;
    sums.wq += w * q;
    sums.wqq += w * q * q;
    sums.wqx += w * q * x;
  }
  return sums;
}

// Scale and offset of the least squares for the codes that `fit` gives.
GroupFit refined(std::span<const float> values, std::span<const float> weights, GroupFit fit,
                 int steps, OffsetSign sign) {
  const Moments sums = moments_of(values, weights, fit, 0, steps);
  const double determinant = sums.w * sums.wqq - sums.wq * sums.wq;
  if (determinant > 0) {
    fit.scale = static_cast<float>((sums.w * sums.wqx - sums.wq * sums.wx) / determinant);
    fit.offset = static_cast<float>((sums.wqq * sums.wx - sums.wq * sums.wqx) / determinant);
  }
  if (sign == OffsetSign::not_positive && fit.offset > 0) {
    fit.offset = 0;
    if (sums.wqq > 0) fit.scale = static_cast<float>(sums.wqx / sums.wqq);
  }
  return fit;
}

void keep_better(std::span<const float> values, std::span<const float> weights, GroupFit fit,
                 int low, int high, GroupFit& best) {
  if (!std::isfinite(fit.scale) || !std::isfinite(fit.offset)) return;
  fit.error = fit_error(values, weights, fit.scale, fit.offset, low, high);
  if (fit.error < best.error) best = fit;
}

}  // namespace

int nearest_code(float value, float scale, int low, int high) {
  const float found = scale == 0.0f ? 0.0f : value / scale;
  const float code = std::isnan(found) ? 0.0f : found;
  return static_cast<int>(
      round_small(std::clamp(code, static_cast<float>(low), static_cast<float>(high))));
}

float fit_error(std::span<const float> values, std::span<const float> weights, float scale,
                float offset, int low, int high) {
  float sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto code = static_cast<float>(nearest_code(values[i] - offset, scale, low, high));
    const float error = scale * code + offset - values[i];
    sum += weights[i] * error * error;
  }
  return sum;
}

GroupFit fit_range(std::span<const float> values, std::span<const float> weights, int steps,
                   OffsetSign sign) {
  constexpr float kCuts[] = {-0.9f, -0.3f, 0.3f, 0.9f};  // of a step, at either end of the range
  constexpr int kRefinements = 3;
  auto [least, most] = std::ranges::minmax(values);
  if (sign == OffsetSign::not_positive) least = std::min(least, 0.0f);
  const float step = (most - least) / static_cast<float>(steps);
  const auto of = [&](float low, float high) {
    return GroupFit{.scale = (high - low) / static_cast<float>(steps), .offset = low};
  };
  GroupFit best = of(least, most);
  best.error = fit_error(values, weights, best.scale, best.offset, 0, steps);
  if (step <= 0) return best;
  for (const float below : kCuts) {
    for (const float above : kCuts) {
      GroupFit fit = of(least + step * below, most - step * above);
      if (sign == OffsetSign::not_positive) fit.offset = std::min(fit.offset, 0.0f);
      for (int i = 0; i < kRefinements; ++i) fit = refined(values, weights, fit, steps, sign);
      keep_better(values, weights, fit, 0, steps, best);
    }
  }
  return best;
}

GroupFit fit_symmetric(std::span<const float> values, std::span<const float> weights, int low,
                       int high) {
  constexpr int kTries = 9;
  constexpr float kStep = 0.0375f;  // of the scale, from one try to the next
  float edge = 0;
  for (const float value : values) {
    if (std::abs(value) > std::abs(edge)) edge = value;
  }
  const float usual = edge / static_cast<float>(low);
  GroupFit best{.scale = usual};
  best.error = fit_error(values, weights, usual, 0, low, high);
  if (usual == 0) return best;
  for (int i = 0; i < kTries; ++i) {
    GroupFit fit{.scale = usual * (1.1f - kStep * static_cast<float>(i))};
    const Moments sums = moments_of(values, weights, fit, low, high);
    if (sums.wqq > 0) fit.scale = static_cast<float>(sums.wqx / sums.wqq);
    keep_better(values, weights, fit, low, high, best);
  }
  return best;
}

}  // namespace paceline
