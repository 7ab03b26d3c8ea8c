// What the machine can do at best: bytes read, and products without a memory operand.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/products.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr int kRateSums = 12;

// Several streams side by side: one alone leaves the memory idle between pages.
float read(const float* x, int64_t count) {
  constexpr int kStreams = 8;
  const int64_t part = count / kStreams;
  Vec sums[kStreams] = {};
  for (int64_t i = 0; i + kLanes <= part; i += kLanes) {
#pragma GCC unroll 8
    for (int s = 0; s < kStreams; ++s) sums[s] = sums[s] + load(x + s * part + i);
  }
  Vec total = sums[0];
  for (int s = 1; s < kStreams; ++s) total = total + sums[s];
  return reduce_add(total);
}

template <class Product>
float run(int64_t iterations, float seed) {
  typename Product::Weight weights[kLanes * Product::kDepth];
  for (int i = 0; i < Product::kDepth; ++i) store(weights + i * kLanes, splat(seed));
  typename Product::Input inputs[Product::kInputsPerStep] = {};
  __builtin_memcpy(inputs, &seed, sizeof(inputs[0]));
  const typename Product::Factor w = Product::template weights<0>(Product::load_weights(weights));
  const typename Product::Factor x = Product::template input<0>(inputs);
  // Different sums, or the compiler would keep only one.
  Vec sums[kRateSums];
  for (int s = 0; s < kRateSums; ++s) sums[s] = splat(seed * static_cast<float>(s));
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int s = 0; s < kRateSums; ++s) sums[s] = Product::multiply_add(sums[s], x, w);
  }
  Vec total = sums[0];
  for (int s = 1; s < kRateSums; ++s) total = total + sums[s];
  return reduce_add(total);
}

// A multiply-add per lane and pair element that one instruction takes.
template <class Product>
constexpr int64_t flops() {
  return int64_t{2} * kRateSums * kLanes * Product::kDepth / Product::kFactors;
}

}  // namespace

void add_roofline_kernels(KernelTable& table) {
  table.read = read;
  table.run_bf16 = run<Bf16Product>;
  table.run_f32 = run<F32Product>;
  table.run_bf16_flops = flops<Bf16Product>();
  table.run_f32_flops = flops<F32Product>();
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
