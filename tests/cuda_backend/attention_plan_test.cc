// A plan of attention has every row once, in parts whose results fit, under tiles that cover them.
#include "kernels/cuda/attention_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/divide_up.h"
#include "kernels/cuda/code/attention_tiles.h"
#include "tests/kernels/op_inputs.h"
#include "tests/test_scale.h"

namespace paceline::cuda {
namespace {

int64_t num_chunks(const AttentionRow& row) {
  return divide_up(row.end, kChunkKeys) - row.first / kChunkKeys;
}

// The rows of a part, in tiles of up to `height` packed rows.
void expect_tiles(const AttentionPlan& plan, const AttentionPart& part, int64_t group,
                  int64_t height) {
  const auto first = plan.tiles.begin() + part.first_tile;
  std::vector<AttentionTile> tiles(first, first + part.num_tiles);
  const auto place_of = [group](const AttentionTile& tile) {
    return tile.first_row * group + tile.skipped;
  };
  const auto end_of = [&](const AttentionTile& tile) {
    const int64_t last = (place_of(tile) + tile.count - 1) / group;
    return plan.rows[static_cast<size_t>(part.first_row + last)].end;
  };
  ASSERT_TRUE(std::ranges::is_sorted(tiles, std::ranges::greater{}, end_of)) << "the longest first";
  std::ranges::sort(tiles, {}, place_of);
  int64_t packed = 0;
  for (const AttentionTile& tile : tiles) {
    ASSERT_EQ(tile.first_row * group + tile.skipped, packed);
    ASSERT_LT(tile.skipped, group);
    ASSERT_GT(tile.count, 0);
    ASSERT_LE(tile.count, height);
    packed += tile.count;
    // Rows of a tile are of one sequence.
    const auto row_at = [&](int64_t index) {
      return plan.rows[static_cast<size_t>(part.first_row + index / group)];
    };
    ASSERT_EQ(row_at(packed - tile.count).table, row_at(packed - 1).table);
  }
  ASSERT_EQ(packed, part.num_rows * group);
}

void expect_parts(const AttentionPlan& plan, const std::vector<AttentionPart>& parts,
                  const AttentionSizes& sizes, int64_t height) {
  for (const AttentionPart& part : parts) {
    expect_tiles(plan, part, sizes.group, height);
    for (int64_t i = 0; i < part.num_rows; ++i) {
      ASSERT_LE(num_chunks(plan.rows[static_cast<size_t>(part.first_row + i)]), part.most_chunks);
    }
    ASSERT_EQ(part.is_split, parts[0].is_split);
    if (part.is_split && part.num_rows > 1) {
      ASSERT_LE(part.num_rows * part.most_chunks, sizes.most_results);
    }
  }
  // Without a reason there is one launch.
  if (!parts.empty() && !parts[0].is_split) {
    ASSERT_EQ(parts.size(), 1u);
  }
}

TEST(AttentionPlan, HasEveryRowOnce) {
  Draws draws(7);
  const std::vector<int32_t> table(200);
  int64_t num_split = 0, num_cut = 0, num_grouped = 0;
  const int rounds = scaled(300, 10000);
  for (int round = 0; round < rounds; ++round) {
    const AttentionSizes sizes{.kv_heads = 1 + draws.below(4),
                               .group = 1 + draws.below(20),
                               .multiprocessors = 1 + draws.below(8),
                               .most_results = draws.below(100),
                               .group_rows = draws.below(2) * 64 * (1 + draws.below(2))};
    std::vector<AttentionSlice> slices;
    int64_t rows = 0;
    for (int64_t i = draws.below(6); i >= 0; --i) {
      slices.push_back({rows, 1 + draws.below(50), draws.below(900), table});
      rows += slices.back().num_rows;
    }
    const AttentionPlan plan =
        plan_attention(slices, {.window = draws.below(3) == 0 ? 1 + draws.below(200) : 0}, sizes);
    ASSERT_EQ(plan.parts.num_rows(), rows);
    std::vector<int64_t> found;
    for (const AttentionRow& row : plan.rows) found.push_back(row.row);
    std::ranges::sort(found);
    for (int64_t i = 0; i < rows; ++i) ASSERT_EQ(found[static_cast<size_t>(i)], i);
    expect_parts(plan, plan.parts.small, sizes, kTileRows);
    expect_parts(plan, plan.parts.large, sizes, kPromptWarps * kTileRows);
    expect_parts(plan, plan.parts.grouped, sizes, sizes.group_rows);
    ASSERT_TRUE(plan.parts.grouped.empty() || plan.parts.large.empty());
    if (!plan.parts.grouped.empty()) {
      ASSERT_TRUE(sizes.group_rows > 0 && !plan.parts.grouped[0].is_split);
      ++num_grouped;
    }
    for (const auto* parts : {&plan.parts.small, &plan.parts.large}) {
      if (!parts->empty() && parts->front().is_split) ++num_split;
      if (parts->size() > 1) ++num_cut;
    }
  }
  EXPECT_GT(num_split, rounds / 10);
  EXPECT_GT(num_cut, rounds / 10);
  EXPECT_GT(num_grouped, rounds / 10);
}

TEST(AttentionPlan, CutsDecodingRows) {
  const AttentionSizes sizes{
      .kv_heads = 2, .group = 20, .multiprocessors = 100, .most_results = 50};
  const AttentionParts parts = decoding_parts(25, 16, sizes);
  ASSERT_EQ(parts.small.size(), 9u);
  EXPECT_EQ(parts.num_rows(), 25);
  for (size_t i = 0; i < 9; ++i) {
    const AttentionPart& part = parts.small[i];
    EXPECT_EQ(part.first_row, static_cast<int64_t>(3 * i));
    EXPECT_EQ(part.num_rows, i < 8 ? 3 : 1);
    EXPECT_EQ(part.num_tiles, 2 * part.num_rows);
    EXPECT_EQ(part.most_chunks, 16);
    EXPECT_TRUE(part.is_split);
  }
  const AttentionParts whole = decoding_parts(250, 16, sizes);
  ASSERT_EQ(whole.small.size(), 1u);
  EXPECT_FALSE(whole.small[0].is_split);
}

}  // namespace
}  // namespace paceline::cuda
