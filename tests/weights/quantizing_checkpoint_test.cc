#include "weights/quantizing_checkpoint.h"

#include <cmath>
#include <limits>

#include "tests/weights/written_files.h"

namespace paceline {
namespace {

std::vector<float> waves(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = 0.03f * std::sin(static_cast<float>(i) * 1.7f + static_cast<float>(i / 64));
  }
  return values;
}

class QuantizingCheckpointTest : public testing::Test {
 protected:
  Checkpoint& open(LoadQuantization quantization, const std::vector<float>& matrix,
                   uint64_t row_length) {
    const uint64_t rows = matrix.size() / row_length;
    directory_.write("model.safetensors",
                     safetensors_file(std::vector<FileTensor>{
                         {"a.weight", "F32", {rows, row_length}, bytes_of(matrix)},
                         {"norm.weight", "F32", {2}, bytes_of(std::vector<float>{3, 4})}}));
    source_ = open_checkpoint(directory_.path());
    checkpoint_.emplace(*source_, quantization, memory_, threads_);
    return *checkpoint_;
  }

  TestDirectory directory_;
  Memory memory_;
  ThreadPool threads_{2};
  std::unique_ptr<Checkpoint> source_;
  std::optional<QuantizingCheckpoint> checkpoint_;
};

struct Case {
  LoadQuantization quantization;
  Grouping grouping;
  float max_error;  // of values within 0.03
};

const Case kCases[] = {
    {LoadQuantization::q4, {.bits = 4, .group_size = 64, .zero_point = {}}, 0.06f / 15},
    {LoadQuantization::q8, {.bits = 8, .group_size = 64, .zero_point = 128}, 0.51f * 0.03f / 127}};

TEST_F(QuantizingCheckpointTest, CodesAndValuesSayTheSameAndStayClose) {
  const std::vector<float> plain = waves(128 * 3);
  for (const Case& expected : kCases) {
    Checkpoint& checkpoint = open(expected.quantization, plain, 128);
    const auto rows = checkpoint.read_grouped("a.weight", {3, 128});
    ASSERT_NE(rows, nullptr);
    EXPECT_EQ(rows->grouping(), expected.grouping);
    EXPECT_EQ(rows->value_dtype(), DType::f32);
    const Tensor values = checkpoint.read("a.weight", {3, 128});
    float largest_error = 0;
    for (int64_t row = 0; row < 3; ++row) {
      std::vector<uint8_t> codes(128);
      std::vector<float> scales(2), offsets(2), read(128);
      rows->read_codes(row, codes, scales, offsets);
      rows->read_values(row, read);
      for (size_t i = 0; i < 128; ++i) {
        const float value = values.row<float>(row)[i];
        EXPECT_EQ(value, read[i]);
        EXPECT_NEAR(value, scales[i / 64] * static_cast<float>(codes[i]) + offsets[i / 64], 1e-7f);
        const float error = std::abs(value - plain[static_cast<size_t>(row) * 128 + i]);
        largest_error = std::max(largest_error, error);
      }
      if (expected.grouping.zero_point) {
        EXPECT_EQ(offsets[1], -128 * scales[1]);
        EXPECT_EQ(*std::ranges::min_element(codes) < 128, true);
      }
    }
    EXPECT_LE(largest_error, expected.max_error);
    EXPECT_GT(largest_error, 0);
  }
}

TEST_F(QuantizingCheckpointTest, EightBitsGiveTheLargestMagnitude127Steps) {
  std::vector<float> plain(32, 0.0f);
  plain[3] = -2.54f;
  plain[4] = 0.05f;  // 2.5 steps: to even
  const auto rows = open(LoadQuantization::q8, plain, 32).read_grouped("a.weight", {1, 32});
  std::vector<uint8_t> codes(32);
  std::vector<float> scales(1), offsets(1);
  rows->read_codes(0, codes, scales, offsets);
  EXPECT_EQ(scales[0], 2.54f / 127);
  EXPECT_EQ(codes[0], 128);
  EXPECT_EQ(codes[3], 1);
  EXPECT_EQ(codes[4], 130);
}

TEST_F(QuantizingCheckpointTest, ZerosStayZeros) {
  for (const Case& one : kCases) {
    Checkpoint& checkpoint = open(one.quantization, std::vector<float>(64, 0.0f), 64);
    const Tensor values = checkpoint.read("a.weight", {1, 64});
    for (int i = 0; i < 64; ++i) EXPECT_EQ(values.elements<float>()[i], 0.0f);
  }
}

TEST_F(QuantizingCheckpointTest, GroupsAreOf32Where64DoesNotDivideAndElseThereAreNone) {
  EXPECT_EQ(open(LoadQuantization::q4, waves(96), 96)
                .read_grouped("a.weight", {1, 96})
                ->grouping()
                .group_size,
            32);
  Checkpoint& checkpoint = open(LoadQuantization::q4, waves(80), 40);
  EXPECT_EQ(checkpoint.read_grouped("a.weight", {2, 40}), nullptr);
  EXPECT_EQ(checkpoint.read("a.weight", {2, 40}).elements<float>()[7], waves(8)[7]);
  EXPECT_EQ(checkpoint.read_grouped("norm.weight", {2}), nullptr);
  EXPECT_EQ(checkpoint.read("norm.weight", {2}).elements<float>()[0], 3);
}

TEST_F(QuantizingCheckpointTest, MemoryGoesBackWhenATensorIsReleased) {
  Checkpoint& checkpoint = open(LoadQuantization::q8, waves(640), 64);
  const size_t before = memory_.stats().active_bytes;
  checkpoint.read("a.weight", {10, 64});
  EXPECT_GT(memory_.stats().active_bytes, before);
  checkpoint.release("a.weight");
  EXPECT_EQ(memory_.stats().active_bytes, before);
}

TEST_F(QuantizingCheckpointTest, WhatIsNotFiniteIsRefused) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float odd : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const Case& one : kCases) {
      std::vector<float> plain = waves(128);
      plain[100] = odd;
      Checkpoint& checkpoint = open(one.quantization, plain, 64);
      expect_error(ErrorCode::numerical, {"tensor \"a.weight\": row 1 can't be quantised"}, [&] {
        checkpoint.read("a.weight", {2, 64});
      });
    }
  }
  std::vector<float> wide = waves(64);
  wide[0] = 3e38f;
  wide[1] = -3e38f;
  Checkpoint& checkpoint = open(LoadQuantization::q4, wide, 64);
  expect_error(ErrorCode::numerical, {"a range beyond float32"}, [&] {
    checkpoint.read("a.weight", {1, 64});
  });
}

TEST_F(QuantizingCheckpointTest, WhatIsQuantisedIsNotQuantisedAgain) {
  Checkpoint& inner = open(LoadQuantization::q8, waves(64), 64);
  QuantizingCheckpoint outer(inner, LoadQuantization::q4, memory_, threads_);
  expect_error(ErrorCode::invalid, {"\"a.weight\" is quantised already"}, [&] {
    outer.read("a.weight", {1, 64});
  });
}

TEST_F(QuantizingCheckpointTest, AnotherShapeIsRefusedAfterTheRightOneToo) {
  Checkpoint& checkpoint = open(LoadQuantization::q4, waves(128), 64);
  checkpoint.read("a.weight", {2, 64});
  expect_error(ErrorCode::corrupt, {"[2, 64]", "[1, 128]"}, [&] {
    checkpoint.read("a.weight", {1, 128});
  });
}

}  // namespace
}  // namespace paceline
