#include "sampling/candidates.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/divide_up.h"

namespace paceline {

namespace {

constexpr int64_t kBlockSize = BlockedRow::kBlockSize;

}  // namespace

Candidates::Candidates(Memory& memory, int64_t vocab_size) {
  const auto count = static_cast<size_t>(divide_up(vocab_size, kBlockSize) * kBlockSize);
  buffer_ = Buffer(
      memory, count * (sizeof(RankedWeight) + sizeof(uint64_t) + sizeof(float) + sizeof(int32_t)));
  entries_ = static_cast<RankedWeight*>(buffer_.get());
  weights_ = reinterpret_cast<uint64_t*>(entries_ + count);
  logits_ = reinterpret_cast<float*>(weights_ + count);
  ids_ = reinterpret_cast<int32_t*>(logits_ + count);
}

void Candidates::collect(const BlockedRow& row, float threshold) {
  threshold = std::max(threshold, -std::numeric_limits<float>::max());
  int64_t size = 0;
  for (int64_t b = 0; b < row.num_blocks(); ++b) {
    if (row.block_max(b) < threshold) continue;
    const float* const x = row.block(b);
    for (int64_t i = 0; i < kBlockSize; ++i) {
      ids_[size] = static_cast<int32_t>(b * kBlockSize + i);
      logits_[size] = x[i];
      size += x[i] >= threshold ? 1 : 0;
    }
  }
  size_ = size;
}

void Candidates::weigh(const Weigher& weigher) {
  const int64_t padded = divide_up(size_, kBlockSize) * kBlockSize;
  std::fill(logits_ + size_, logits_ + padded, -std::numeric_limits<float>::infinity());
  for (int64_t i = 0; i < size_; i += kBlockSize) weigher.weigh_block(logits_ + i, weights_ + i);
}

uint64_t Candidates::total_weight() const {
  return std::accumulate(weights_, weights_ + size_, uint64_t{0});
}

std::span<RankedWeight> Candidates::entries(RankBy by) {
  for (int64_t i = 0; i < size_; ++i)
    entries_[i] = {rank_key(logits_[i], ids_[i]), by == RankBy::weight ? weights_[i] : 1};
  return {entries_, static_cast<size_t>(size_)};
}

void Candidates::keep_from(uint64_t last_key) {
  keep_if([&](int64_t i) { return rank_key(logits_[i], ids_[i]) >= last_key; });
}

void Candidates::keep_top_k(int64_t count) {
  if (size_ <= count) return;
  keep_from(last_key_of_prefix(entries(RankBy::count), static_cast<uint64_t>(count)));
}

void Candidates::keep_top_p(float top_p, uint64_t total) {
  keep_from(last_key_of_prefix(entries(RankBy::weight), share_of(top_p, total)));
}

std::span<const RankedWeight> Candidates::ranked(int64_t count) {
  keep_top_k(count);
  const auto kept = entries(RankBy::count);
  std::sort(kept.begin(), kept.end(),
            [](const RankedWeight& a, const RankedWeight& b) { return a.key > b.key; });
  return kept;
}

}  // namespace paceline
