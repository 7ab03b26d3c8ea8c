// The machine's limits: bytes read, and products without a memory operand.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/products.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr int kRateSums = 12;

using HalfInts = int32_t __attribute__((vector_size(sizeof(Ints) / 2)));

// Reads a line of each stream in turn, in loads of Loaded.
template <class Loaded, int kStreams>
int32_t read(const void* from, int64_t bytes) {
  constexpr int64_t kLine = 64, kLoads = kLine / int64_t{sizeof(Loaded)};
  const int64_t part = bytes / kStreams / kLine * kLine;
  const auto* const begin = static_cast<const char*>(from);
  Loaded sums[kStreams][kLoads] = {};
  for (int64_t i = 0; i < part; i += kLine) {
#pragma GCC unroll 8
    for (int s = 0; s < kStreams; ++s) {
#pragma GCC unroll 8
      for (int64_t j = 0; j < kLoads; ++j) {
        Loaded values;
        const char* const at = begin + s * part + i + j * int64_t{sizeof(Loaded)};
        __builtin_memcpy(&values, at, sizeof(values));
        sums[s][j] = sums[s][j] ^ values;
      }
    }
  }
  Loaded total = {};
  for (const auto& stream : sums) {
    for (const Loaded& sum : stream) total = total ^ sum;
  }
  int32_t all = 0;
  for (size_t lane = 0; lane < sizeof(Loaded) / sizeof(int32_t); ++lane) all ^= total[lane];
  return all;
}

template <class Loaded>
void add_reads(ReadKernel* to) {
  constexpr int kBits = static_cast<int>(sizeof(Loaded) * 8);
  to[0] = {kBits, 1, read<Loaded, 1>};
  to[1] = {kBits, 2, read<Loaded, 2>};
  to[2] = {kBits, 4, read<Loaded, 4>};
  to[3] = {kBits, 8, read<Loaded, 8>};
}

template <class Product>
float run(int64_t iterations, float seed) {
  typename Product::Weight weights[kLanes * Product::kDepth];
  for (int i = 0; i < Product::kDepth; ++i) store(weights + i * kLanes, splat(seed));
  typename Product::Input inputs[Product::kInputsPerStep] = {};
  __builtin_memcpy(inputs, &seed, sizeof(inputs[0]));
  const typename Product::Factor w = Product::template weights<0>(Product::load_weights(weights));
  const typename Product::Factor x = Product::template input<0>(inputs);
  // The sums differ, or the compiler would keep only one.
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

// One instruction does a multiply-add per lane and pair element.
template <class Product>
constexpr int64_t flops() {
  return int64_t{2} * kRateSums * kLanes * Product::kDepth / Product::kFactors;
}

}  // namespace

void add_roofline_kernels(KernelTable& table) {
  add_reads<Ints>(table.reads);
  if constexpr (sizeof(Ints) == 64) add_reads<HalfInts>(table.reads + kNumReadKernels / 2);
  table.run_bf16 = run<Bf16Product>;
  table.run_f32 = run<F32Product>;
  table.run_bf16_flops = flops<Bf16Product>();
  table.run_f32_flops = flops<F32Product>();
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
