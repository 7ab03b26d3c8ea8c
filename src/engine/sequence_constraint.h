// SequenceConstraint is how far the text of a sequence under a constraint has come, and what may be
// drawn next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/request.h"
#include "grammar/matcher.h"
#include "paceline/error.h"
#include "spec/drafter.h"

namespace paceline {

// What a constraint says about the token of one position.
struct TokenRule {
  std::optional<TokenId> forced;  // comes without a draw
  std::vector<uint64_t> allowed;  // else: a bit for each token, as copy_allowed reads them
};

// One thread at a time. What it says depends on the constraint, the request and the output's tokens
// alone, so it is the same for any schedule.
class SequenceConstraint {
 public:
  // `request` has a constraint. Throws Error exhausted when its beginning is too complex.
  explicit SequenceConstraint(const GenerateRequest& request);

  // The tokens that come next without a draw.
  std::span<const TokenId> forced() const { return std::span(forced_).subspan(num_forced_taken_); }
  // How many first tokens of a draft may come in turn.
  size_t count_allowed(std::span<const TokenId> draft);
  // For a drafter: what may come along its draft. Nothing else may be called until it is gone.
  std::unique_ptr<DraftMask> draft_mask();

  // Finds the rules of the next position and of those behind the tokens of a draft that may come.
  void find_rules(std::span<const TokenId> draft);
  // The rule of the next position; null: `failure` says why there is none.
  const TokenRule* rule();
  // Goes on behind a token that the rule allows and that doesn't end the output.
  void accept(TokenId token);
  // Whether the text is whole, and nothing may follow.
  bool only_ends();

  const std::optional<Error>& failure() const { return failure_; }

 private:
  class Walk;
  class WalkMask;

  bool is_end(TokenId token) const;
  // The tokens that come without a draw where the matcher stands.
  std::vector<TokenId> find_forced();
  // The tokens that may be drawn where the matcher stands, those that end the output included.
  void find_allowed(std::vector<uint64_t>& allowed);
  void add_rule(const Walk& walk);

  Matcher matcher_;
  std::vector<TokenId> ends_;
  bool forces_;  // the request leaves every token that may be forced
  std::vector<TokenId> forced_;
  size_t num_forced_taken_ = 0;
  std::vector<TokenRule> rules_;  // of the next positions; reused
  size_t num_rules_ = 0;
  size_t next_rule_ = 0;
  std::optional<Error> failure_;  // the text can't be followed any further
};

}  // namespace paceline
