// Numbers of 16 bits as a GPU has them (PTX ISA 8): a float rounded to bfloat16 as
// cvt.rn.bf16x2.f32 does, a fused multiply-add of bfloat16, the value of a float16.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace paceline::cuda::emulation {

inline uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FFF;
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

// Of the low halves.
inline uint32_t multiply_add_bf16(uint32_t a, uint32_t b, uint32_t c) {
  const auto value = [](uint32_t bits) { return double{std::bit_cast<float>(bits << 16)}; };
  const double exact = value(a) * value(b) + value(c);
  // To odd in float32, so that rounding again is right.
  const auto nearest = static_cast<float>(exact);
  auto bits = std::bit_cast<uint32_t>(nearest);
  if (nearest - nearest == 0.0f && double{nearest} != exact && bits % 2 == 0) {
    bits = std::abs(double{nearest}) > std::abs(exact) ? bits - 1 : bits + 1;
  }
  return bf16_bits(std::bit_cast<float>(bits));
}

inline float half_value(uint32_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16, magnitude = (bits & 0x7FFFu) << 13;
  if ((bits & 0x7C00u) == 0x7C00u) {
    return std::bit_cast<float>((bits & 0x3FFu) != 0 ? 0x7FFFFFFFu : sign | 0x7F800000u);
  }
  // 2^112 moves the exponent from float16's bias to float32's.
  const float value = std::bit_cast<float>(magnitude) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

}  // namespace paceline::cuda::emulation
