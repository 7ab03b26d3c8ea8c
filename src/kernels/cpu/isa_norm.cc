// RMS norm. Sums over a row run in four vectors of lanes; the row's width alone fixes
// their order.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr int kNormSums = 4;

// The sum of term(i, count) over all vectors of a row; lanes beyond `count` must be zero.
template <class Term>
PL_INLINE float sum_of(int64_t width, Term&& term) {
  Vec sums[kNormSums] = {};
  int64_t i = 0;
  for (; i + kNormSums * kLanes <= width; i += kNormSums * kLanes) {
#pragma GCC unroll 4
    for (int s = 0; s < kNormSums; ++s) sums[s] = sums[s] + term(i + s * kLanes, int64_t{kLanes});
  }
  for (; i < width; i += kLanes) sums[0] = sums[0] + term(i, min_of(width - i, kLanes));
  return reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

PL_INLINE float inverse_root(float mean_square, float eps) {
  return 1.0f / __builtin_sqrtf(mean_square + eps);
}

void rms_norm(const float* x, const float* weight, float eps, int64_t width, float* out) {
  const float squares = sum_of(width, [&](int64_t i, int64_t count) {
    const Vec value = load_upto(x + i, count);
    return value * value;
  });
  const Vec inverse = splat(inverse_root(squares / static_cast<float>(width), eps));
  for_each_vector(width, [&](int64_t i, int64_t count) {
    const Vec value = load_upto(x + i, count) * inverse;
    store_upto(out + i, value * load_upto(weight + i, count), count);
  });
}

}  // namespace

void add_norm_kernels(KernelTable& table) { table.rms_norm = rms_norm; }

}  // namespace paceline::PACELINE_ISA_NAMESPACE
