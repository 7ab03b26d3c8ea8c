// log(sum(exp(x))) of a row of logits. Any thread may compute the partial of a block; partials are
// combined in ascending order.
#include "base/portable_math.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/vec_math.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr float kInfinity = __builtin_inff();

PL_INLINE Vec first_lanes(Vec value, int64_t count, Vec others) {
  return lane_indices() < static_cast<int32_t>(count) ? value : others;
}

// A row of -infinity alone must give exp(-infinity) = 0, not exp(NaN).
PL_INLINE float shift_of(float max) { return max == -kInfinity ? 0.0f : max; }

ExpSum exp_sum(const float* x, int64_t width) {
  const Vec lowest = splat(-kInfinity);
  Vec maxima = lowest;
  for_each_vector(width, [&](int64_t i, int64_t count) {
    maxima = max(maxima, first_lanes(load_upto(x + i, count), count, lowest));
  });
  const float top = reduce_max(maxima);
  const Vec shift = splat(shift_of(top));
  Vec sums = {};
  for_each_vector(width, [&](int64_t i, int64_t count) {
    sums = sums + first_lanes(exp(load_upto(x + i, count) - shift), count, Vec{});
  });
  return {top, reduce_add(sums)};
}

ExpSum combine_exp_sums(const ExpSum* parts, int64_t count) {
  ExpSum total = {-kInfinity, 0.0f};
  for (int64_t i = 0; i < count; ++i) {
    if (parts[i].max > total.max) total.max = parts[i].max;
  }
  for (int64_t i = 0; i < count; ++i) {
    total.sum += parts[i].sum * exp_one(parts[i].max - shift_of(total.max));
  }
  return total;
}

float log_sum(ExpSum total) {
  const double log = portable_log(static_cast<double>(total.sum));
  return static_cast<float>(log + static_cast<double>(shift_of(total.max)));
}

}  // namespace

void add_log_sum_exp_kernels(KernelTable& table) {
  table.exp_sum = exp_sum;
  table.combine_exp_sums = combine_exp_sums;
  table.log_sum = log_sum;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
