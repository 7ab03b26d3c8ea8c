// A single row's products as tiles compute them, to the bit, in vector registers: those read
// weights faster than tiles do. Included by isa_matmul_tiles.cc alone.
#pragma once

#include "kernels/cpu/vec.h"
#include "kernels/packed_layout.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int64_t kRowPanels = 4;  // at once, at most
constexpr int64_t kRowDepth = 32;

// Denormals are zeros, in and out, as long as it lives.
class DenormalsAreZeros {
 public:
  DenormalsAreZeros() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040u); }
  ~DenormalsAreZeros() { _mm_setcsr(before_); }
  DenormalsAreZeros(const DenormalsAreZeros&) = delete;
  DenormalsAreZeros& operator=(const DenormalsAreZeros&) = delete;

 private:
  uint32_t before_;
};

// sums[v] += the products of 32 values of K with the panels' columns 16 v to 16 v + 15: even ones
// and odd ones from zero in ascending order, then both, then what there was.
template <int kPanels>
PL_INLINE void add_row_step(const Bf16* inputs, const Bf16* const (&panels)[kPanels],
                            int64_t prefetch_bytes, Vec (&sums)[2 * kPanels]) {
  Vec even[2 * kPanels] = {};
  Vec odd[2 * kPanels] = {};
  for (int64_t pair = 0; pair < kRowDepth / 2; ++pair) {
    uint32_t x;
    __builtin_memcpy(&x, inputs + 2 * pair, sizeof(x));
    const Vec x_even = as_floats(splat_bits(x << 16));
    const Vec x_odd = as_floats(splat_bits(x & 0xFFFF0000u));
#pragma GCC unroll 8
    for (int v = 0; v < 2 * kPanels; ++v) {
      const Bf16* const from = panels[v / 2] + pair * 2 * kPanelWidth + v % 2 * 2 * kLanes;
      const Uints weights = load_bits(from);
      __builtin_prefetch(reinterpret_cast<const char*>(from) + prefetch_bytes);
      even[v] = fma(x_even, as_floats(weights << 16), even[v]);
      odd[v] = fma(x_odd, as_floats(weights & 0xFFFF0000u), odd[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < 2 * kPanels; ++v) sums[v] = sums[v] + (even[v] + odd[v]);
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
