// RMS norm and layer norm.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/row_sum.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

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

// The centred row stands in `out` until its scale is known.
void layer_norm(const float* x, const float* weight, const float* bias, float eps, int64_t width,
                float* out) {
  const auto count_of = static_cast<float>(width);
  const float sum =
      sum_of(width, [&](int64_t i, int64_t count) { return load_upto(x + i, count); });
  const Vec mean = splat(sum / count_of);
  for_each_vector(width, [&](int64_t i, int64_t count) {
    store_upto(out + i, load_upto(x + i, count) - mean, count);
  });
  const float squares = sum_of(width, [&](int64_t i, int64_t count) {
    const Vec value = load_upto(out + i, count);
    return value * value;
  });
  const Vec inverse = splat(inverse_root(squares / count_of, eps));
  for_each_vector(width, [&](int64_t i, int64_t count) {
    const Vec value = load_upto(out + i, count) * inverse * load_upto(weight + i, count);
    store_upto(out + i, bias != nullptr ? value + load_upto(bias + i, count) : value, count);
  });
}

float dot(const float* x, const float* y, int64_t width) {
  return sum_of(width, [&](int64_t i, int64_t count) {
    return load_upto(x + i, count) * load_upto(y + i, count);
  });
}

}  // namespace

void add_norm_kernels(KernelTable& table) {
  table.rms_norm = rms_norm;
  table.layer_norm = layer_norm;
  for (AttentionGradientKernels& kernels : table.attention_gradients) kernels.output_mean = dot;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
