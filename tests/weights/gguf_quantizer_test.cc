// Blocks that Paceline writes: ggml's bytes, or errors no larger than ggml's
// (tools/goldens/make_gguf_block_goldens.py).
#include "weights/gguf_quantizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "tests/source_path.h"
#include "weights/gguf_blocks.h"
#include "weights/safetensors.h"

namespace paceline {
namespace {

constexpr size_t kLength = 256;

std::vector<float> decoded(GgufType type, std::span<const std::byte> row) {
  const GgufBlockFormat& format = *find_block_format(type);
  const Grouping& grouping = format.grouping;
  const size_t num_groups = kLength / static_cast<size_t>(grouping.group_size);
  const size_t num_blocks = row.size() / layout_of(type).block_bytes;
  std::vector<uint8_t> codes(kLength);
  std::vector<float> factors(num_blocks), offset_factors(num_blocks);
  std::vector<int8_t> multiples(num_groups), offsets(num_groups);
  const GgufScales stored{factors.data(), offset_factors.data(), multiples.data(), offsets.data()};
  format.decode(row.data(), num_blocks, codes.data(), stored);
  std::vector<float> scales(num_groups), group_offsets(num_groups), values(kLength);
  group_scales(grouping, num_groups, stored, scales.data(), group_offsets.data());
  for (size_t g = 0; g < num_groups; ++g) {
    const size_t at = g * static_cast<size_t>(grouping.group_size);
    grouped_values(grouping, codes.data() + at, scales[g], group_offsets[g], values.data() + at);
  }
  return values;
}

std::vector<std::byte> quantised(GgufType type, std::span<const float> values,
                                 std::span<const float> importance = {}) {
  std::vector<std::byte> row(gguf_row_bytes(type, std::ssize(values)));
  EXPECT_TRUE(quantize_gguf_row(type, values, importance, row.data()));
  return row;
}

double weighted_error(std::span<const float> a, std::span<const float> b,
                      std::span<const float> weights = {}) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double weight = weights.empty() ? 1.0 : weights[i];
    sum += weight * (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  }
  return sum;
}

class GgufBlocksGolden : public ::testing::Test {
 protected:
  std::span<const std::byte> bytes(std::string_view name) const {
    for (const SafetensorsTensor& tensor : tensors_) {
      if (tensor.name == name) return tensor.bytes;
    }
    ADD_FAILURE() << name;
    return {};
  }
  std::vector<float> floats(std::string_view name) const {
    const auto from = bytes(name);
    std::vector<float> numbers(from.size() / sizeof(float));
    std::memcpy(numbers.data(), from.data(), from.size());
    return numbers;
  }

  MappedFile file_{source_path("tests/goldens/gguf/blocks.safetensors")};
  std::vector<SafetensorsTensor> tensors_ = parse_safetensors_header(file_.bytes(), "blocks");
  std::vector<float> values_ = floats("values");
};

TEST_F(GgufBlocksGolden, SmallBlocksAreGgmlsBytes) {
  for (const GgufType type : {GgufType::q4_0, GgufType::q5_0, GgufType::q5_1, GgufType::q8_0}) {
    SCOPED_TRACE(gguf_type_name(type));
    const auto expected = bytes(gguf_type_name(type));
    const auto found = quantised(type, values_);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0);
  }
}

TEST_F(GgufBlocksGolden, ErrorsOfKTypesAreNoLargerThanGgmls) {
  const std::span<const float> values(values_);
  for (const GgufType type : {GgufType::q4_k, GgufType::q5_k, GgufType::q6_k}) {
    const std::vector<float> errors = floats(gguf_type_name(type));
    ASSERT_EQ(errors.size() * kLength, values_.size());
    for (size_t row = 0; row < errors.size(); ++row) {
      SCOPED_TRACE(std::string(gguf_type_name(type)) + " " + std::to_string(row));
      const auto from = values.subspan(row * kLength, kLength);
      EXPECT_LE(weighted_error(decoded(type, quantised(type, from)), from), errors[row]);
    }
  }
}

TEST_F(GgufBlocksGolden, ImportanceLowersItsOwnError) {
  const std::span<const float> from = std::span(values_).first(kLength);
  std::vector<float> importance;
  for (size_t i = 0; i < kLength; ++i) importance.push_back(i % 7 == 0 ? 50.0f : 1.0f);
  for (const GgufType type : {GgufType::q4_k, GgufType::q5_k, GgufType::q6_k}) {
    const auto plain = decoded(type, quantised(type, from));
    const auto weighted = decoded(type, quantised(type, from, importance));
    EXPECT_LT(weighted_error(weighted, from, importance), weighted_error(plain, from, importance));
  }
}

// What was quantised once is exact; so are multiples of a power of two, where a block has one
// factor for all of them.
TEST(GgufQuantizer, RepresentableNumbersAreExact) {
  std::vector<float> values;
  for (size_t i = 0; i < kLength; ++i) {
    const auto code = static_cast<float>((i * 7) % 16);
    values.push_back(0.25f * (code - 8.0f));  // every code of 4 bits in each group
  }
  for (const GgufType type : {GgufType::f32, GgufType::f16, GgufType::bf16}) {
    ASSERT_TRUE(can_write_gguf_type(type));
  }
  for (const GgufType type : {GgufType::q4_0, GgufType::q8_0, GgufType::q6_k, GgufType::q4_k}) {
    SCOPED_TRACE(gguf_type_name(type));
    const auto once = decoded(type, quantised(type, values));
    if (type != GgufType::q8_0 && type != GgufType::q4_k) {
      EXPECT_EQ(once, values);
    }
    EXPECT_EQ(decoded(type, quantised(type, once)), once);
  }
}

TEST(GgufQuantizer, NumbersBeyondTheTypeAreRefused) {
  std::vector<std::byte> row(kLength * sizeof(float));
  for (const float bad : {NAN, INFINITY, std::numeric_limits<float>::max()}) {
    std::vector<float> values(kLength, 1.0f);
    values[77] = bad;
    for (const GgufTypeLayout& layout : kGgufTypes) {
      if (!can_write_gguf_type(layout.type)) continue;
      const bool fits = std::isfinite(bad) && layout.type == GgufType::f32;
      EXPECT_EQ(quantize_gguf_row(layout.type, values, {}, row.data()), fits) << layout.name << bad;
    }
  }
}

}  // namespace
}  // namespace paceline
