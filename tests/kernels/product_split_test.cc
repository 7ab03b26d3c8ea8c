#include "kernels/cpu/product_split.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline {
namespace {

// Every row times every panel belongs to one piece.
void expect_each_once(const ProductSplit& split) {
  std::vector<int> times(static_cast<size_t>(split.num_rows * split.num_panels));
  for (int64_t i = 0; i < split.num_pieces(); ++i) {
    const ProductSplit::Piece piece = split.piece(i);
    for (int64_t row = piece.first_row; row < piece.first_row + piece.num_rows; ++row) {
      for (int64_t panel = piece.first_panel; panel < piece.last_panel; ++panel) {
        ++times.at(static_cast<size_t>(row * split.num_panels + panel));
      }
    }
  }
  for (const int count : times) ASSERT_EQ(count, 1);
}

TEST(ProductSplit, PiecesCoverEachRowAndPanelOnce) {
  for (const int64_t rows : {1, 7, 31, 64, 129, 512, 1000}) {
    for (const int64_t panels : {1, 2, 5, 12, 28, 33, 64, 97}) {
      for (const int64_t threads : {1, 2, 3, 16}) {
        SCOPED_TRACE(testing::Message()
                     << rows << " rows, " << panels << " panels, " << threads << " threads");
        expect_each_once(ProductSplit(rows, panels, threads));
        for (const int64_t panel_bytes : {24 << 10, 64 << 10}) {
          expect_each_once(ProductSplit::of_tiles(rows, panels, threads, 32, panel_bytes));
        }
      }
    }
  }
}

TEST(ProductSplit, ManyRowsInTilesAreSplitByRowsWhereWeightsStayInTheCache) {
  const ProductSplit split = ProductSplit::of_tiles(1024, 28, 2, 32, 24 << 10);
  EXPECT_EQ(split.piece_panels, 28);
  EXPECT_EQ(split.block_rows, 128);
  // Twice the cache: two groups of panels.
  EXPECT_EQ(ProductSplit::of_tiles(1024, 28, 2, 32, 64 << 10).piece_panels, 14);
  // More than that, few rows, or no tiles: as without.
  const ProductSplit wide = ProductSplit::of_tiles(512, 256, 2, 32, 64 << 10);
  EXPECT_EQ(wide.piece_panels, ProductSplit(512, 256, 2).piece_panels);
  EXPECT_LT(ProductSplit::of_tiles(64, 28, 2, 32, 24 << 10).piece_panels, 28);
  EXPECT_LT(ProductSplit::of_tiles(1024, 28, 2, 0, 24 << 10).piece_panels, 28);
}

}  // namespace
}  // namespace paceline
