#include "sampling/token_mask.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace paceline {
namespace {

constexpr float kMaskedLogit = -std::numeric_limits<float>::infinity();

}  // namespace

TokenMask::TokenMask(std::vector<int32_t> allowed, std::vector<std::vector<int32_t>> banned)
    : allowed_(std::move(allowed)), banned_(std::move(banned)) {
  std::sort(allowed_.begin(), allowed_.end());
  allowed_.erase(std::unique(allowed_.begin(), allowed_.end()), allowed_.end());
  for (const auto& sequence : banned_) {
    PL_CHECK(!sequence.empty(), "a banned sequence has a token to ban");
    reads_output_ = reads_output_ || sequence.size() > 1;
  }
}

void TokenMask::apply(std::span<float> logits, std::span<const int32_t> output) const {
  if (!allowed_.empty()) {
    PL_CHECK(allowed_.front() >= 0 && static_cast<size_t>(allowed_.back()) < logits.size(),
             "token id out of the vocabulary");
    auto next = logits.begin();
    for (const int32_t id : allowed_) {
      std::fill(next, logits.begin() + id, kMaskedLogit);
      next = logits.begin() + id + 1;
    }
    std::fill(next, logits.end(), kMaskedLogit);
  }
  for_each_banned(output, [logits](int32_t id) {
    if (static_cast<size_t>(id) < logits.size()) logits[static_cast<size_t>(id)] = kMaskedLogit;
  });
}

}  // namespace paceline
