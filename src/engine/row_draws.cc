#include "engine/row_draws.h"

#include <algorithm>

#include "base/divide_up.h"
#include "sampling/penalties.h"
#include "sampling/token_mask.h"

namespace paceline {
namespace {

constexpr int64_t kBits = 64;

// Stands for a member of any type.
struct AnyMember {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};
template <class T>
concept HasFourMembers = requires(AnyMember any) {
  T{any, any, any, any};
}
&&!requires(AnyMember any) { T{any, any, any, any, any}; };
// The numbers, which come as one; logit_bias, mask and logprob_token_ids, each by its name.
static_assert(HasFourMembers<SamplingOptions>, "RowDraws::add() takes every member of its options");

void forbid(int32_t id, std::span<uint64_t> words) {
  const auto word = static_cast<size_t>(id / kBits);
  if (word < words.size()) words[word] &= ~(uint64_t{1} << id % kBits);
}

}  // namespace

void RowDraws::clear() {
  draws_.clear();
  num_masks_ = 0;
}

void RowDraws::add(const TokenDraw& draw, int64_t vocab_size) {
  const SamplingOptions& options = draw.options;
  RowDraw row{options};  // its numbers
  row.position = draw.position;
  row.forced = draw.chosen;
  row.wants_logprob = draw.wants_logprob;
  row.logprob_token_ids = options.logprob_token_ids;
  if (!draw.chosen) {
    if (penalises(options)) row.history = draw.history.tokens();
    row.logit_bias = options.logit_bias;
    row.allowed = add_mask(draw, vocab_size);
  }
  draws_.push_back(row);
}

// The tokens that both the constraint and the options allow.
std::span<const uint64_t> RowDraws::add_mask(const TokenDraw& draw, int64_t vocab_size) {
  if (draw.options.mask == nullptr) return draw.allowed;
  if (num_masks_ == masks_.size()) masks_.emplace_back();
  std::vector<uint64_t>& words = masks_[num_masks_++];
  const TokenMask& mask = *draw.options.mask;
  words.assign(static_cast<size_t>(divide_up(vocab_size, kBits)),
               mask.allowed().empty() ? ~uint64_t{0} : 0);
  for (const int32_t id : mask.allowed()) {
    words[static_cast<size_t>(id / kBits)] |= uint64_t{1} << id % kBits;
  }
  mask.for_each_banned(draw.history.output(), [&words](int32_t id) { forbid(id, words); });
  if (draw.allowed.empty()) return words;
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] &= i < draw.allowed.size() ? draw.allowed[i] : 0;
  }
  return words;
}

}  // namespace paceline
