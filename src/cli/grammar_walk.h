// Walks texts through a constraint token by token, as a model under it would write them. Of JSON
// every text of a value is accepted, even one that a model may not write: 18.0 for an integer.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/constraint.h"
#include "grammar/matcher.h"
#include "grammar/token_trie.h"
#include "text/text_tokens.h"

namespace paceline {

struct WalkTimes {
  double compile_us = 0;
  double first_mask_us = 0;      // compilation included
  std::vector<double> token_us;  // of every token: its mask, and the step past it
};

// A compiled constraint, and what walking texts through it took.
class GrammarWalk {
 public:
  // The vocabulary of `tokens` as a trie, which walks share.
  static std::shared_ptr<const TokenTrie> trie_of(const TextTokens& tokens);

  // Compiles the constraint and computes the mask of the first token. `tokens` must outlive it.
  GrammarWalk(const ConstraintSpec& spec, const TextTokens& tokens,
              std::shared_ptr<const TokenTrie> trie);

  // Whether the text obeys the constraint.
  bool accepts(std::string_view text);
  // The bytes of the text up to the first that can't come there; all of them: it ends too early.
  size_t accepted_bytes(std::string_view text) const;
  const WalkTimes& times() const { return times_; }

 private:
  ConstraintSpec spec_;
  const TextTokens& tokens_;
  std::shared_ptr<Constraint> constraint_;
  WalkTimes times_;
};

}  // namespace paceline
