// Quantised matrices whose files have their columns in turns of groups of heads.
#include "weights/reordered_columns.h"

#include <gtest/gtest.h>

#include "tests/source_path.h"
#include "weights/gguf_file.h"
#include "weights/gguf_rows.h"

namespace paceline {
namespace {

struct ReadRow {
  explicit ReadRow(const GroupedRows& rows)
      : codes(static_cast<size_t>(rows.row_length())),
        scales(codes.size() / static_cast<size_t>(rows.grouping().group_size)),
        offsets(scales.size()),
        values(codes.size()) {
    rows.read_codes(1, codes, scales, offsets);
    rows.read_values(1, values);
  }
  std::vector<uint8_t> codes;
  std::vector<float> scales, offsets, values;
};

// The scales and offsets as products of factors and multiples.
void expect_multiples(const GroupedRows& rows, const ReadRow& read) {
  const auto shared = static_cast<size_t>(rows.grouping().groups_per_factor);
  const bool has_offsets = !rows.grouping().zero_point;
  const size_t num_groups = read.scales.size(), num_factors = num_groups / shared;
  std::vector<uint8_t> codes(read.codes.size());
  std::vector<float> factors(num_factors), offset_factors(has_offsets ? num_factors : 0);
  std::vector<int8_t> scales(num_groups), offsets(has_offsets ? num_groups : 0);
  rows.read_multiples(1, codes, {factors, scales, offset_factors, offsets});
  EXPECT_EQ(codes, read.codes);
  for (size_t g = 0; g < num_groups; ++g) {
    EXPECT_FLOAT_EQ(factors[g / shared] * static_cast<float>(scales[g]), read.scales[g]) << g;
    if (!has_offsets) continue;
    EXPECT_FLOAT_EQ(offset_factors[g / shared] * static_cast<float>(offsets[g]), read.offsets[g])
        << g;
  }
}

class ReorderedColumnsTest : public ::testing::Test {
 protected:
  std::shared_ptr<const GroupedRows> rows_of(const GgufBlockFormat& format) const {
    const auto* tensor = file_.find_tensor("random." + std::string(gguf_type_name(format.type)));
    return std::make_shared<GgufRows>(*tensor, format, GgufRowOrder());
  }
  GgufFile file_{source_path("tests/goldens/gguf/formats.gguf")};
};

// Heads of 128 in blocks of 256 among them.
TEST_F(ReorderedColumnsTest, CodesScalesAndValuesMoveWithTheirHeads) {
  for (const GgufBlockFormat& format : gguf_block_formats()) {
    const auto in_file = rows_of(format);
    const bool is_long = in_file->row_length() == 768;
    const std::vector<GgufHeadGroups> orders =
        is_long ? std::vector<GgufHeadGroups>{{.groups = 2, .heads = 6, .size = 128},
                                              {.first = 256, .groups = 2, .heads = 4, .size = 128}}
                : std::vector<GgufHeadGroups>{{.first = 32, .groups = 3, .heads = 6, .size = 32}};
    const ReadRow expected(*in_file);
    for (const GgufHeadGroups& order : orders) {
      SCOPED_TRACE(std::string(gguf_type_name(format.type)));
      ASSERT_EQ(order.num_rows(), in_file->row_length());
      const auto rows = ReorderedColumns::make(in_file, order);
      ASSERT_NE(rows, nullptr);
      const Grouping grouping = rows->grouping();
      EXPECT_EQ(grouping.factor_length(),
                format.grouping.has_multiples() ? 128 : format.grouping.factor_length());
      EXPECT_EQ(grouping.group_size, format.grouping.group_size);
      const ReadRow read(*rows);
      for (int64_t i = 0; i < rows->row_length(); ++i) {
        const auto at = static_cast<size_t>(i), from = static_cast<size_t>(order.in_file(i));
        const size_t size = static_cast<size_t>(grouping.group_size);
        EXPECT_EQ(read.values[at], expected.values[from]) << i;
        EXPECT_EQ(read.codes[at], expected.codes[from]) << i;
        EXPECT_EQ(read.scales[at / size], expected.scales[from / size]) << i;
        EXPECT_EQ(read.offsets[at / size], expected.offsets[from / size]) << i;
      }
      EXPECT_NE(read.values, expected.values);
      if (grouping.has_multiples()) expect_multiples(*rows, read);
    }
  }
}

TEST_F(ReorderedColumnsTest, HeadsThatCutGroupsHaveNoCodes) {
  const auto make = [&](GgufType type, const GgufHeadGroups& order) {
    return ReorderedColumns::make(rows_of(*find_block_format(type)), order);
  };
  EXPECT_EQ(make(GgufType::q8_0, {.groups = 2, .heads = 14, .size = 16}), nullptr);
  EXPECT_EQ(make(GgufType::q4_0, {.first = 16, .groups = 13, .heads = 26, .size = 8}), nullptr);
  // One group would be left for each factor, whose product float16 couldn't hold.
  EXPECT_EQ(make(GgufType::q4_k, {.groups = 4, .heads = 24, .size = 32}), nullptr);
  EXPECT_EQ(make(GgufType::q6_k, {.groups = 4, .heads = 8, .size = 96}), nullptr);
  EXPECT_NE(make(GgufType::q6_k, {.groups = 4, .heads = 24, .size = 32}), nullptr);
}

// The order that convert_hf_to_gguf.py writes: [groups, heads of a group] transposed.
TEST(GgufHeadGroups, TheFileTakesTurnsOfTheGroups) {
  const GgufHeadGroups order{.first = 3, .groups = 2, .heads = 6, .size = 2};
  const std::vector<int64_t> head_in_file = {0, 2, 4, 1, 3, 5};
  for (int64_t row = 0; row < 3; ++row) EXPECT_EQ(order.in_file(row), row);
  for (int64_t row = 0; row < 12; ++row) {
    EXPECT_EQ(order.in_file(3 + row), 3 + 2 * head_in_file[static_cast<size_t>(row / 2)] + row % 2);
  }
  int64_t next = 0;
  order.for_each_run([&](int64_t row, int64_t in_file, int64_t count) {
    EXPECT_EQ(row, next);
    EXPECT_EQ(in_file, order.in_file(row));
    next += count;
  });
  EXPECT_EQ(next, order.num_rows());
}

}  // namespace
}  // namespace paceline
