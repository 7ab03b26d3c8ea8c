#include "layers/rope_frequencies.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "layers/rope.h"

namespace paceline {
namespace {

constexpr int64_t kRotaryDim = 128;
constexpr std::array<size_t, 8> kIndices{1, 7, 13, 22, 31, 40, 53, 63};

// Those of transformers 5.24 (ROPE_INIT_FUNCTIONS), of which this machine's pow may differ in the
// last bit.
void expect_frequencies(const RopeConfig& config, int64_t stretched,
                        const std::array<float, kIndices.size()>& expected) {
  const std::vector<float> found = rope_frequencies(config, kRotaryDim, stretched);
  ASSERT_EQ(found.size(), kRotaryDim / 2);
  EXPECT_EQ(found[0], 1.0f / (config.scaling == RopeScaling::linear ? 3.0f : 1.0f));
  int num_equal = 0;
  for (size_t i = 0; i < kIndices.size(); ++i) {
    EXPECT_NEAR(found[kIndices[i]], expected[i], expected[i] * 1.2e-7f) << kIndices[i];
    num_equal += found[kIndices[i]] == expected[i] ? 1 : 0;
  }
  EXPECT_GE(num_equal, 6);
}

TEST(RopeFrequencies, AreThoseOfTransformers) {
  expect_frequencies({.theta = 1e6}, 0,
                     {0x1.9c975ap-1f, 0x1.c3f06ap-3f, 0x1.ef0a26p-5f, 0x1.1bc25ap-7f,
                      0x1.454deep-10f, 0x1.74eea6p-13f, 0x1.68941cp-17f, 0x1.4d1c98p-20f});
  expect_frequencies({.theta = 1e6, .scaling = RopeScaling::linear, .factor = 3.0}, 0,
                     {0x1.130f92p-2f, 0x1.2d4af2p-4f, 0x1.4a06c4p-6f, 0x1.7a5878p-9f,
                      0x1.b1bd3ep-12f, 0x1.f13e32p-15f, 0x1.e0c57ap-19f, 0x1.bc2620p-22f});
  expect_frequencies({.theta = 5e5,
                      .scaling = RopeScaling::by_wavelength,
                      .factor = 8.0,
                      .original_max_position = 8192.0},
                     0,
                     {0x1.a11582p-1f, 0x1.e788c2p-3f, 0x1.1cf130p-4f, 0x1.681adap-7f,
                      0x1.c12f3cp-11f, 0x1.1f91f0p-15f, 0x1.4014d2p-19f, 0x1.4985fep-22f});
  expect_frequencies(
      {.theta = 1e6, .scaling = RopeScaling::yarn, .factor = 4.0, .original_max_position = 32768.0},
      0,
      {0x1.9c975ap-1f, 0x1.c3f06ap-3f, 0x1.ef0a26p-5f, 0x1.1bc25ap-7f, 0x1.a4fb70p-11f,
       0x1.74eea6p-15f, 0x1.68941cp-19f, 0x1.4d1c98p-22f});
  expect_frequencies({.theta = 1e4,
                      .scaling = RopeScaling::dynamic,
                      .factor = 2.0,
                      .original_max_position = 8192.0},
                     10000,
                     {0x1.b8cedep-1f, 0x1.670d40p-2f, 0x1.24756cp-3f, 0x1.300c08p-5f,
                      0x1.3c1832p-7f, 0x1.489e90p-9f, 0x1.776b96p-12f, 0x1.5006c8p-14f});
}

}  // namespace
}  // namespace paceline
