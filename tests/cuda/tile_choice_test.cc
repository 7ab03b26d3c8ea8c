// Which tiles are chosen for products.
#include <gtest/gtest.h>

#include "kernels/cuda/device.h"
#include "kernels/cuda/tile_choice.h"

namespace paceline::cuda {
namespace {

constexpr TileDevice kHopper{
    .multiprocessors = 132, .shared_bytes = kMostSharedBytes, .can_take_registers = true};
constexpr TileDevice kAda{.multiprocessors = 128, .shared_bytes = 99 * 1024};

TEST(TileChoice, FewRowsHaveSmallTilesAndABlockForEachSegment) {
  for (const int64_t rows : {9, 16, 17, 33, 64}) {
    const TileChoice choice =
        *choose_tile({.rows = rows, .columns = 2048, .inputs = 8192}, kHopper);
    EXPECT_GE(choice.size.rows, rows);
    EXPECT_LT(choice.size.rows, std::max<int64_t>(2 * rows, 17));
    EXPECT_TRUE(choice.splits_inputs) << rows;
  }
}

TEST(TileChoice, ManyRowsHaveLargeTilesThatFillTheDevice) {
  const TileChoice choice = *choose_tile({.rows = 8192, .columns = 16384, .inputs = 2048}, kHopper);
  EXPECT_EQ(choice.size.columns, 128);
  EXPECT_GE(choice.size.rows, 128);
  EXPECT_FALSE(choice.splits_inputs);
}

TEST(TileChoice, SmallGpusHaveNoGatedTilesOfManyRows) {
  ProductSize product{.rows = 100, .columns = 1024, .inputs = 1024, .is_gated = true};
  EXPECT_TRUE(choose_tile(product, kHopper));
  EXPECT_FALSE(choose_tile(product, kAda));
  product.rows = 32;
  EXPECT_TRUE(choose_tile(product, kAda));
}

TEST(TileChoice, EveryChoiceFitsTheDevice) {
  for (const TileDevice& device : {kHopper, kAda}) {
    for (const int64_t rows : {9, 20, 40, 100, 300, 1000, 4096}) {
      for (const int64_t columns : {40, 576, 2048, 16384}) {
        const ProductSize product{.rows = rows, .columns = columns, .inputs = 1000};
        const TileChoice choice = *choose_tile(product, device);
        const std::vector<TileChoice> possible = possible_tiles(product, device);
        EXPECT_NE(std::find(possible.begin(), possible.end(), choice), possible.end());
        EXPECT_FALSE(choice.splits_inputs) << "one segment";
        if (!device.can_take_registers) {
          EXPECT_LE(choice.size.rows * choice.size.columns, 64 * 64);
        }
      }
    }
  }
}

}  // namespace
}  // namespace paceline::cuda
