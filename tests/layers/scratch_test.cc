// The arena of activations.
#include "layers/scratch.h"

#include <gtest/gtest.h>

#include "tensor/memory.h"

namespace paceline {
namespace {

TEST(Scratch, RowsAreAnOddNumberOfCacheLinesApart) {
  for (int64_t width = 1; width < 5000; width += 7) {
    const int64_t stride = row_stride(width);
    EXPECT_GE(stride, width);
    EXPECT_LE(stride, width + 31);
    EXPECT_EQ(stride % 32, 16);
  }
}

TEST(Scratch, RowsTakeWhatTheirStrideSaysAndNoMore) {
  constexpr int64_t kRows = 5, kWidth = 2048;
  Memory memory;
  Scratch scratch(memory, scratch_bytes(DType::f32, kRows * row_stride(kWidth)));
  const Scratch::Frame frame(scratch);
  const Tensor rows = scratch.take_rows(kRows, kWidth);
  EXPECT_EQ(rows.size(0), kRows);
  EXPECT_EQ(rows.size(1), kWidth);
  EXPECT_EQ(rows.stride(0), row_stride(kWidth));
  EXPECT_EQ(rows.stride(1), 1);
  EXPECT_DEATH(scratch.take(DType::f32, {1}), "too small for this batch");
}

TEST(Scratch, ADryRunFindsWhatIsTakenAtTheSameTime) {
  Scratch dry_run;
  dry_run.take(DType::f32, {3});
  for (const int64_t width : {7, 100, 20}) {
    const Scratch::Frame frame(dry_run);
    EXPECT_EQ(dry_run.take_rows(2, width).shape(), Extents({2, width}));
  }
  EXPECT_EQ(dry_run.most_used_bytes(), 64 + scratch_bytes(DType::f32, 2 * row_stride(100)));
}

}  // namespace
}  // namespace paceline
