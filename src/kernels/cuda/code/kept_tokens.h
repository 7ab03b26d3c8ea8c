// KeptTokens are the tokens of a row that its filters have kept so far: bounds, and where few are
// left, a list in shared memory.
#pragma once

#include "base/sampling_math.h"
#include "kernels/cuda/code/block_fold.h"
#include "kernels/cuda/code/block_reduce.h"
#include "kernels/cuda/code/math.h"

namespace paceline::cuda {

constexpr float kLargestFloat = 0x1.fffffep127f;

struct KeptToken {
  uint64_t key;  // rank_key(), with logit and id
  uint64_t weight;
};

constexpr uint32_t kMostListed = 1024;
struct TokenList {
  KeptToken tokens[kMostListed];  // in any order
  uint64_t ranks[kMostListed];
  uint32_t count;
  uint32_t num_ranks;

  PL_DEVICE uint32_t size() const { return count < kMostListed ? count : kMostListed; }
  PL_DEVICE void add(const KeptToken& token) {
    const uint32_t place = atomic_add(&count, 1u);
    if (place < kMostListed) tokens[place] = token;
  }
  PL_DEVICE void add_rank(uint64_t rank) {
    const uint32_t place = atomic_add(&num_ranks, 1u);
    if (place < kMostListed) ranks[place] = rank;
  }
};

// The logits of this thread: one of those around the multiples of 16 bytes, which is its first, and
// every kDrawThreads-th four between them.
struct OwnLogits {
  static constexpr int64_t kFour = 4;
  static constexpr int64_t kStep = kDrawThreads * kFour;
  const float* row;
  int64_t single;  // -1: none
  int64_t begin;   // of the fours
  int64_t end;

  PL_DEVICE OwnLogits(const float* row_, int64_t width) : row(row_) {
    // Logits before the first multiple of 16 bytes.
    const auto place = static_cast<int64_t>(reinterpret_cast<uintptr_t>(row) / sizeof(float));
    const int64_t ahead = (kFour - place % kFour) % kFour;
    const int64_t head = ahead < width ? ahead : width;
    const int64_t in_fours = (width - head) / kFour * kFour;
    const int64_t thread = thread_index();
    single = thread < width - in_fours ? (thread < head ? thread : in_fours + thread) : -1;
    begin = head + thread * kFour;
    end = head + in_fours;
  }
  PL_DEVICE Words4 load(int64_t i, uint32_t absent = 0) const {
    return i < end ? load_as<Words4>(row + i) : Words4{{absent, absent, absent, absent}};
  }

  // Calls body(id, logit) for the fours, and with -infinity behind the last. Eight are loaded at
  // once; no branch stands between the loads and what takes them.
  template <class Body>
  PL_DEVICE void for_each_in_fours(Body&& body) const {
    constexpr int kAtOnce = 8;
    for (int64_t i = begin; i < end; i += kAtOnce * kStep) {
      Words4 fours[kAtOnce];
      PL_UNROLL
      for (int k = 0; k < kAtOnce; ++k) fours[k] = load(i + k * kStep, bits_of_float(-kInfinity));
      PL_UNROLL
      for (int k = 0; k < 4 * kAtOnce; ++k) {
        body(static_cast<int32_t>(i) + k / 4 * static_cast<int32_t>(kStep) + k % 4,
             float_of_bits(fours[k / 4].words[k % 4]));
      }
    }
  }
};

// Calls body(id, logit) for the logits of this thread. The next fours are being loaded.
template <class Body>
PL_DEVICE void for_each_logit(const float* row, int64_t width, Body&& body) {
  constexpr int kAhead = 4;
  const OwnLogits own(row, width);
  Words4 ahead[kAhead];
  PL_UNROLL
  for (int k = 0; k < kAhead; ++k) ahead[k] = own.load(own.begin + k * own.kStep);
  if (own.single >= 0) body(static_cast<int32_t>(own.single), row[own.single]);
  PL_ROLLED
  for (int64_t i = own.begin; i < own.end; i += own.kStep) {
    const Words4 four = ahead[0];
    PL_UNROLL
    for (int k = 1; k < kAhead; ++k) ahead[k - 1] = ahead[k];
    ahead[kAhead - 1] = own.load(i + kAhead * own.kStep);
    PL_UNROLL
    for (int32_t k = 0; k < 4; ++k) {
      body(static_cast<int32_t>(i) + k, float_of_bits(four.words[k]));
    }
  }
}

struct KeptTokens {
  const float* row = nullptr;
  int64_t width = 0;
  float max = 0.0f;    // of the row
  float scale = 1.0f;  // of its weights: weight_scale()
  float least_logit = -kLargestFloat;
  uint64_t least_weight = 0;
  uint64_t least_key = 0;
  // Of typical-p: WeighedDistance::mean() in logits, and the largest distance from it.
  bool has_distance = false;
  double mean = 0.0;
  float most_distance = 0.0f;
  const TokenList* list = nullptr;  // where they all stand, if not in the row alone

  PL_DEVICE bool keeps(uint64_t key, uint64_t weight) const {
    if (weight < least_weight || key < least_key) return false;
    return !has_distance || distance_from_mean(logit_of_key(key), max, mean) <= most_distance;
  }

  // Calls body(key, weight) for the kept tokens of this thread.
  template <class Body>
  PL_DEVICE void for_each(Body&& body) const {
    if (list != nullptr) {
      for (uint32_t i = thread_index(); i < list->size(); i += kDrawThreads) {
        const KeptToken token = list->tokens[i];
        if (keeps(token.key, token.weight)) body(token.key, token.weight);
      }
      return;
    }
    for_each_logit(row, width, [&](int32_t id, float logit) {
      if (!(logit >= least_logit)) return;
      const uint64_t key = rank_key(logit, id), weight = weight_of(logit, max, scale);
      if (keeps(key, weight)) body(key, weight);
    });
  }
};

}  // namespace paceline::cuda
