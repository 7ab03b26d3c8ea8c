#include "kernels/cuda/emulation/mma_tile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace paceline::cuda::emulation {
namespace {

// Compiled as part of the function that calls it, for that one's instruction set.
#define PL_ANY_WIDTH [[gnu::always_inline]] inline

constexpr int kDepth = 16;
constexpr int kColumns = 8;
constexpr int kFractionBits = 25;

// Of finite values: value = significand 2^(exponent - fraction bits of its format).
struct Parts {
  int64_t significand;  // with its sign
  int exponent;
};

Parts parts_of_bf16(uint16_t bits) {
  const int field = bits >> 7 & 0xFF;
  const int64_t magnitude = (bits & 0x7F) | (field == 0 ? 0 : 0x80);
  return {(bits & 0x8000) != 0 ? -magnitude : magnitude, std::max(field, 1) - 127};
}

Parts parts_of_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const int field = static_cast<int>(bits >> 23 & 0xFF);
  const int64_t magnitude = (bits & 0x7FFFFF) | (field == 0 ? 0 : 0x800000);
  return {(bits >> 31) != 0 ? -magnitude : magnitude, std::max(field, 1) - 127};
}

// value 2^shift, truncated towards zero.
int64_t shifted(int64_t value, int shift) {
  if (shift >= 0) return value * (int64_t{1} << shift);
  return shift < -62 ? 0 : value / (int64_t{1} << -shift);
}

// sum 2^exponent, truncated to a float.
float truncated_float(int64_t sum, int exponent) {
  if (sum == 0) return 0.0f;
  const auto magnitude = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  const int top = static_cast<int>(std::bit_width(magnitude)) - 1;
  const int unit = std::max(top + exponent - 23, -149);  // of the result's last place
  const int64_t kept = shifted(static_cast<int64_t>(magnitude), exponent - unit);
  if (kept == 0) return 0.0f;
  const auto value = static_cast<float>(std::ldexp(static_cast<double>(kept), unit));
  return sum < 0 ? -value : value;
}

float as_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// The result where a value is infinite or NaN.
float special_dot(const std::array<uint16_t, 16>& a, const std::array<uint16_t, 16>& b, float c) {
  bool is_positive = c == std::numeric_limits<float>::infinity();
  bool is_negative = c == -std::numeric_limits<float>::infinity();
  bool is_nan = std::isnan(c);
  for (size_t k = 0; k < kDepth; ++k) {
    const double product = double{as_float(a[k])} * double{as_float(b[k])};
    is_nan = is_nan || std::isnan(product);
    if (std::isinf(product)) (product > 0 ? is_positive : is_negative) = true;
  }
  if (is_nan || (is_positive && is_negative)) return std::bit_cast<float>(0x7FFFFFFFu);
  const float infinity = std::numeric_limits<float>::infinity();
  return is_positive ? infinity : -infinity;
}

bool is_special(uint16_t bits) { return (bits & 0x7F80) == 0x7F80; }

}  // namespace

float fused_dot(const std::array<uint16_t, 16>& a, const std::array<uint16_t, 16>& b, float c) {
  bool has_special = !std::isfinite(c);
  for (size_t k = 0; k < kDepth; ++k) {
    has_special = has_special || is_special(a[k]) || is_special(b[k]);
  }
  if (has_special) return special_dot(a, b, c);

  const Parts sum = parts_of_float(c);
  std::array<Parts, 16> products;
  int largest = sum.exponent;
  for (size_t k = 0; k < kDepth; ++k) {
    const Parts x = parts_of_bf16(a[k]);
    const Parts y = parts_of_bf16(b[k]);
    products[k] = {x.significand * y.significand, x.exponent + y.exponent};
    largest = std::max(largest, products[k].exponent);
  }
  int64_t total = shifted(sum.significand, sum.exponent - 23 - largest + kFractionBits);
  for (const Parts& product : products) {
    total += shifted(product.significand, product.exponent - 14 - largest + kFractionBits);
  }
  return truncated_float(total, largest - kFractionBits);
}

namespace {

using Floats = float __attribute__((vector_size(4 * kColumns)));
using Uints = uint32_t __attribute__((vector_size(4 * kColumns)));
using Ints = int32_t __attribute__((vector_size(4 * kColumns)));
using Shorts = int16_t __attribute__((vector_size(2 * kColumns)));
using Doubles = double __attribute__((vector_size(8 * kColumns)));
using Longs = int64_t __attribute__((vector_size(8 * kColumns)));

constexpr int kPairs = kDepth / 2;
constexpr int16_t kSpecial = 128;  // the exponent of infinities and NaN

PL_ANY_WIDTH int16_t exponent_of_bf16(uint32_t bits) {
  return static_cast<int16_t>(std::max(static_cast<int>(bits >> 7 & 0xFF), 1) - 127);
}

// The operands of an instruction. Depth k stands for element 2 k of a row or column where k < 8,
// else for 2 (k - 8) + 1: sums are exact, so their order is free.
struct Tile {
  alignas(32) float rows[16][kDepth];
  alignas(32) float columns[kDepth][kColumns];
  alignas(16) int16_t row_exponents[16][kDepth];
  alignas(16) int16_t column_exponents[kDepth][kColumns];
};

void take_operands(const LaneSlots& slots, MmaOperands& operands) {
  for (size_t lane = 0; lane < 32; ++lane) {
    const size_t group = lane / 4;
    const size_t pair = lane % 4;
    const std::array<uint32_t, 10>& in = slots[lane].in;
    operands.row_pairs[group][pair] = in[0];
    operands.row_pairs[group + 8][pair] = in[1];
    operands.row_pairs[group][pair + 4] = in[2];
    operands.row_pairs[group + 8][pair + 4] = in[3];
    operands.column_pairs[group][pair] = in[4];
    operands.column_pairs[group][pair + 4] = in[5];
    for (size_t i = 0; i < 4; ++i) {
      operands.sums[group + i / 2 * 8][pair * 2 + i % 2] = std::bit_cast<float>(in[6 + i]);
    }
  }
}

PL_ANY_WIDTH void take_apart(const MmaOperands& operands, Tile& tile) {
  for (size_t row = 0; row < 16; ++row) {
    for (size_t k = 0; k < kPairs; ++k) {
      const uint32_t pair = operands.row_pairs[row][k];
      tile.rows[row][k] = std::bit_cast<float>(pair << 16);
      tile.rows[row][k + kPairs] = std::bit_cast<float>(pair & 0xFFFF0000u);
      tile.row_exponents[row][k] = exponent_of_bf16(pair);
      tile.row_exponents[row][k + kPairs] = exponent_of_bf16(pair >> 16);
    }
  }
  for (size_t j = 0; j < kColumns; ++j) {
    for (size_t k = 0; k < kPairs; ++k) {
      const uint32_t pair = operands.column_pairs[j][k];
      tile.columns[k][j] = std::bit_cast<float>(pair << 16);
      tile.columns[k + kPairs][j] = std::bit_cast<float>(pair & 0xFFFF0000u);
      tile.column_exponents[k][j] = exponent_of_bf16(pair);
      tile.column_exponents[k + kPairs][j] = exponent_of_bf16(pair >> 16);
    }
  }
}

// By reference: a vector that is returned changes the ABI with the instruction set.
template <class T>
PL_ANY_WIDTH void load(const void* from, T& value) {
  std::memcpy(&value, from, sizeof(value));
}

PL_ANY_WIDTH Shorts larger(Shorts a, Shorts b) { return a > b ? a : b; }

PL_ANY_WIDTH bool is_any(Shorts conditions) {
  uint64_t halves[2];
  std::memcpy(halves, &conditions, sizeof(halves));
  return (halves[0] | halves[1]) != 0;
}

// By column; beyond every range where a factor is infinite or NaN.
PL_ANY_WIDTH Shorts largest_exponents(const Tile& tile, const float (&row_sums)[kColumns],
                                      size_t row) {
  Ints fields;
  load(row_sums, fields);
  fields = fields >> 23 & 0xFF;
  Shorts largest = larger(__builtin_convertvector(fields, Shorts), Shorts{} + int16_t{1}) - 127;
  int16_t largest_in_row = -127;
  Shorts largest_in_column = Shorts{} - int16_t{127};
  for (size_t k = 0; k < kDepth; ++k) {
    const int16_t exponent = tile.row_exponents[row][k];
    Shorts exponents;
    load(tile.column_exponents[k], exponents);
    largest_in_row = std::max(largest_in_row, exponent);
    largest_in_column = larger(largest_in_column, exponents);
    largest = larger(largest, exponents + exponent);
  }
  const Shorts special = Shorts{} + int16_t{1000};
  if (largest_in_row == kSpecial) return special;
  return largest_in_column == kSpecial ? special : largest;
}

// Where every largest exponent lies in this range, products are exact in float32 or too small to
// count, and results are normal: the same sums in float32 and int32 vectors. 16 truncated products
// are below 16 * (2 - 2^-7)^2 * 2^25 < 2^31.
constexpr int16_t kLowest = -90;
constexpr int16_t kHighest = 100;

PL_ANY_WIDTH void sum_row(const Tile& tile, size_t row, Shorts largest,
                          float (&row_sums)[kColumns]) {
  const Ints exponents = __builtin_convertvector(largest, Ints);
  const auto scale = (Floats)((kFractionBits + 127 - exponents) << 23);
  Uints total{};  // discarded sums of a column out of range wrap
  for (size_t k = 0; k < kDepth; ++k) {
    Floats column;
    load(tile.columns[k], column);
    total += (Uints) __builtin_convertvector(column * tile.rows[row][k] * scale, Ints);
  }
  Floats sums;
  load(row_sums, sums);
  const Ints kept = __builtin_convertvector(sums * scale, Ints);
  const Doubles exact =
      __builtin_convertvector((Ints)total, Doubles) + __builtin_convertvector(kept, Doubles);
  const auto unit =
      (Doubles)((__builtin_convertvector(exponents, Longs) + (1023 - kFractionBits)) << 52);
  const Longs bits = (Longs)(exact * unit) & ~int64_t{0x1FFFFFFF};  // 24 of a double's 53 bits
  const Floats results = __builtin_convertvector((Doubles)bits, Floats);
  std::memcpy(row_sums, &results, sizeof(row_sums));
}

bool is_zero(const uint32_t (&pairs)[kPairs]) {
  uint32_t bits = 0;
  for (const uint32_t pair : pairs) bits |= pair;
  return (bits & 0x7FFF7FFFu) == 0;
}

bool has_special(const uint32_t (&pairs)[kPairs]) {
  return std::any_of(std::begin(pairs), std::end(pairs), [](uint32_t pair) {
    return is_special(static_cast<uint16_t>(pair)) || is_special(static_cast<uint16_t>(pair >> 16));
  });
}

std::array<uint16_t, 16> elements(const uint32_t (&pairs)[kPairs]) {
  std::array<uint16_t, 16> values;
  std::memcpy(values.data(), pairs, sizeof(values));
  return values;
}

float one_sum(const MmaOperands& operands, size_t row, size_t column, float sum) {
  const uint32_t(&a)[kPairs] = operands.row_pairs[row];
  const uint32_t(&b)[kPairs] = operands.column_pairs[column];
  // Rows and columns of zeros pad matrices.
  if (sum == 0.0f && ((is_zero(a) && !has_special(b)) || (is_zero(b) && !has_special(a)))) {
    return 0.0f;
  }
  return fused_dot(elements(a), elements(b), sum);
}

[[gnu::always_inline]] inline void multiply(MmaOperands& operands) {
  Tile tile;
  take_apart(operands, tile);
  for (size_t row = 0; row < 16; ++row) {
    float(&sums)[kColumns] = operands.sums[row];
    const Shorts largest = largest_exponents(tile, sums, row);
    const Shorts clamped = largest < kLowest    ? Shorts{} + kLowest
                           : largest > kHighest ? Shorts{} + kHighest
                                                : largest;
    float before[kColumns];
    std::memcpy(before, sums, sizeof(before));
    sum_row(tile, row, clamped, sums);
    if (!is_any((largest < kLowest) | (largest > kHighest))) continue;
    for (size_t j = 0; j < kColumns; ++j) {
      if (largest[j] < kLowest || largest[j] > kHighest) {
        sums[j] = one_sum(operands, row, j, before[j]);
      }
    }
  }
}

// The same operations, so the same bits, on wider vectors.
#if defined(__x86_64__)
[[gnu::target("avx2")]] void multiply_avx2(MmaOperands& operands) { multiply(operands); }
const bool kHasAvx2 = __builtin_cpu_supports("avx2") != 0;
#else
void multiply_avx2(MmaOperands& operands) { multiply(operands); }
constexpr bool kHasAvx2 = false;
#endif

}  // namespace

void multiply_operands(MmaOperands& operands) {
  if (kHasAvx2) {
    multiply_avx2(operands);
  } else {
    multiply(operands);
  }
}

void multiply_tile(LaneSlots& slots) {
  MmaOperands operands;
  take_operands(slots, operands);
  multiply_operands(operands);
  for (size_t row = 0; row < 16; ++row) {
    for (size_t j = 0; j < kColumns; ++j) {
      slots[row % 8 * 4 + j / 2].out[row / 8 * 2 + j % 2] =
          std::bit_cast<uint32_t>(operands.sums[row][j]);
    }
  }
}

}  // namespace paceline::cuda::emulation
