#include "sampling/truncation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "sampling/draw.h"

namespace paceline {

namespace {

// Elements below the average weight that top-p drops sum to at most the dropped weight, so they are
// beyond the prefix. The cut is among elements that reach this logit.
float top_p_cutoff(const Weigher& weigher, float top_p, uint64_t total, int64_t width) {
  const double dropped = (1.0 - double{top_p}) * static_cast<double>(total);
  return weigher.cutoff(dropped / static_cast<double>(width) / static_cast<double>(kWeightOne));
}

// Top-n-sigma (Tang et al., 2024): the logit n standard deviations below the largest. Of the
// logits after penalties, bias and mask and before the temperature, which scales the distance and
// the deviation alike: the tokens are the same at any temperature. As in llama.cpp it is the
// deviation of the population, of finite logits only. Sums are in float64, in a fixed order: eight
// lanes, each over ascending ids, added up from the first to the last; the result is a float32.
float sigma_cutoff(const BlockedRow& row, float n) {
  constexpr size_t kLanes = 8;
  const double max = row.max();
  const auto sum_over_row = [&](const auto& term) {
    std::array<double, kLanes> lanes{};
    for (int64_t b = 0; b < row.num_blocks(); ++b) {
      const float* const x = row.block(b);
      for (size_t i = 0; i < BlockedRow::kBlockSize; i += kLanes) {
        for (size_t lane = 0; lane < kLanes; ++lane) {
          const bool is_finite = x[i + lane] >= -std::numeric_limits<float>::max();
          lanes[lane] += is_finite ? term(double{x[i + lane]} - max) : 0.0;
        }
      }
    }
    return std::accumulate(lanes.begin(), lanes.end(), 0.0);
  };
  const double count = sum_over_row([](double) { return 1.0; });
  const double mean = sum_over_row([](double x) { return x; }) / count;
  const double squares = sum_over_row([&](double x) { return (x - mean) * (x - mean); });
  const double cutoff = max - double{n} * std::sqrt(squares / count);
  return static_cast<float>(std::max(cutoff, -double{std::numeric_limits<float>::max()}));
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
  const Weigher weigher(row.max(), is_mlx ? 1.0f : options.temperature);
  float threshold = -std::numeric_limits<float>::max();
  if (has_sigma) threshold = std::max(threshold, sigma_cutoff(row, options.top_n_sigma));
  // Top-p's share refers to the weight kept by the filters before it.
  const bool top_p_first = has_top_p && (is_mlx || (!has_min_p && !has_top_k));
  const bool top_p_of_row = top_p_first && !has_sigma;
  if (!top_p_first || top_p_of_row) {
    if (has_min_p) threshold = std::max(threshold, weigher.cutoff(double{options.min_p}));
    if (has_top_k) threshold = std::max(threshold, row.reached_by(options.top_k));
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
  if (has_typical_p) keep_typical(candidates, row.max(), options.typical_p);
  return true;
}

}  // namespace paceline
