#include "sampling/blocked_row.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/divide_up.h"
#include "base/error.h"
#include "sampling/vector_lanes.h"

namespace paceline {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The largest of 64 elements; `unordered` collects a set bit for every NaN, as larger() may lose
// one.
float max_of_block(const float* x, Ints4& unordered) {
  Floats4 max0 = load4(x), max1 = load4(x + 4);
  unordered |= (max0 != max0) | (max1 != max1);
  for (int64_t i = 8; i < BlockedRow::kBlockSize; i += 8) {
    const Floats4 a = load4(x + i), b = load4(x + i + 4);
    unordered |= (a != a) | (b != b);
    max0 = larger(a, max0);
    max1 = larger(b, max1);
  }
  const Floats4 max = larger(max0, max1);
  return std::max(std::max(max[0], max[1]), std::max(max[2], max[3]));
}

}  // namespace

BlockedRow::BlockedRow(int64_t max_width) {
  const auto num_blocks = static_cast<size_t>(divide_up(max_width, kBlockSize));
  maxima_.reserve(num_blocks);
  ranked_.reserve(num_blocks);
}

void BlockedRow::scan(std::span<const float> row) {
  row_ = row.data();
  width_ = static_cast<int64_t>(row.size());
  num_full_blocks_ = width_ / kBlockSize;
  const auto rest = row.subspan(static_cast<size_t>(num_full_blocks_ * kBlockSize));
  tail_.fill(-kInfinity);
  std::copy(rest.begin(), rest.end(), tail_.begin());
  maxima_.resize(static_cast<size_t>(num_full_blocks_) + (rest.empty() ? 0 : 1));

  Ints4 unordered = {0, 0, 0, 0};
  float* const maxima = maxima_.data();
  max_ = -kInfinity;
  for (int64_t b = 0; b < num_blocks(); ++b) {
    maxima[b] = max_of_block(block(b), unordered);
    max_ = std::max(max_, maxima[b]);
  }
  has_nan_ = (unordered[0] | unordered[1] | unordered[2] | unordered[3]) != 0;
}

int32_t BlockedRow::argmax() const {
  PL_CHECK(!has_nan_ && !maxima_.empty(), "a row with NaN has no largest element");
  const auto first = std::find(maxima_.begin(), maxima_.end(), max_) - maxima_.begin();
  const float* const x = block(first);
  return static_cast<int32_t>(first * kBlockSize + (std::find(x, x + kBlockSize, max_) - x));
}

float BlockedRow::reached_by(int64_t count) {
  if (count > num_blocks()) return -kInfinity;
  ranked_.assign(maxima_.begin(), maxima_.end());
  const auto nth = ranked_.begin() + (count - 1);
  std::nth_element(ranked_.begin(), nth, ranked_.end(), std::greater<>());
  return *nth;
}

}  // namespace paceline
