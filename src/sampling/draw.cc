#include "sampling/draw.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"

namespace paceline {

namespace {

constexpr int64_t kBlockWidth = BlockedRow::kBlockSize;

int32_t winner_of(const Race& race) {
  PL_CHECK(race.winner() >= 0, "nothing to draw from");
  return race.winner();
}

int32_t draw_weighed(std::span<const int32_t> ids, std::span<const uint64_t> weights,
                     uint64_t key) {
  Race race(key);
  for (size_t i = 0; i < ids.size(); ++i) {
    // A signed conversion is one instruction, and weights are below 2^63.
    race.enter(ids[i], static_cast<double>(static_cast<int64_t>(weights[i])));
  }
  return winner_of(race);
}

void enter_block(Race& race, const BlockedRow& row, const Weigher& weigher, int64_t block) {
  std::array<uint64_t, kBlockWidth> weights;
  weigher.weigh_block(row.block(block), weights.data());
  auto id = static_cast<int32_t>(block * kBlockWidth);
  for (const uint64_t weight : weights)
    race.enter(id++, static_cast<double>(static_cast<int64_t>(weight)));
}

// A bound of the weights in a block with a largest element of `weight`: the weigher's exp is
// monotonic but for its relative error of 4.4e-7.
double most_weight(uint64_t weight) { return (static_cast<double>(weight) + 1.0) * (1.0 + 1e-5); }

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

int32_t draw_candidate(const Candidates& candidates, uint64_t key) {
  return draw_weighed(candidates.ids(), candidates.weights(), key);
}

int32_t draw_from(const Distribution& distribution, uint64_t key) {
  return draw_weighed(distribution.ids, distribution.weights, key);
}

int32_t draw_from_row(const BlockedRow& row, const Weigher& weigher, uint64_t key) {
  Race race(key);
  enter_block(race, row, weigher, row.argmax() / kBlockWidth);  // so that few others have to follow
  const float negligible = weigher.cutoff(0.0);
  std::array<float, kBlockWidth> maxima;
  std::array<uint64_t, kBlockWidth> weights;
  for (int64_t first = 0; first < row.num_blocks(); first += kBlockWidth) {
    const int64_t count = std::min(kBlockWidth, row.num_blocks() - first);
    maxima.fill(-std::numeric_limits<float>::infinity());
    for (int64_t i = 0; i < count; ++i) maxima[static_cast<size_t>(i)] = row.block_max(first + i);
    weigher.weigh_block(maxima.data(), weights.data());
    for (int64_t block = first; block < first + count; ++block) {
      if (row.block_max(block) < negligible) continue;
      const auto least = least_noise(key, static_cast<int32_t>(block * kBlockWidth), kBlockWidth);
      const double most = most_weight(weights[static_cast<size_t>(block - first)]);
      if (least <= race.most_noise(most)) enter_block(race, row, weigher, block);
    }
  }
  return winner_of(race);
}

}  // namespace paceline
