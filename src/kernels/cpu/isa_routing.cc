// The scores of a row of a router's logits.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/vec_math.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

// Finite logits alone.
void softmax(const float* x, int64_t width, float* out) {
  Vec maxima = splat(x[0]);
  for_each_vector(width, [&](int64_t i, int64_t count) {
    const Vec part = load_upto(x + i, count);
    const Ints inside = lane_indices() < static_cast<int32_t>(count);
    maxima = max(maxima, inside ? part : maxima);
  });
  const Vec shift = splat(reduce_max(maxima));
  Vec sums = {};
  for_each_vector(width, [&](int64_t i, int64_t count) {
    const Vec part = exp(load_upto(x + i, count) - shift);
    const Ints inside = lane_indices() < static_cast<int32_t>(count);
    sums = sums + (inside ? part : Vec{});
    store_upto(out + i, part, count);
  });
  const Vec sum = splat(reduce_add(sums));
  for_each_vector(width, [&](int64_t i, int64_t count) {
    store_upto(out + i, load_upto(out + i, count) / sum, count);
  });
}

void sigmoid(const float* x, int64_t width, float* out) {
  for_each_vector(width, [&](int64_t i, int64_t count) {
    store_upto(out + i, 1.0f / (1.0f + exp(-load_upto(x + i, count))), count);
  });
}

}  // namespace

void add_routing_kernels(KernelTable& table) {
  table.softmax = softmax;
  table.sigmoid = sigmoid;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
