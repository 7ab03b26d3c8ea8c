// Candidates are the tokens that remain for a draw, by ascending id, with logits and weights.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/blocked_row.h"
#include "sampling/ranking.h"
#include "sampling/weights.h"
#include "tensor/buffer.h"

namespace paceline {

// Holds scratch for a whole vocabulary, reused from row to row.
class Candidates {
 public:
  Candidates(Memory& memory, int64_t vocab_size);

  int64_t size() const { return size_; }
  std::span<const int32_t> ids() const { return {ids_, static_cast<size_t>(size_)}; }
  std::span<const float> logits() const { return {logits_, static_cast<size_t>(size_)}; }
  std::span<const uint64_t> weights() const { return {weights_, static_cast<size_t>(size_)}; }

  // Restarts with the finite elements of `row` that reach `threshold`.
  void collect(const BlockedRow& row, float threshold);
  void weigh(const Weigher& weigher);
  uint64_t total_weight() const;

  // Keeps the candidates for which keep(index) is true.
  template <class Keep>
  void keep_if(Keep&& keep) {
    int64_t size = 0;
    for (int64_t i = 0; i < size_; ++i) {
      const bool kept = keep(i);
      ids_[size] = ids_[i];
      logits_[size] = logits_[i];
      weights_[size] = weights_[i];
      size += kept ? 1 : 0;
    }
    size_ = size;
  }
  // Keeps the first `count` > 0 by (probability down, id up).
  void keep_top_k(int64_t count);
  // Keeps the smallest prefix by (probability down, id up) with weight top_p * total, at least one.
  void keep_top_p(float top_p, uint64_t total);
  // The same as keep_top_k; returns the kept ones in that order. Valid until the next call.
  std::span<const RankedWeight> ranked(int64_t count);

  // An entry for each, by ascending id, with its rank_key() and weight 1 or its own; scratch.
  enum class RankBy : uint8_t { count, weight };
  std::span<RankedWeight> entries(RankBy by);

 private:
  void keep_from(uint64_t last_key);

  Buffer buffer_;
  int64_t size_ = 0;
  RankedWeight* entries_;  // room for a whole number of BlockedRow's blocks, as of the others
  uint64_t* weights_;
  float* logits_;
  int32_t* ids_;
};

}  // namespace paceline
