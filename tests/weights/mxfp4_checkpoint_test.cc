// Matrices in MXFP4 have the numbers of the format, and codes that say the same.
#include "weights/mxfp4_checkpoint.h"

#include <array>
#include <cmath>
#include <optional>

#include "tests/weights/opened_checkpoint.h"
#include "weights/expert_checkpoint.h"

namespace paceline {
namespace {

constexpr std::array<float, 16> kE2m1 = {0, 0.5f,  1,  1.5f,  2,  3,  4,  6,
                                         0, -0.5f, -1, -1.5f, -2, -3, -4, -6};

class Mxfp4CheckpointTest : public OpenedCheckpoint<Mxfp4Checkpoint> {
 protected:
  // Experts of two rows of one block; byte b of every block is 0x10 * (b % 16) + 15 - b % 16.
  std::vector<FileTensor> stacks(int64_t experts, uint8_t first_scale) {
    std::string blocks, scales;
    for (int64_t row = 0; row < 2 * experts; ++row) {
      for (int b = 0; b < 16; ++b) blocks.push_back(static_cast<char>(0x10 * b + 15 - b));
      scales.push_back(static_cast<char>(first_scale + row));
    }
    const auto count = static_cast<uint64_t>(experts);
    return {{"a.experts.gate_up_proj_blocks", "U8", {count, 2, 1, 16}, blocks},
            {"a.experts.gate_up_proj_scales", "U8", {count, 2, 1}, scales}};
  }
};

TEST_F(Mxfp4CheckpointTest, ReadsTheNumbersOfTheFormat) {
  Mxfp4Checkpoint& checkpoint = open(stacks(3, 126));
  ASSERT_EQ(checkpoint.entries().size(), 1u);
  const std::string name = "a.experts.gate_up_proj.weight";
  EXPECT_EQ(checkpoint.shape_of(name), (Extents{3, 2, 32}));
  const auto rows = checkpoint.read_grouped(name, {3, 2, 32});
  ASSERT_NE(rows, nullptr);
  std::array<float, 32> values{};
  std::array<uint8_t, 32> codes{};
  std::array<float, 1> scale{}, offset{};
  for (int64_t row = 0; row < 6; ++row) {
    rows->read_values(row, values);
    rows->read_codes(row, codes, scale, offset);
    for (size_t i = 0; i < 32; ++i) {
      const size_t bits = i % 2 == 0 ? 15 - i / 2 : i / 2;
      EXPECT_EQ(values[i], std::ldexp(kE2m1[bits], static_cast<int>(row) - 1));
      EXPECT_EQ(scale[0] * static_cast<float>(codes[i]) + offset[0], values[i]);
    }
  }
  EXPECT_TRUE(std::signbit(values[2 * (15 - 8)]));  // -0
}

TEST_F(Mxfp4CheckpointTest, GateAndUpTakeTurnsWhereThereAreBiases) {
  std::vector<FileTensor> tensors = stacks(2, 127);
  tensors.push_back(
      {"a.experts.gate_up_proj_bias", "F32", {2, 2}, bytes_of(std::vector<float>{1, 2, 3, 4})});
  tensors.push_back(
      {"a.experts.down_proj_bias", "F32", {2, 1}, bytes_of(std::vector<float>{5, 6})});
  tensors.push_back(
      {"a.experts.down_proj", "F32", {2, 3, 1}, bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6})});
  ExpertCheckpoint experts(open(tensors), memory_, threads_);
  const Tensor up = experts.read("a.experts.1.up_proj.weight", {1, 32});
  EXPECT_EQ(up.dtype(), DType::bf16);
  EXPECT_EQ(to_float(up.elements<BFloat16>()[1]), 0.0f);
  EXPECT_EQ(to_float(up.elements<BFloat16>()[3]), 4.0f);  // 0.5 times the scale of row 3
  EXPECT_EQ(experts.read("a.experts.1.gate_proj.bias", {1}).elements<float>()[0], 3.0f);
  EXPECT_EQ(experts.read("a.experts.0.up_proj.bias", {1}).elements<float>()[0], 2.0f);
  EXPECT_EQ(experts.read("a.experts.1.down_proj.bias", {1}).elements<float>()[0], 6.0f);
  // Plain ones are transposed.
  const Tensor down = experts.read("a.experts.1.down_proj.weight", {1, 3});
  EXPECT_EQ(down.elements<float>()[2], 6.0f);
}

TEST_F(Mxfp4CheckpointTest, DamageIsNamed) {
  std::vector<FileTensor> tensors = stacks(1, 0);
  tensors.pop_back();
  expect_error(ErrorCode::corrupt, {"gate_up_proj_scales", "is missing"}, [&] { open(tensors); });
  tensors.push_back({"a.experts.gate_up_proj_scales", "U8", {1, 1, 1}, "x"});
  expect_error(ErrorCode::corrupt, {"gate_up_proj_scales", "[1, 1, 1]", "[1, 2, 1]"},
               [&] { open(tensors); });
  tensors.back() = {"a.experts.gate_up_proj_scales", "F32", {1, 2, 1}, "12345678"};
  expect_error(ErrorCode::corrupt, {"gate_up_proj_scales", "float32", "uint8"},
               [&] { open(tensors); });
  expect_error(ErrorCode::corrupt, {"gate_up_proj_scales", "NaN"}, [&] {
    open(stacks(1, 254)).read_grouped("a.experts.gate_up_proj.weight", {1, 2, 32});
  });
  expect_error(ErrorCode::corrupt, {"[1, 2, 32]", "[1, 2, 64]"}, [&] {
    open(stacks(1, 1)).read("a.experts.gate_up_proj.weight", {1, 2, 64});
  });
  expect_error(ErrorCode::corrupt, {"a_blocks", "[1, 1, 1, 8]"}, [&] {
    open({{"a_blocks", "U8", {1, 1, 1, 8}, "12345678"}});
  });
}

}  // namespace
}  // namespace paceline
