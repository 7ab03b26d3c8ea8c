#include "sampling/draw.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace paceline {

namespace {

// The largest whole number of weight units at or below uniform * total, below total.
uint64_t weight_before(double uniform, uint64_t total) {
  PL_CHECK(total > 0, "nothing to draw from");
  return std::min(static_cast<uint64_t>(uniform * static_cast<double>(total)), total - 1);
}

// The index at which the running sum passes `before`; the sum below it is subtracted from `before`.
size_t walk(std::span<const uint64_t> weights, uint64_t& before) {
  size_t i = 0;
  for (; weights[i] <= before; ++i) before -= weights[i];
  return i;
}

}  // namespace

uint64_t sum_blocks(const BlockedRow& row, const Weigher& weigher, std::span<uint64_t> block_sums) {
  const float negligible = weigher.cutoff(0.0);
  uint64_t total = 0;
  for (int64_t b = 0; b < row.num_blocks(); ++b) {
    const uint64_t sum = row.block_max(b) < negligible ? 0 : weigher.sum_block(row.block(b));
    block_sums[static_cast<size_t>(b)] = sum;
    total += sum;
  }
  return total;
}

int32_t draw_candidate(const Candidates& candidates, double uniform) {
  uint64_t before = weight_before(uniform, candidates.total_weight());
  return candidates.ids()[walk(candidates.weights(), before)];
}

int32_t draw_from_row(const BlockedRow& row, const Weigher& weigher, double uniform,
                      std::span<uint64_t> block_sums) {
  uint64_t before = weight_before(uniform, sum_blocks(row, weigher, block_sums));
  const size_t block = walk(block_sums, before);
  std::array<uint64_t, BlockedRow::kBlockSize> weights;
  weigher.weigh_block(row.block(static_cast<int64_t>(block)), weights.data());
  return static_cast<int32_t>(block * weights.size() + walk(weights, before));
}

int32_t draw_from(const Distribution& distribution, double uniform) {
  uint64_t before = weight_before(uniform, distribution.total);
  return distribution.ids[walk(distribution.weights, before)];
}

}  // namespace paceline
