// Where a prefix of a row's kept tokens ends that has a number of them or a share of their weight.
#pragma once

#include "kernels/cuda/code/kept_tokens.h"

namespace paceline::cuda {

constexpr int kBinBits = 10;
constexpr uint32_t kNumBins = 1u << kBinBits;

struct PrefixShared {
  FoldShared fold;
  uint64_t sums[kNumBins];
  uint32_t counts[kNumBins];
  uint32_t found_bin;
  uint64_t sum_before;  // the found bin
  TokenList list;
};

// The order of a prefix, and how much each token adds to it.
struct PrefixOrder {
  bool counts = false;          // each adds 1; else its weight
  bool is_by_distance = false;  // from the mean, upwards, then by id; else by rank_key
  float bins_per_logit = 0.0f;

  PL_DEVICE uint64_t measure(uint64_t weight) const { return counts ? 1 : weight; }
  PL_DEVICE uint64_t rank(const KeptTokens& tokens, uint64_t key) const {
    if (!is_by_distance) return key;
    return rank_key(-distance_from_mean(logit_of_key(key), tokens.max, tokens.mean),
                    id_of_key(key));
  }
  // Grows as ranks fall. Bins have one width, so that few tokens share one; the last has what is
  // beyond.
  PL_DEVICE uint32_t bin(const KeptTokens& tokens, uint64_t rank) const {
    const float logit = logit_of_key(rank);
    const float place = (is_by_distance ? -logit : tokens.max - logit) * bins_per_logit;
    return place < static_cast<float>(kNumBins - 1) ? static_cast<uint32_t>(place) : kNumBins - 1;
  }
};

// Finds the rank of the last token of the smallest prefix that reaches a target. All threads of a
// block call it.
class PrefixSearch {
 public:
  PL_DEVICE PrefixSearch(const PrefixOrder& order, PrefixShared& shared)
      : order_(order), shared_(shared) {}

  // At least `count` tokens, where the order counts, or else `share` of the weight; 0 when there
  // are fewer. Where the prefix and all that shares its last bin fit, `tokens` become a list.
  PL_DEVICE uint64_t last_rank(KeptTokens& tokens, uint64_t count, float share) {
    if (tokens.list != nullptr) {
      return last_in_list(tokens, order_.counts ? count : share_of(share, weight_of(tokens)));
    }
    fill_bins(tokens, [this, &tokens](uint64_t rank) { return order_.bin(tokens, rank); });
    uint64_t target = order_.counts ? count : share_of(share, sum_of_bins());
    const uint32_t last = find_bin(target);
    if (last == kNumBins) return 0;
    if (tokens_up_to(last) <= kMostListed) {
      gather(tokens,
             [this, &tokens, last](uint64_t rank) { return order_.bin(tokens, rank) <= last; });
      tokens.list = &shared_.list;
      return last_in_list(tokens, target);
    }
    return last_in_bin(tokens, last, target);
  }

 private:
  // Of tokens in one bin, which are too many for the list with what comes before: rounds over the
  // bits of their ranks, from the top, until few are left.
  PL_DEVICE uint64_t last_in_bin(const KeptTokens& tokens, uint32_t found, uint64_t target) {
    uint32_t bin = found;
    int shift = 64;      // ranks have the bits above in common ...
    uint64_t upper = 0;  // ... which are these
    const auto is_left = [this, &tokens, &shift, &upper, found](uint64_t rank) {
      return order_.bin(tokens, rank) == found && (shift == 64 || rank >> shift == upper);
    };
    target -= shared_.sum_before;
    while (bin < kNumBins && shared_.counts[bin] > kMostListed && shift > 0) {
      const int next = shift > kBinBits ? shift - kBinBits : 0;
      fill_bins(tokens, [&is_left, next](uint64_t rank) {
        const auto digit = static_cast<uint32_t>(rank >> next) % kNumBins;
        return is_left(rank) ? kNumBins - 1 - digit : kNumBins;
      });
      bin = find_bin(target);
      target -= shared_.sum_before;
      const uint64_t digit = kNumBins - 1 - bin;
      const int bits = shift - next;
      upper = (upper << bits) | (digit & ((uint64_t{1} << bits) - 1));
      shift = next;
    }
    gather(tokens, is_left);
    KeptTokens few = tokens;
    few.list = &shared_.list;
    return last_in_list(few, target);
  }

  // Sums up what tokens add to the bins that bin_of(rank) says, if it is one of them.
  template <class BinOf>
  PL_DEVICE void fill_bins(const KeptTokens& tokens, const BinOf& bin_of) {
    sync_threads();  // bins found before have been read
    for (uint32_t i = thread_index(); i < kNumBins; i += kDrawThreads) {
      shared_.sums[i] = 0;
      shared_.counts[i] = 0;
    }
    if (thread_index() == 0) shared_.found_bin = kNumBins;
    sync_threads();
    tokens.for_each([this, &tokens, &bin_of](uint64_t key, uint64_t weight) {
      const uint32_t bin = bin_of(order_.rank(tokens, key));
      if (bin >= kNumBins) return;
      atomic_add(&shared_.counts[bin], 1u);
      if (order_.measure(weight) > 0) atomic_add(&shared_.sums[bin], order_.measure(weight));
    });
    sync_threads();
  }

  static constexpr uint32_t kBinsEach = kNumBins / kDrawThreads;

  PL_DEVICE uint64_t sum_of_own_bins() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < kBinsEach; ++i) {
      sum += shared_.sums[thread_index() * kBinsEach + i];
    }
    return sum;
  }
  PL_DEVICE uint64_t sum_of_bins() { return fold_block<SumOf>(sum_of_own_bins(), shared_.fold); }

  PL_DEVICE uint64_t tokens_up_to(uint32_t last) {
    uint64_t count = 0;
    for (uint32_t i = thread_index(); i <= last; i += kDrawThreads) count += shared_.counts[i];
    return fold_block<SumOf>(count, shared_.fold);
  }

  // The bin in which the sum over bins reaches the target; kNumBins: it doesn't.
  PL_DEVICE uint32_t find_bin(uint64_t target) {
    constexpr uint32_t kThreadsEach = kDrawThreads / kWarpLanes;
    uint64_t* const of_thread = shared_.fold.of_thread;
    uint64_t* const of_lane = shared_.fold.of_lane;
    const uint32_t thread = thread_index(), lane = thread / kThreadsEach;
    of_thread[thread] = sum_of_own_bins();
    sync_threads();
    if (thread < kWarpLanes) {
      uint64_t sum = 0;
      for (uint32_t i = 0; i < kThreadsEach; ++i) sum += of_thread[thread * kThreadsEach + i];
      of_lane[thread] = sum;
    }
    sync_threads();
    uint64_t before = 0;
    for (uint32_t i = 0; i < lane; ++i) before += of_lane[i];
    for (uint32_t i = lane * kThreadsEach; i < thread; ++i) before += of_thread[i];
    for (uint32_t i = 0; i < kBinsEach; ++i) {
      const uint64_t sum = shared_.sums[thread * kBinsEach + i];
      if (before < target && target - before <= sum) {
        shared_.found_bin = thread * kBinsEach + i;
        shared_.sum_before = before;
      }
      before += sum;
    }
    sync_threads();
    return shared_.found_bin;
  }

  template <class IsIn>
  PL_DEVICE void gather(const KeptTokens& tokens, const IsIn& is_in) {
    TokenList& list = shared_.list;
    if (thread_index() == 0) list.count = 0;
    sync_threads();
    tokens.for_each([this, &tokens, &is_in, &list](uint64_t key, uint64_t weight) {
      if (is_in(order_.rank(tokens, key))) list.add({key, weight});
    });
    sync_threads();
  }

  PL_DEVICE uint64_t weight_of(const KeptTokens& tokens) {
    uint64_t sum = 0;
    tokens.for_each([&sum](uint64_t /*key*/, uint64_t weight) { sum += weight; });
    return fold_block<SumOf>(sum, shared_.fold);
  }

  PL_DEVICE uint64_t last_in_list(const KeptTokens& tokens, uint64_t target) {
    TokenList& list = shared_.list;
    const uint32_t count = list.size();
    for (uint32_t i = thread_index(); i < count; i += kDrawThreads) {
      const KeptToken token = list.tokens[i];
      list.ranks[i] = tokens.keeps(token.key, token.weight) ? order_.rank(tokens, token.key) : 0;
    }
    sync_threads();
    uint64_t found = 0;
    for (uint32_t i = thread_index(); i < count; i += kDrawThreads) {
      const uint64_t rank = list.ranks[i], own = order_.measure(list.tokens[i].weight);
      if (rank == 0) continue;
      uint64_t before = 0;
      for (uint32_t k = 0; k < count; ++k) {
        before += list.ranks[k] > rank ? order_.measure(list.tokens[k].weight) : 0;
      }
      if (before < target && target - before <= own) found = rank;
    }
    return fold_block<MostOf>(found, shared_.fold);
  }

  const PrefixOrder order_;
  PrefixShared& shared_;
};

}  // namespace paceline::cuda
