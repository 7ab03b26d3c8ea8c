// Walks texts through a constraint token by token, as a model under it would write them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/constraint.h"
#include "grammar/matcher.h"
#include "grammar/token_trie.h"
#include "paceline/tokenizer.h"

namespace paceline {

// Splits a text into tokens whose bytes are the text: what a tokenizer adds to the first word is
// left out.
class TextTokens {
 public:
  // `tokenizer` must outlive it.
  explicit TextTokens(const Tokenizer& tokenizer);

  // By id; nothing for special tokens.
  const std::vector<std::string>& bytes() const { return bytes_; }
  // Error unsupported when the vocabulary can't write the text.
  std::vector<TokenId> tokens_of(std::string_view text) const;

 private:
  std::vector<TokenId> longest_tokens_of(std::string_view text) const;

  const Tokenizer& tokenizer_;
  std::vector<std::string> bytes_;
  std::unordered_map<std::string_view, TokenId> id_of_bytes_;
  size_t longest_ = 0;
};

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

  // Whether a model could write the text and end there.
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
