// Adapter is a LoRA adapter: for each matrix W of a model that it changes, a pair of narrow
// matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/siphash.h"
#include "tensor/tensor.h"

namespace paceline {

// With a pair the model computes W x + scale * B (A x) instead of W x (Hu et al., "LoRA: Low-Rank
// Adaptation of Large Language Models", 2021).
struct LoraPair {
  std::string module;  // without a model prefix: "layers.3.self_attn.q_proj"
  OwnedTensor a;       // [rank, in], float32, float16 or bfloat16 as stored
  OwnedTensor b;       // [out, rank], likewise
  double alpha = 0;
  float scale = 0;  // alpha / rank, or alpha / sqrt(rank) of a rank-stabilised adapter

  int64_t rank() const { return a.view.size(0); }
  int64_t in() const { return a.view.size(1); }
  int64_t out() const { return b.view.size(0); }
  size_t size_bytes() const { return a.view.size_bytes() + b.view.size_bytes(); }
};

// Immutable, so it may be read by several threads. The Memory of its tensors must outlive it.
class Adapter {
 public:
  // One pair a module, in any order. `base_name` is the name of the base model in the file, which
  // may be empty.
  Adapter(std::string base_name, std::vector<LoraPair> pairs);

  const std::string& base_name() const { return base_name_; }
  // Sorted by module name.
  std::span<const LoraPair> pairs() const { return pairs_; }
  // Null when the adapter leaves the module as it is.
  const LoraPair* find(std::string_view module) const;

  // Of the pairs' modules, shapes, dtypes, bytes and scales: adapters of equal content have equal
  // digests, from files of any format.
  Hash128 digest() const { return digest_; }
  // Of all matrices.
  size_t size_bytes() const { return size_bytes_; }
  int64_t max_rank() const { return max_rank_; }

 private:
  friend Adapter with_scale(Adapter adapter, float factor);

  std::string base_name_;
  std::vector<LoraPair> pairs_;
  Hash128 digest_;
  size_t size_bytes_ = 0;
  int64_t max_rank_ = 0;
};

// The adapter with every pair's scale times `factor`; it has another digest.
Adapter with_scale(Adapter adapter, float factor);

}  // namespace paceline
