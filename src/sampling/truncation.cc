#include "sampling/truncation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampling/draw.h"

namespace paceline {

namespace {

// Elements lighter than the average of what top-p drops sum to no more than that, so they lie
// beyond the prefix: the cut is among those that reach this.
float top_p_cutoff(const Weigher& weigher, float top_p, uint64_t total, int64_t width) {
  const double dropped = (1.0 - double{top_p}) * static_cast<double>(total);
  return weigher.cutoff(dropped / static_cast<double>(width) / static_cast<double>(kWeightOne));
}

void keep_min_p(Candidates& candidates, float min_p) {
  const uint64_t least = share_of(min_p, kWeightOne);
  const auto weights = candidates.weights();
  candidates.keep_if([&](int64_t i) { return weights[static_cast<size_t>(i)] >= least; });
}

// Locally typical sampling (Meister et al., 2022), as TypicalLogitsWarper of transformers: the
// tokens nearest to the entropy by their -log p that together have `mass` of the weight left, and
// those as near as the last of them. -log p is (max - logit) / temperature and a constant, and the
// entropy is its mean: distances in logits have the same order. The mean is a sum in float64 over
// ascending ids; distances are compared as float32.
void keep_typical(Candidates& candidates, float max, float mass) {
  const auto logits = candidates.logits();
  const auto weights = candidates.weights();
  const uint64_t total = candidates.total_weight();
  double mean = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    mean += static_cast<double>(weights[i]) * (double{max} - double{logits[i]});
  }
  mean /= static_cast<double>(total);
  const auto nearness = [&](size_t i) {
    const double distance = std::abs(double{max} - double{logits[i]} - mean);
    return -static_cast<float>(std::min(distance, double{std::numeric_limits<float>::max()}));
  };
  const auto entries = candidates.entries(Candidates::RankBy::weight);
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i].key = rank_key(nearness(i), candidates.ids()[i]);
  }
  const int32_t last = id_of_key(last_key_of_prefix(entries, share_of(mass, total)));
  const auto found = std::find(candidates.ids().begin(), candidates.ids().end(), last);
  const float least = nearness(static_cast<size_t>(found - candidates.ids().begin()));
  candidates.keep_if([&](int64_t i) { return nearness(static_cast<size_t>(i)) >= least; });
}

}  // namespace

bool truncate(BlockedRow& row, const SamplingOptions& options, std::span<uint64_t> block_sums,
              Candidates& candidates) {
  const bool is_mlx = options.order == SamplerOrder::mlx;
  const bool has_min_p = options.min_p > 0.0f;
  const bool has_top_k = options.top_k > 0 && options.top_k < row.width();
  const bool has_top_p = options.top_p < 1.0f;
  const bool has_typical_p = options.typical_p < 1.0f;
  if (!has_min_p && !has_top_k && !has_top_p && !has_typical_p) return false;

  // Min-p, top-k and top-p keep prefixes of one order, so what any of them drops can be left out
  // from the start.
  const Weigher weigher(row.max(), is_mlx ? 1.0f : options.temperature);
  float threshold = -std::numeric_limits<float>::max();
  if (has_min_p) threshold = std::max(threshold, weigher.cutoff(double{options.min_p}));
  if (has_top_k) threshold = std::max(threshold, row.reached_by(options.top_k));
  const bool top_p_of_row = has_top_p && (is_mlx || (!has_min_p && !has_top_k));
  uint64_t row_weight = 0;
  if (top_p_of_row) {
    row_weight = sum_blocks(row, weigher, block_sums);
    threshold = std::max(threshold, top_p_cutoff(weigher, options.top_p, row_weight, row.width()));
  }

  candidates.collect(row, threshold);
  candidates.weigh(weigher);
  if (top_p_of_row) candidates.keep_top_p(options.top_p, row_weight);
  if (has_min_p) keep_min_p(candidates, options.min_p);
  if (has_top_k) candidates.keep_top_k(options.top_k);
  if (has_top_p && !top_p_of_row) candidates.keep_top_p(options.top_p, candidates.total_weight());
  if (has_typical_p) keep_typical(candidates, row.max(), options.typical_p);
  return true;
}

}  // namespace paceline
