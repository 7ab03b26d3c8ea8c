#include "spec/ngram_drafter.h"

#include <fmt/format.h>

#include "paceline/error.h"
#include "spec/token_index.h"

namespace paceline {
namespace {

class NgramState : public DraftState {
 public:
  explicit NgramState(const PromptLookupOptions& options)
      : index_(options.min_length, options.max_length) {}

  const TokenMatch& match(std::span<const int32_t> tokens) {
    if (tokens.size() != num_tokens_) {
      index_.extend(tokens);
      match_ = index_.find(tokens);
      num_tokens_ = tokens.size();
    }
    return match_;
  }

 private:
  TokenIndex index_;
  TokenMatch match_;  // of the first num_tokens_ tokens
  size_t num_tokens_ = 0;
};

}  // namespace

NgramDrafter::NgramDrafter(const PromptLookupOptions& options) : options_(options) {
  const auto [min, max] = options;
  if (min < 1 || max < min || max > TokenIndex::kMaxLength) {
    throw Error(
        ErrorCode::invalid,
        fmt::format("prompt lookup: --prompt-lookup-min is {} and --prompt-lookup-max is {}, "
                    "expected 1 <= min <= max <= {}",
                    min, max, TokenIndex::kMaxLength));
  }
}

std::unique_ptr<DraftState> NgramDrafter::begin(std::span<const int32_t> /*prompt*/,
                                                std::span<const int32_t> /*prediction*/) {
  return std::make_unique<NgramState>(options_);
}

int64_t NgramDrafter::prospects(DraftState& state, std::span<const int32_t> tokens, int64_t most) {
  return static_cast<NgramState&>(state).match(tokens).length > 0 ? most : 0;
}

void NgramDrafter::propose(std::span<const DraftRequest> requests) {
  for (const DraftRequest& request : requests) {
    const TokenMatch& match = static_cast<NgramState*>(request.state)->match(request.tokens);
    if (match.length == 0) continue;
    std::vector<int32_t>& out = request.draft->tokens;
    const std::span<const int32_t> follow = request.tokens.subspan(static_cast<size_t>(match.end));
    for (size_t i = 0; i < static_cast<size_t>(request.most); ++i)
      out.push_back(i < follow.size() ? follow[i] : out[i - follow.size()]);
  }
}

}  // namespace paceline
