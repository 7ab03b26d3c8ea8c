#include "sampling/truncation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "sampling/draw.h"
#include "sampling/vector_lanes.h"

namespace paceline {

namespace {

constexpr float kLargestFloat = std::numeric_limits<float>::max();

// Elements below the average weight that top-p drops sum to at most the dropped weight, so they are
// beyond the prefix. The cut is among elements that reach this logit.
float top_p_cutoff(const Weigher& weigher, float top_p, uint64_t total, int64_t width) {
  const double dropped = (1.0 - double{top_p}) * static_cast<double>(total);
  return weigher.cutoff(dropped / static_cast<double>(width) / static_cast<double>(kWeightOne));
}

float least_finite(const BlockedRow& row) {
  Floats4 least = Floats4{} + row.max();
  for (int64_t b = 0; b < row.num_blocks(); ++b) {
    const float* const x = row.block(b);
    for (int64_t i = 0; i < BlockedRow::kBlockSize; i += 4) {
      const Floats4 four = load4(x + i);
      least = -larger(four < -kLargestFloat ? -least : -four, -least);
    }
  }
  return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
}

LogitSpread spread_of(const BlockedRow& row, const DistanceUnits& units) {
  const double max = row.max();
  LogitSpread spread;
  for (int64_t b = 0; b < row.num_blocks(); ++b) {
    const float* const x = row.block(b);
    Longs2 count = {0, 0};
    Doubles2 sum = {0, 0}, squares = {0, 0};  // whole numbers, so exact
    for (int64_t i = 0; i < BlockedRow::kBlockSize; i += 2) {
      Floats2 two;
      std::memcpy(&two, x + i, sizeof(two));
      const auto logits = __builtin_convertvector(two, Doubles2);
      const auto finite = std::bit_cast<Longs2>(logits >= -double{kLargestFloat});
      const auto distance =
          std::bit_cast<Doubles2>(std::bit_cast<Longs2>(units.count(max - logits)) & finite);
      count -= finite;
      sum += distance;
      squares += distance * distance;
    }
    spread.count += count[0] + count[1];
    spread.sum += static_cast<uint64_t>(sum[0] + sum[1]);
    spread.squares += static_cast<uint64_t>(squares[0] + squares[1]);
  }
  return spread;
}

// Top-n-sigma (Tang et al., 2024): the logit n standard deviations below the largest. Of the
// logits after penalties, bias and mask and before the temperature, which scales the distance and
// the deviation alike: the tokens are the same at any temperature. As in llama.cpp it is the
// deviation of the population, of finite logits only. Distances from the largest are whole units of
// at least the range / 2^22, so their sums don't depend on their order.
float sigma_cutoff_of(const BlockedRow& row, float n) {
  const double range = double{row.max()} - double{least_finite(row)};
  if (range == 0.0) return row.max();
  const DistanceUnits units(range, kSpreadBits);
  return sigma_cutoff(row.max(), n, units.logits(std::sqrt(spread_of(row, units).variance())));
}

// Locally typical sampling (Meister et al., 2022), as TypicalLogitsWarper of transformers: the
// tokens nearest to the entropy by their -log p that together have `mass` of the weight left, and
// those as near as the last of them. -log p is (max - logit) / temperature and a constant, and the
// entropy is its mean: distances in logits have the same order. The mean is of integers; distances
// are compared as float32.
void keep_typical(Candidates& candidates, float max, float temperature, float mass) {
  const auto logits = candidates.logits();
  const auto weights = candidates.weights();
  const uint64_t total = candidates.total_weight();
  const DistanceUnits units(double{temperature}, kTypicalBits);
  WeighedDistance distances;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (weights[i] > 0) distances.add(weights[i], units.count(double{max} - double{logits[i]}));
  }
  const double mean = units.logits(distances.mean(total));
  const auto nearness = [&](size_t i) { return -distance_from_mean(logits[i], max, mean); };
  const auto entries = candidates.entries(Candidates::RankBy::weight);
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i].key = rank_key(nearness(i), candidates.ids()[i]);
  }
  const float least = logit_of_key(last_key_of_prefix(entries, share_of(mass, total)));
  candidates.keep_if([&](int64_t i) { return nearness(static_cast<size_t>(i)) >= least; });
}

}  // namespace

void keep_min_p(Candidates& candidates, float min_p) {
  const uint64_t least = share_of(min_p, kWeightOne);
  const auto weights = candidates.weights();
  candidates.keep_if([&](int64_t i) { return weights[static_cast<size_t>(i)] >= least; });
}

bool truncate(BlockedRow& row, const SamplingOptions& options, std::span<uint64_t> block_sums,
              Candidates& candidates) {
  const bool is_mlx = options.order == SamplerOrder::mlx;
  const bool has_min_p = options.min_p > 0.0f;
  const bool has_top_k = options.top_k > 0 && options.top_k < row.width();
  const bool has_top_p = options.top_p < 1.0f;
  const bool has_typical_p = options.typical_p < 1.0f;
  const bool has_sigma = options.top_n_sigma > 0.0f;
  if (!has_sigma && !has_min_p && !has_top_k && !has_top_p && !has_typical_p) return false;

  // Min-p, top-k and top-p keep prefixes of one order, so tokens that any of them drops can be
  // excluded from the start.
  const float temperature = is_mlx ? 1.0f : options.temperature;
  const Weigher weigher(row.max(), temperature);
  float threshold = -kLargestFloat;
  if (has_sigma) threshold = std::max(threshold, sigma_cutoff_of(row, options.top_n_sigma));
  // Top-p's share refers to the weight kept by the filters before it.
  const bool top_p_first = has_top_p && (is_mlx || (!has_min_p && !has_top_k));
  const bool top_p_of_row = top_p_first && !has_sigma;
  if (!top_p_first || top_p_of_row) {
    if (has_min_p) threshold = std::max(threshold, weigher.cutoff(double{options.min_p}));
    // Weights of logits that hardly differ may be in another order, so what min-p leaves needn't be
    // the row's first tokens.
    if (has_top_k && !has_min_p) threshold = std::max(threshold, row.reached_by(options.top_k));
  }
  uint64_t row_weight = 0;
  if (top_p_of_row) {
    row_weight = sum_blocks(row, weigher, block_sums);
    threshold = std::max(threshold, top_p_cutoff(weigher, options.top_p, row_weight, row.width()));
  }

  candidates.collect(row, threshold);
  candidates.weigh(weigher);
  if (top_p_first) {
    candidates.keep_top_p(options.top_p, top_p_of_row ? row_weight : candidates.total_weight());
  }
  if (has_min_p) keep_min_p(candidates, options.min_p);
  if (has_top_k) candidates.keep_top_k(options.top_k);
  if (has_top_p && !top_p_first) candidates.keep_top_p(options.top_p, candidates.total_weight());
  if (has_typical_p) keep_typical(candidates, row.max(), temperature, options.typical_p);
  return true;
}

}  // namespace paceline
