// BlockedRow is a row of logits with the maximum of every 64, so that a search for large ones skips
// most blocks.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace paceline {

class BlockedRow {
 public:
  static constexpr int64_t kBlockSize = 64;

  // For rows of up to `max_width` elements.
  explicit BlockedRow(int64_t max_width);

  // Scans `row` once; it must not change while this is used.
  void scan(std::span<const float> row);

  bool has_nan() const { return has_nan_; }
  float max() const { return max_; }
  // The lowest index of the largest element; the row must hold no NaN.
  int32_t argmax() const;
  // A value that at least `count` elements reach: the count-th largest of the blocks' maxima; -inf
  // when there are fewer blocks.
  float reached_by(int64_t count);

  int64_t width() const { return width_; }
  float at(int32_t index) const { return row_[index]; }
  int64_t num_blocks() const { return static_cast<int64_t>(maxima_.size()); }
  float block_max(int64_t block) const { return maxima_[static_cast<size_t>(block)]; }
  // Elements [64 * block, 64 * block + 64), the last block filled up with -inf.
  const float* block(int64_t block) const {
    return block < num_full_blocks_ ? row_ + block * kBlockSize : tail_.data();
  }

 private:
  const float* row_ = nullptr;
  int64_t width_ = 0;
  int64_t num_full_blocks_ = 0;
  bool has_nan_ = false;
  float max_ = 0.0f;
  std::array<float, kBlockSize> tail_{};
  std::vector<float> maxima_;
  std::vector<float> ranked_;  // scratch of reached_by
};

}  // namespace paceline
