// bfloat16 and float16 as bits; their arithmetic is float32. Conversions have the bits of
// tensor/dtype.h.
#pragma once

#include <bit>

#include "kernels/cuda/code/device_code.h"

namespace paceline::cuda {

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

PL_DEVICE float float_of_bits(uint32_t bits) { return std::bit_cast<float>(bits); }
PL_DEVICE uint32_t bits_of_float(float value) { return std::bit_cast<uint32_t>(value); }

PL_DEVICE float to_float(float value) { return value; }
PL_DEVICE float to_float(Bf16 value) { return float_of_bits(uint32_t{value.bits} << 16); }
PL_DEVICE float to_float(F16 value) {
  const uint32_t sign = (value.bits & 0x8000u) << 16;
  const uint32_t magnitude = (value.bits & 0x7FFFu) << 13;
  // 2^112 moves the exponent from float16's bias to float32's; subnormal ones become normal.
  const uint32_t finite = bits_of_float(float_of_bits(magnitude) * 0x1p112f);
  const uint32_t quiet = (value.bits & 0x3FFu) != 0 ? 0x400000u : 0u;
  const uint32_t special = magnitude | 0x7F800000u | quiet;  // infinity or NaN
  const uint32_t bits = (value.bits & 0x7C00u) == 0x7C00u ? special : finite;
  return float_of_bits(bits | sign);
}

// To nearest, ties to even; NaN stays NaN (quiet).
PL_DEVICE Bf16 to_bf16(float value) {
  const uint32_t bits = bits_of_float(value);
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  const uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
  return {static_cast<uint16_t>(is_nan ? bits >> 16 | 0x40u : rounded)};
}
PL_DEVICE F16 to_f16(float value) {
  const uint32_t sign = bits_of_float(value) >> 16 & 0x8000u;
  const uint32_t bits = bits_of_float(value) & 0x7FFFFFFFu;
  // Normal results round in integers (the exponent moves by -112); subnormal ones by adding 0.5,
  // whose last place is theirs.
  const uint32_t normal = (bits + 0xC8000FFFu + (bits >> 13 & 1u)) >> 13;
  const uint32_t subnormal = bits_of_float(float_of_bits(bits) + 0.5f) - 0x3F000000u;
  uint32_t half = bits < 0x38800000u ? subnormal : normal;
  if (bits >= 0x477FF000u) half = 0x7C00u;
  if (bits > 0x7F800000u) half = 0x7E00u | (bits >> 13 & 0x3FFu);
  return {static_cast<uint16_t>(half | sign)};
}

PL_DEVICE void assign_float(float value, float& out) { out = value; }
PL_DEVICE void assign_float(float value, Bf16& out) { out = to_bf16(value); }
PL_DEVICE void assign_float(float value, F16& out) { out = to_f16(value); }

}  // namespace paceline::cuda
