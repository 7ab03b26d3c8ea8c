#include "tensor/float8.h"

#include <cmath>
#include <limits>

#include "base/error.h"

namespace paceline {
namespace {

using Table = std::array<float, 256>;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A sign, `exponent_bits` of exponent, the rest mantissa.
float small_float(int byte, int exponent_bits) {
  const int mantissa_bits = 7 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int mantissa = byte & ((1 << mantissa_bits) - 1);
  const int exponent = byte >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  const float magnitude =
      std::ldexp(static_cast<float>(whole), (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
  return byte < 128 ? magnitude : -magnitude;
}

Table e4m3_values() {
  Table table{};
  for (int byte = 0; byte < 256; ++byte) {
    table[static_cast<size_t>(byte)] = (byte & 0x7F) == 0x7F ? kNaN : small_float(byte, 4);
  }
  return table;
}

Table e5m2_values() {
  Table table{};
  for (int byte = 0; byte < 256; ++byte) {
    float value = small_float(byte, 5);
    if ((byte & 0x7C) == 0x7C) {
      value = (byte & 3) != 0 ? kNaN : std::copysign(std::numeric_limits<float>::infinity(), value);
    }
    table[static_cast<size_t>(byte)] = value;
  }
  return table;
}

Table e8m0_values() {
  Table table{};
  for (int byte = 0; byte < 255; ++byte) {
    table[static_cast<size_t>(byte)] = std::ldexp(1.0f, byte - 127);
  }
  table[255] = kNaN;
  return table;
}

}  // namespace

const Table& float8_values(DType dtype) {
  static const Table e4m3 = e4m3_values(), e5m2 = e5m2_values(), e8m0 = e8m0_values();
  switch (dtype) {
    case DType::f8_e4m3:
      return e4m3;
    case DType::f8_e5m2:
      return e5m2;
    default:
      PL_CHECK(dtype == DType::f8_e8m0, "a float of 8 bits");
      return e8m0;
  }
}

}  // namespace paceline
