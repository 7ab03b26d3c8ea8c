// Draws a token from each row of logits, a block for each, as sampling/Sampler does: the same
// tokens, bit for bit.
#pragma once

#include "kernels/cuda/code/draw_row.h"
#include "kernels/cuda/code/row_results.h"
#include "kernels/cuda/code/token_prefix.h"

namespace paceline::cuda {

// Where NaN comes first.
constexpr uint64_t kNanKey = ~uint64_t{0};

// The largest rank_key() of a row, or kNanKey.
PL_DEVICE uint64_t top_key_of(const float* logits, int64_t width, FoldShared& shared) {
  const OwnLogits own(logits, width);
  const float single = own.single >= 0 ? logits[own.single] : -kInfinity;
  float top = -kInfinity, top_or_nan = single;
  int32_t id_of_top = -1;
  own.for_each_in_fours([&](int32_t id, float logit) {  // ids ascend
    top_or_nan = maximum_or_nan(top_or_nan, logit);
    id_of_top = logit > top ? id : id_of_top;
    top = logit > top ? logit : top;
  });
  const uint64_t key =
      MostOf::combine(rank_key(top, id_of_top), rank_key(single, static_cast<int32_t>(own.single)));
  return fold_block<MostOf>(top_or_nan == top_or_nan ? key : kNanKey, shared);
}

// The least finite logit of a row that has one.
PL_DEVICE float least_finite_of(const float* logits, int64_t width, FoldShared& shared) {
  const OwnLogits own(logits, width);
  const float single = own.single >= 0 ? logits[own.single] : kInfinity;
  float least = is_finite(single) ? single : kInfinity;
  own.for_each_in_fours([&least](int32_t /*id*/, float logit) {
    least = is_finite(logit) ? smaller(logit, least) : least;
  });
  return logit_of_key(fold_block<LeastOf>(rank_key(least, 0), shared));
}

// Applies the filters of a row in their order.
class RowFilters {
 public:
  // `max` is finite and the largest logit.
  PL_DEVICE RowFilters(const DrawRow& row, const float* logits, int64_t width, float max,
                       PrefixShared& shared)
      : row_(row), shared_(shared) {
    // The order of mlx-lm filters at temperature 1.
    temperature_ = row.order == SamplerOrder::mlx && truncates(row) ? 1.0f : row.temperature;
    kept_ = {.row = logits, .width = width, .max = max, .scale = weight_scale(temperature_)};
    // Weights are 0 beyond the bins.
    bins_per_weighed_logit_ = kept_.scale * (static_cast<float>(kNumBins - 1) / -kLeastExponent);
  }

  PL_DEVICE const KeptTokens& apply() {
    if (!truncates(row_)) return kept_;
    const bool is_mlx = row_.order == SamplerOrder::mlx;
    const bool needs_least = row_.top_n_sigma > 0.0f || row_.top_k > 0;
    if (needs_least) least_ = least_finite_of(kept_.row, kept_.width, shared_.fold);
    if (row_.top_n_sigma > 0.0f) keep_near_top();
    if (is_mlx && row_.top_p < 1.0f) keep_top_p();
    if (row_.min_p > 0.0f) kept_.least_weight = share_of(row_.min_p, kWeightOne);
    if (row_.top_k > 0) keep_top_k();
    if (!is_mlx && row_.top_p < 1.0f) keep_top_p();
    if (row_.typical_p < 1.0f) keep_typical();
    return kept_;
  }

 private:
  // Top-n-sigma.
  PL_DEVICE void keep_near_top() {
    const double max = kept_.max, range = max - double{least_};
    kept_.least_logit = kept_.max;
    if (range == 0.0) return;
    const DistanceUnits units(range, kSpreadBits);
    LogitSpread spread;
    for_each_logit(kept_.row, kept_.width, [&](int32_t /*id*/, float logit) {
      if (!(logit >= -kLargestFloat)) return;
      const auto distance = static_cast<uint64_t>(units.count(max - double{logit}));
      spread.count += 1;
      spread.sum += distance;
      spread.squares += distance * distance;
    });
    spread.count = fold_block<SumOf>(spread.count, shared_.fold);
    spread.sum = fold_block<SumOf>(spread.sum, shared_.fold);
    spread.squares = fold_block<SumOf>(spread.squares, shared_.fold);
    const double deviation = units.logits(square_root(spread.variance()));
    kept_.least_logit = sigma_cutoff(kept_.max, row_.top_n_sigma, deviation);
  }

  PL_DEVICE void keep_from(uint64_t key) {
    kept_.least_key = MostOf::combine(kept_.least_key, key);
  }

  PL_DEVICE void keep_top_k() {
    const float width = static_cast<float>(kNumBins - 1) / (kept_.max - least_);
    PrefixSearch search({.counts = true, .bins_per_logit = width}, shared_);
    keep_from(search.last_rank(kept_, static_cast<uint64_t>(row_.top_k), 0.0f));
  }

  PL_DEVICE void keep_top_p() {
    PrefixSearch search({.bins_per_logit = bins_per_weighed_logit_}, shared_);
    keep_from(search.last_rank(kept_, 0, row_.top_p));
  }

  PL_DEVICE void keep_typical() {
    const DistanceUnits units(double{temperature_}, kTypicalBits);
    const double max = kept_.max;
    WeighedDistance sum;
    uint64_t total = 0;
    kept_.for_each([&](uint64_t key, uint64_t weight) {
      total += weight;
      if (weight > 0) sum.add(weight, units.count(max - double{logit_of_key(key)}));
    });
    total = fold_block<SumOf>(total, shared_.fold);
    sum.low = fold_block<SumOf>(sum.low, shared_.fold);
    sum.high = fold_block<SumOf>(sum.high, shared_.fold);
    kept_.mean = units.logits(sum.mean(total));
    PrefixSearch search({.is_by_distance = true, .bins_per_logit = bins_per_weighed_logit_},
                        shared_);
    const uint64_t last = search.last_rank(kept_, 0, row_.typical_p);
    kept_.has_distance = true;
    kept_.most_distance = -logit_of_key(last);
  }

  const DrawRow& row_;
  PrefixShared& shared_;
  KeptTokens kept_;
  float temperature_ = 1.0f;  // of the filters
  float bins_per_weighed_logit_ = 0.0f;
  float least_ = 0.0f;
};

// The entrants of this thread in a race (sampling/race.h).
struct RaceEntrants {
  uint64_t key;  // of the draw
  uint64_t winner = kNanKey;
  double time = static_cast<double>(kInfinity);
  double bound = static_cast<double>(kInfinity);

  PL_DEVICE void enter(int32_t id, uint64_t weight) {
    const uint64_t noise = token_noise(key, id);
    const auto exact = static_cast<double>(static_cast<int64_t>(weight));
    // Infinity * 0 is NaN: a token of weight 0 never wins.
    if (!(static_cast<double>(static_cast<int64_t>(noise >> 11)) <= bound * exact)) return;
    const double own = exponential_time(noise) / exact;
    const auto entrant = static_cast<uint64_t>(id);
    if (own > time || (own == time && entrant > winner)) return;
    winner = entrant;
    time = own;
    bound = noise_bound(own);
  }
};

struct DrawRows {
  static constexpr std::string_view kName = "draw_rows";
  static constexpr uint32_t kThreads = kDrawThreads;
  struct Params {
    const DrawRow* rows = nullptr;
    ConstRows logits;
    ConstRows adjusted;
    int64_t width = 0;
    DrawnToken* drawn = nullptr;
  };
  using Shared = PrefixShared;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const DrawRow& row = p.rows[block_index().x];
    const bool is_active = row.is_active != 0, is_adjusted = changes_logits(row);
    const int32_t forced = row.forced;
    if (!is_active || forced >= 0) return write(p, is_active ? forced : -1, DrawOutcome::ok);
    const float* const model_logits = p.logits.row(block_index().x);
    const float* const logits = is_adjusted ? p.adjusted.row(block_index().x) : model_logits;
    const uint64_t top = top_key_of(logits, p.width, shared.fold);
    const float max = logit_of_key(top);
    if (top == kNanKey) return write(p, -1, DrawOutcome::nan_logits);
    if (max == -kInfinity && has_finite(model_logits, p.width, shared.fold)) {
      return write(p, -1, DrawOutcome::all_forbidden);
    }
    if (!is_finite(max)) return write(p, -1, DrawOutcome::nothing_to_draw);
    if (row.temperature == 0.0f) return write(p, id_of_key(top), DrawOutcome::ok);
    RowFilters filters(row, logits, p.width, max, shared);
    write(p, race(row, filters.apply(), top, shared.fold), DrawOutcome::ok);
  }

 private:
  PL_DEVICE static void write(const Params& p, int32_t id, DrawOutcome outcome) {
    if (thread_index() == 0) p.drawn[block_index().x] = {id, outcome, 0.0f, 0};
  }

  PL_DEVICE static bool has_finite(const float* logits, int64_t width, FoldShared& shared) {
    uint64_t found = 0;
    for_each_logit(logits, width, [&found](int32_t /*id*/, float logit) {
      if (is_finite(logit)) found = 1;
    });
    return fold_block<MostOf>(found, shared) != 0;
  }

  PL_DEVICE static int32_t race(const DrawRow& row, const KeptTokens& kept, uint64_t top,
                                FoldShared& shared) {
    RaceEntrants entrants{.key = draw_key(row.seed, row.position)};
    float max = kept.max;
    if (!kept.has_distance) {
      entrants.enter(id_of_key(top), kWeightOne);  // so that few others come near
    } else if (row.order == SamplerOrder::mlx) {
      max = logit_of_key(top_kept(kept, shared));
    }
    const float scale = weight_scale(row.temperature);
    const bool is_weighed = max == kept.max && scale == kept.scale;
    kept.for_each([&](uint64_t key, uint64_t weight) {
      const uint64_t own = is_weighed ? weight : weight_of(logit_of_key(key), max, scale);
      entrants.enter(id_of_key(key), own);
    });
    const uint64_t time = std::bit_cast<uint64_t>(entrants.time);
    const uint64_t first = fold_block<LeastOf>(time, shared);
    return static_cast<int32_t>(
        fold_block<LeastOf>(time == first ? entrants.winner : kNanKey, shared));
  }

  PL_DEVICE static uint64_t top_kept(const KeptTokens& kept, FoldShared& shared) {
    uint64_t top = 0;
    kept.for_each([&top](uint64_t key, uint64_t /*weight*/) { top = MostOf::combine(top, key); });
    return fold_block<MostOf>(top, shared);
  }
};

// Log-probabilities of drawn tokens, by the model's logits: their own, and those of the likeliest,
// by (probability down, id up), or of listed ones.
struct ScoreRows {
  static constexpr std::string_view kName = "score_rows";
  static constexpr uint32_t kThreads = kDrawThreads;
  struct Params {
    const DrawRow* rows = nullptr;
    ConstRows logits;
    int64_t width = 0;
    const float* log_sum_exp = nullptr;  // of each row
    DrawnToken* drawn = nullptr;
  };
  using Shared = PrefixShared;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const DrawRow& row = p.rows[block_index().x];
    DrawnToken& drawn = p.drawn[block_index().x];
    if (row.wants_logprob == 0 || drawn.id < 0) return;
    const float* const logits = p.logits.row(block_index().x);
    const float sum = p.log_sum_exp[block_index().x];
    uint32_t num_scored = row.num_listed;
    for (uint32_t i = thread_index(); i < row.num_listed; i += kThreads) {
      row.scored[i] = {row.listed[i], logprob_of(logits[row.listed[i]], sum)};
    }
    if (row.num_listed == 0 && row.num_top_logprobs > 0) {
      num_scored = score_likeliest(row, logits, p.width, sum, shared);
    }
    if (thread_index() > 0) return;
    drawn.logprob = logprob_of(logits[drawn.id], sum);
    drawn.num_scored = num_scored;
  }

 private:
  // None of a row with NaN.
  PL_DEVICE static uint32_t score_likeliest(const DrawRow& row, const float* logits, int64_t width,
                                            float sum, Shared& shared) {
    const uint64_t top = top_key_of(logits, width, shared.fold);
    const float max = logit_of_key(top);
    if (top == kNanKey || max == -kInfinity) return 0;
    const float least = least_finite_of(logits, width, shared.fold);
    const float bins_per_logit = static_cast<float>(kNumBins - 1) / (max - least);
    KeptTokens kept{.row = logits, .width = width, .max = max};
    PrefixSearch search({.counts = true, .bins_per_logit = bins_per_logit}, shared);
    const auto num_top = static_cast<uint32_t>(row.num_top_logprobs);
    kept.least_key = search.last_rank(kept, num_top, 0.0f);
    TokenList& list = shared.list;
    if (thread_index() == 0) list.num_ranks = 0;
    sync_threads();
    kept.for_each([&list](uint64_t key, uint64_t /*weight*/) { list.add_rank(key); });
    sync_threads();
    const uint32_t count = list.num_ranks < num_top ? list.num_ranks : num_top;
    for (uint32_t i = thread_index(); i < count; i += kThreads) {
      const uint64_t key = list.ranks[i];
      uint32_t place = 0;
      for (uint32_t k = 0; k < count; ++k) place += list.ranks[k] > key ? 1 : 0;
      row.scored[place] = {id_of_key(key), logprob_of(logit_of_key(key), sum)};
    }
    return count;
  }
};

}  // namespace paceline::cuda
