#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/test_scale.h"

namespace paceline {
namespace {

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }
float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }

bool is_nan_half(uint16_t bits) { return (bits & 0x7FFF) > 0x7C00; }

// IEEE 754-2019, section 3.4: the value of a finite or infinite binary16.
double half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  double magnitude = std::ldexp(mantissa, -24);
  if (exponent == 31) {
    magnitude = HUGE_VAL;
  } else if (exponent > 0) {
    magnitude = std::ldexp(1024 + mantissa, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double bfloat_value(uint16_t bits) { return float_of(uint32_t{bits} << 16); }

// Round to nearest, ties to even, by search among all values of a 16-bit format. `infinity` is the
// pattern of infinity; beyond the largest finite value it stands where the next value would be.
template <class ValueOf>
uint16_t round_oracle(float value, uint16_t infinity, ValueOf value_of) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::abs(static_cast<double>(value));
  const auto magnitude_of = [&](uint32_t bits) {
    if (bits < infinity) return value_of(static_cast<uint16_t>(bits));
    const double last = value_of(static_cast<uint16_t>(infinity - 1));
    return last + (last - value_of(static_cast<uint16_t>(infinity - 2)));
  };
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  uint32_t low = 0, high = infinity;  // value_of(low) <= magnitude, high is above or the last
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (magnitude_of(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - magnitude_of(low), above = magnitude_of(high) - magnitude;
  const bool up = above < below || (above == below && low % 2 == 1);
  return static_cast<uint16_t>(sign | (up ? high : low));
}

TEST(Float16, EveryValueConvertsExactly) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const Float16 half{static_cast<uint16_t>(bits)};
    const float value = to_float(half);
    if (is_nan_half(half.bits)) {
      ASSERT_TRUE(std::isnan(value));
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0);
      ASSERT_EQ(to_float16(value).bits, bits | 0x0200) << bits;  // quiet, the payload kept
      continue;
    }
    ASSERT_EQ(value, half_value(half.bits)) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0);
    ASSERT_EQ(to_float16(value).bits, bits);
  }
}

// At, just below and just above every value and every midpoint between two neighbours.
TEST(Float16, RoundsToNearestEvenEverywhere) {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const auto lower = static_cast<float>(half_value(static_cast<uint16_t>(bits)));
    const float upper =
        bits == 0x7BFF ? 65536.0f : static_cast<float>(half_value(static_cast<uint16_t>(bits + 1)));
    const float middle = lower + (upper - lower) / 2;
    for (float center : {lower, middle, upper}) {
      for (float value : {center, std::nextafter(center, 0.0f), std::nextafter(center, 1e30f)}) {
        const uint16_t expected = round_oracle(value, 0x7C00, half_value);
        ASSERT_EQ(to_float16(value).bits, expected) << value;
        ASSERT_EQ(to_float16(-value).bits, expected | 0x8000) << value;
      }
    }
  }
}

TEST(Float16, RandomFloatsRoundAsTheOracle) {
  std::mt19937 random(1);
  const int num_rounds = scaled(200'000, 20'000'000);
  for (int i = 0; i < num_rounds; ++i) {
    // Any exponent, then one in the type's range.
    const auto any = static_cast<uint32_t>(random());
    const uint32_t bits = i % 4 == 0 ? any : (any & 0x807FFFFF) | ((100 + any % 46) << 23);
    const float value = float_of(bits);
    if (std::isnan(value)) continue;
    ASSERT_EQ(to_float16(value).bits, round_oracle(value, 0x7C00, half_value)) << value;
  }
}

TEST(Float16, SpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_float16(kInfinity).bits, 0x7C00);
  EXPECT_EQ(to_float16(-kInfinity).bits, 0xFC00);
  EXPECT_EQ(to_float16(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_float16(65504.0f).bits, 0x7BFF);
  EXPECT_EQ(to_float16(std::nextafter(65520.0f, 0.0f)).bits, 0x7BFF);
  EXPECT_EQ(to_float16(65520.0f).bits, 0x7C00);
  EXPECT_EQ(to_float16(std::numeric_limits<float>::max()).bits, 0x7C00);
  EXPECT_EQ(to_float16(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(to_float16(0x1p-25f).bits, 0);  // a tie, and zero is even
  EXPECT_EQ(to_float16(std::nextafter(0x1p-25f, 1.0f)).bits, 1);
  EXPECT_EQ(to_float16(0x1.8p-24f).bits, 2);  // a tie between 1 and 2
  // A signalling NaN becomes quiet, whose payload would else be lost or become infinity.
  EXPECT_EQ(to_float16(float_of(0x7F800001)).bits, 0x7E00);
  EXPECT_EQ(to_float16(float_of(0xFF800001)).bits, 0xFE00);
  EXPECT_EQ(to_float16(float_of(0x7FC02000)).bits, 0x7E01);
}

TEST(BFloat16, EveryValueConvertsExactly) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const BFloat16 value{static_cast<uint16_t>(bits)};
    ASSERT_EQ(bits_of(to_float(value)), bits << 16);
    const bool is_nan = (bits & 0x7FFF) > 0x7F80;
    ASSERT_EQ(to_bfloat16(to_float(value)).bits, is_nan ? bits | 0x40 : bits);
  }
}

TEST(BFloat16, RoundsToNearestEvenEverywhere) {
  for (uint32_t high = 0; high < 0x7F80; ++high) {
    for (uint32_t low : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const float value = float_of((high << 16) | low);
      const uint16_t expected = round_oracle(value, 0x7F80, bfloat_value);
      ASSERT_EQ(to_bfloat16(value).bits, expected) << value;
      ASSERT_EQ(to_bfloat16(-value).bits, expected | 0x8000) << value;
    }
  }
}

TEST(BFloat16, SpecialValues) {
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7F80);  // nearer to infinity
  EXPECT_EQ(to_bfloat16(float_of(0x7F7F7FFF)).bits, 0x7F7F);
  EXPECT_EQ(to_bfloat16(float_of(0x7F7F8000)).bits, 0x7F80);  // a tie, and infinity is even
  EXPECT_EQ(to_bfloat16(float_of(0x7F800001)).bits, 0x7FC0);  // NaN, not infinity
  EXPECT_EQ(to_bfloat16(float_of(0xFFFFFFFF)).bits, 0xFFFF);
  EXPECT_EQ(to_bfloat16(float_of(0x3F808000)).bits, 0x3F80);  // ties go to the even one
  EXPECT_EQ(to_bfloat16(float_of(0x3F818000)).bits, 0x3F82);
}

TEST(DType, NamesAndSizes) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32}) {
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_name(DType::bf16), "bfloat16");
  for (const char* name : {"float32", "f32", "F32"}) EXPECT_EQ(parse_dtype(name), DType::f32);
  for (const char* name : {"float16", "f16", "F16", "half"})
    EXPECT_EQ(parse_dtype(name), DType::f16);
  for (const char* name : {"bfloat16", "bf16", "BF16"}) EXPECT_EQ(parse_dtype(name), DType::bf16);
  EXPECT_EQ(parse_dtype("int32"), DType::i32);
  for (const char* name : {"", "float64", "FLOAT32", "f32 ", "auto", "int8"}) {
    EXPECT_EQ(parse_dtype(name), std::nullopt) << name;
  }
  // No weights are read as int8; keys and values may be stored so.
  EXPECT_EQ(dtype_name(DType::i8), "int8");
  EXPECT_FALSE(is_float(DType::i8));
  EXPECT_EQ(dtype_bytes(DType::i8), sizeof(int8_t));
  EXPECT_EQ(dtype_bytes(DType::f32), sizeof(float));
  EXPECT_EQ(dtype_bytes(DType::i32), sizeof(int32_t));
  EXPECT_EQ(dtype_bytes(DType::f16), sizeof(Float16));
  EXPECT_EQ(dtype_bytes(DType::bf16), sizeof(BFloat16));
}

TEST(DType, WithFloatDtypeGivesTheTypeOfTheDtype) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    EXPECT_EQ(with_float_dtype(dtype, []<class T>() { return dtype_of<T>(); }), dtype);
  }
}

}  // namespace
}  // namespace paceline
