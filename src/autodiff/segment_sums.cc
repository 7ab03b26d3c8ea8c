#include "autodiff/segment_sums.h"

#include <cstring>

#include "autodiff/lines.h"
#include "base/divide_up.h"
#include "base/error.h"

namespace paceline::autodiff {
namespace {

constexpr int64_t kColumnBlock = 64;  // columns that add_row_sums takes at a time

constexpr int64_t kTileRows = 4, kTileColumns = 8;
constexpr int64_t kRowBlock = 32;  // rows of a that are packed at a time

using Lanes = float __attribute__((vector_size(16)));

// sums [4, 8] = a [length, 4]^T b [length, 8]
void multiply_tile(const float* a, const float* b, int64_t length, float* sums) {
  Lanes acc[kTileRows][2] = {};
  for (int64_t k = 0; k < length; ++k) {
    Lanes left, right;
    std::memcpy(&left, b + k * kTileColumns, sizeof(Lanes));
    std::memcpy(&right, b + k * kTileColumns + 4, sizeof(Lanes));
    for (int64_t r = 0; r < kTileRows; ++r) {
      const float factor = a[k * kTileRows + r];
      acc[r][0] += factor * left;
      acc[r][1] += factor * right;
    }
  }
  std::memcpy(sums, acc, sizeof(acc));
}

// Packs `count` lines of a matrix side by side, padded with zeros to `width`: out [length, width].
// Element i of line j is at from + i * step + j * line_step.
template <class T>
struct LinesToPack {
  const T* from;
  int64_t step;
  int64_t line_step;

  void pack(int64_t length, int64_t count, int64_t width, float* out) const {
    for (int64_t i = 0; i < length; ++i) {
      const T* element = from + i * step;
      for (int64_t j = 0; j < count; ++j) out[i * width + j] = to_float(element[j * line_step]);
      for (int64_t j = count; j < width; ++j) out[i * width + j] = 0.0f;
    }
  }
};

// b [k, n] as [panel of 8 columns][k][8].
void pack_panels(const Context& context, const Tensor& b, float* packed) {
  const int64_t k = b.size(0), n = b.size(1);
  with_float_dtype(b.dtype(), [&]<class T>() {
    for_parts(
        context, divide_up(n, kTileColumns), k * kTileColumns, [&](int64_t begin, int64_t end) {
          for (int64_t panel = begin; panel < end; ++panel) {
            const int64_t column = panel * kTileColumns;
            const LinesToPack<T> lines{b.elements<T>() + column * b.stride(1), b.stride(0),
                                       b.stride(1)};
            lines.pack(k, std::min(kTileColumns, n - column), kTileColumns, packed + column * k);
          }
        });
  });
}

// One product of a block of rows with all panels.
class RowBlock {
 public:
  RowBlock(const Tensor& a, const float* panels, const Tensor& totals)
      : a_(a), panels_(panels), totals_(totals) {}

  void add(int64_t first_row) const {
    const int64_t k = a_.size(1);
    const int64_t num_rows = std::min(kRowBlock, a_.size(0) - first_row);
    for (int64_t begin = 0; begin < k; begin += kSumSegment) {
      add_segment(first_row, num_rows, begin, std::min(kSumSegment, k - begin));
    }
  }

 private:
  void add_segment(int64_t first_row, int64_t num_rows, int64_t begin, int64_t length) const {
    const int64_t k = a_.size(1), n = totals_.size(1);
    float packed[kRowBlock * kSumSegment];  // [group of 4 rows][length][4]
    with_float_dtype(a_.dtype(), [&]<class T>() {
      for (int64_t row = 0; row < num_rows; row += kTileRows) {
        const T* from = a_.elements<T>() + (first_row + row) * a_.stride(0) + begin * a_.stride(1);
        const LinesToPack<T> lines{from, a_.stride(1), a_.stride(0)};
        lines.pack(length, std::min(kTileRows, num_rows - row), kTileRows, packed + row * length);
      }
    });
    for (int64_t column = 0; column < n; column += kTileColumns) {
      const float* panel = panels_ + column * k + begin * kTileColumns;
      for (int64_t row = 0; row < num_rows; row += kTileRows) {
        float sums[kTileRows * kTileColumns];
        multiply_tile(packed + row * length, panel, length, sums);
        for (int64_t r = 0; r < std::min(kTileRows, num_rows - row); ++r) {
          float* to = totals_.row<float>(first_row + row + r) + column;
          for (int64_t c = 0; c < std::min(kTileColumns, n - column); ++c) {
            to[c] += sums[r * kTileColumns + c];
          }
        }
      }
    }
  }

  const Tensor& a_;
  const float* panels_;
  const Tensor& totals_;
};

}  // namespace

void add_row_sums(const Context& context, const float* rows, int64_t num_rows, int64_t width,
                  float* totals) {
  const auto add_columns = [&](int64_t column, int64_t count) {
    for (int64_t begin = 0; begin < num_rows; begin += kSumSegment) {
      float sums[kColumnBlock] = {};
      const int64_t end = std::min(num_rows, begin + kSumSegment);
      for (int64_t row = begin; row < end; ++row) {
        const float* from = rows + row * width + column;
        for (int64_t c = 0; c < count; ++c) sums[c] += from[c];
      }
      for (int64_t c = 0; c < count; ++c) totals[column + c] += sums[c];
    }
  };
  for_parts(context, divide_up(width, kColumnBlock), num_rows * kColumnBlock,
            [&](int64_t begin, int64_t end) {
              for (int64_t block = begin; block < end; ++block) {
                const int64_t column = block * kColumnBlock;
                add_columns(column, std::min(kColumnBlock, width - column));
              }
            });
}

void add_product(const Context& context, const Tensor& a, const Tensor& b, const Tensor& totals) {
  PL_CHECK(a.rank() == 2 && b.rank() == 2 && totals.rank() == 2 && a.size(1) == b.size(0) &&
               totals.size(0) == a.size(0) && totals.size(1) == b.size(1),
           "add_product: totals [m, n] += a [m, k] b [k, n]");
  PL_CHECK(totals.is_contiguous(), "add_product: contiguous totals");
  if (a.empty() || b.empty()) return;
  const int64_t k = a.size(1), num_panels = divide_up(b.size(1), kTileColumns);
  const Buffer panels(context.memory,
                      static_cast<size_t>(num_panels * kTileColumns * k) * sizeof(float));
  auto* packed = static_cast<float*>(panels.get());
  pack_panels(context, b, packed);
  const RowBlock block(a, packed, totals);
  for_parts(context, divide_up(a.size(0), kRowBlock), kRowBlock * k * b.size(1),
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) block.add(i * kRowBlock);
            });
}

}  // namespace paceline::autodiff
