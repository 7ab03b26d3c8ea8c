// A float rounded to bfloat16 as cvt.rn.bf16x2.f32 does (PTX ISA 8).
#pragma once

#include <bit>
#include <cstdint>

namespace paceline::cuda::emulation {

inline uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FFF;
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace paceline::cuda::emulation
