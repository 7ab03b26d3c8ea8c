// The emulated matrix instruction against its definition in exact arithmetic.
#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/cuda/code/mma_probe.h"
#include "kernels/cuda/emulation/mma_tile.h"
#include "kernels/cuda/launch.h"
#include "tests/cuda/every_order.h"

namespace paceline::cuda::testing {
namespace {

using Integer = boost::multiprecision::cpp_int;
using Operand = std::array<uint16_t, 16>;

float float_of(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Of the binade, as the instruction takes it: zero and subnormal values have the least.
int exponent_of(float value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return value == 0.0f ? -126 : std::max(exponent - 1, -126);
}

// value 2^kScale, exactly: no value or product has a bit below 2^-300.
constexpr int kScale = 300;
Integer scaled(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  const Integer significand = static_cast<int64_t>(std::ldexp(fraction, 53));
  const int shift = exponent - 53 + kScale;
  return shift >= 0 ? significand << shift : significand / (Integer(1) << -shift);
}

// Truncated towards zero to a multiple of 2^exponent.
Integer truncated(const Integer& value, int exponent) {
  const Integer unit = Integer(1) << (exponent + kScale);
  return value / unit * unit;
}

// The definition of mma_tile.h for finite values.
float exact_dot(const Operand& a, const Operand& b, float c) {
  int largest = exponent_of(c);
  for (size_t k = 0; k < 16; ++k) {
    largest = std::max(largest, exponent_of(float_of(a[k])) + exponent_of(float_of(b[k])));
  }
  Integer sum = truncated(scaled(double{c}), largest - 25);
  for (size_t k = 0; k < 16; ++k) {
    sum += truncated(scaled(double{float_of(a[k])} * double{float_of(b[k])}), largest - 25);
  }
  if (sum == 0) return 0.0f;
  const Integer magnitude = sum < 0 ? Integer(-sum) : sum;
  const int top = static_cast<int>(boost::multiprecision::msb(magnitude)) - kScale;
  const int unit = std::max(top - 23, -149);
  const Integer kept = truncated(magnitude, unit) >> (unit + kScale);
  if (kept == 0) return 0.0f;
  const auto value = static_cast<float>(std::ldexp(kept.convert_to<double>(), unit));
  return sum < 0 ? -value : value;
}

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

// Values whose exponents spread over `spread` binades around `middle`; some are zero or subnormal.
class Values {
 public:
  Values(uint32_t seed, int middle, int spread) : random_(seed), middle_(middle), spread_(spread) {}

  uint16_t bf16() { return static_cast<uint16_t>(bits(7)); }
  float float32() { return std::bit_cast<float>(bits(23)); }
  Operand operand() {
    Operand values;
    for (uint16_t& value : values) value = bf16();
    return values;
  }

 private:
  uint32_t bits(int fraction_bits) {
    const uint32_t word = random_();
    const uint32_t sign = word >> 31 << (fraction_bits + 8);
    if (word % 13 == 0) return sign;
    const int field =
        middle_ + 127 + static_cast<int>(word / 13 % static_cast<uint32_t>(spread_)) - spread_ / 2;
    const auto bounded = static_cast<uint32_t>(std::clamp(field, 0, 254));
    return sign | bounded << fraction_bits | random_() % (1u << fraction_bits);
  }

  std::mt19937 random_;
  int middle_;
  int spread_;
};

struct Range {
  int middle;
  int spread;
};
constexpr Range kRanges[] = {{0, 4},    {0, 30},    {0, 120},  {-60, 8}, {-64, 20},
                             {-75, 40}, {-120, 20}, {62, 4},   {60, 30}, {100, 60},
                             {0, 255},  {-127, 3},  {-40, 10}, {-45, 6}, {50, 6}};

TEST(Mma, AFusedSumIsItsDefinition) {
  uint32_t seed = 0;
  for (const Range range : kRanges) {
    Values values(++seed, range.middle, range.spread);
    for (int i = 0; i < 400; ++i) {
      const Operand a = values.operand();
      const Operand b = values.operand();
      const float c = i % 3 == 0 ? 0.0f : values.float32();
      ASSERT_EQ(bits_of(emulation::fused_dot(a, b, c)), bits_of(exact_dot(a, b, c)))
          << "range " << range.middle << ", " << range.spread << ", try " << i;
    }
  }
}

// Alignment keeps 25 bits below the largest exponent, of each term alone.
TEST(Mma, SmallTermsAreTruncatedOneByOne) {
  const auto dot = [](std::vector<float> terms, float c) {
    Operand a{};
    Operand b{};
    for (size_t k = 0; k < terms.size(); ++k) {
      a[k] = static_cast<uint16_t>(bits_of(terms[k]) >> 16);
      b[k] = 0x3F80;
    }
    return emulation::fused_dot(a, b, c);
  };
  EXPECT_EQ(dot({1.0f, 0x1p-25f, 0x1p-25f}, 0.0f), 1.0f);  // in the sum, but not in a float
  EXPECT_EQ(dot({1.0f, 0x1p-25f, 0x1p-25f, 0x1p-25f, 0x1p-25f}, 0.0f), 1.0f + 0x1p-23f);
  EXPECT_EQ(dot(std::vector<float>(15, 0x1p-26f), 1.0f), 1.0f);  // none is in the sum
  EXPECT_EQ(dot({1.0f, -0x1p-25f}, 0.0f), 1.0f - 0x1p-24f);      // truncated, not rounded
  EXPECT_EQ(dot({-1.0f, -0x1p-24f}, 0.0f), -1.0f);
  EXPECT_EQ(dot({1.0f, -1.0f, 0x1p-26f}, 0.0f), 0.0f);
}

// A factor of zero has the exponent -126, so its product's may be the largest.
TEST(Mma, AProductOfZeroCountsForTheLargestExponent) {
  Operand a{};
  Operand b{};
  a[0] = 0x7F00;  // 2^127, times zero: exponent 1
  EXPECT_EQ(emulation::fused_dot(a, b, 0x1p-24f), 0x1p-24f);
  EXPECT_EQ(emulation::fused_dot(a, b, 0x1p-25f), 0.0f);
}

TEST(Mma, InfinitiesAndNans) {
  constexpr uint16_t kInfinity = 0x7F80;
  constexpr uint16_t kOne = 0x3F80;
  const float infinity = std::numeric_limits<float>::infinity();
  Operand a{};
  Operand b{};
  a[3] = kInfinity;
  EXPECT_EQ(bits_of(emulation::fused_dot(a, b, 1.0f)), 0x7FFFFFFFu);
  b[3] = kOne;
  EXPECT_EQ(emulation::fused_dot(a, b, 1.0f), infinity);
  EXPECT_EQ(bits_of(emulation::fused_dot(a, b, -infinity)), 0x7FFFFFFFu);
  b[3] = kOne | 0x8000;
  EXPECT_EQ(emulation::fused_dot(a, b, -infinity), -infinity);
  a[9] = 0x7FC0;
  EXPECT_EQ(bits_of(emulation::fused_dot(a, b, 0.0f)), 0x7FFFFFFFu);
  // Products of float32's range and beyond are no infinities: only their sum may be.
  a = b = Operand{};
  a[0] = b[0] = 0x7F00;
  a[1] = 0x7F00;
  b[1] = 0xFF00;
  EXPECT_EQ(emulation::fused_dot(a, b, 0.0f), 0.0f);
  a[1] = 0;
  EXPECT_EQ(emulation::fused_dot(a, b, 0.0f), infinity);
}

struct Tile {
  std::array<std::array<uint16_t, 16>, 16> a;  // [row, k]
  std::array<std::array<uint16_t, 16>, 8> b;   // [column, k]
  std::array<std::array<float, 8>, 16> d;      // [row, column]
};

// As the instruction's lanes hold it: mma_bf16()'s documentation (PTX ISA, m16n8k16).
std::array<std::array<float, 4>, 32> multiply(const Tile& tile) {
  std::vector<uint32_t> a(32 * 4);
  std::vector<uint32_t> b(32 * 2);
  std::vector<float> d(32 * 4);
  const auto pair = [](const Operand& values, size_t k) {
    return values[k] | uint32_t{values[k + 1]} << 16;
  };
  for (size_t lane = 0; lane < 32; ++lane) {
    const size_t g = lane / 4;
    const size_t t = lane % 4;
    for (size_t i = 0; i < 4; ++i) {
      a[lane * 4 + i] = pair(tile.a[g + i % 2 * 8], 2 * t + i / 2 * 8);
      d[lane * 4 + i] = tile.d[g + i / 2 * 8][2 * t + i % 2];
    }
    for (size_t i = 0; i < 2; ++i) b[lane * 2 + i] = pair(tile.b[g], 2 * t + i * 8);
  }
  const std::unique_ptr<CudaDevice> device = make_emulated_device();
  float* const sums = to_device(*device, d);
  launch<MmaProbe>(*device, {},
                   {.a = to_device(*device, a), .b = to_device(*device, b), .d = sums});
  const std::vector<float> results = from_device(*device, sums, d.size());
  std::array<std::array<float, 4>, 32> lanes;
  for (size_t i = 0; i < d.size(); ++i) lanes[i / 4][i % 4] = results[i];
  return lanes;
}

TEST(Mma, ATileIsItsFusedSums) {
  uint32_t seed = 100;
  for (const Range range : kRanges) {
    for (int i = 0; i < 12; ++i) {
      Values values(++seed, range.middle, range.spread);
      Tile tile;
      for (Operand& row : tile.a) row = values.operand();
      for (Operand& column : tile.b) column = values.operand();
      for (auto& row : tile.d) {
        for (float& value : row) value = values.float32();
      }
      if (i % 4 == 1) tile.b[5] = Operand{};  // as a row that pads a batch
      if (i % 4 == 1) tile.d = {};
      if (i % 4 == 2) tile.a[3][7] = 0x7F80;
      const auto lanes = multiply(tile);
      for (size_t lane = 0; lane < 32; ++lane) {
        for (size_t j = 0; j < 4; ++j) {
          const size_t row = lane / 4 + j / 2 * 8;
          const size_t column = lane % 4 * 2 + j % 2;
          ASSERT_EQ(bits_of(lanes[lane][j]),
                    bits_of(emulation::fused_dot(tile.a[row], tile.b[column], tile.d[row][column])))
              << "range " << range.middle << ", " << range.spread << ": " << row << ", " << column;
        }
      }
    }
  }
}

}  // namespace
}  // namespace paceline::cuda::testing
