// IncrementalDetokenizer turns a growing sequence of token ids into text without splitting
// characters.
#pragma once

#include <string>

#include "tokenizer/tokenizer.h"

namespace paceline {

// Invariant: everything returned so far, plus finish(), equals Tokenizer::decode of all ids pushed.
// What push() has returned so far is always well-formed UTF-8 and a prefix of that.
class IncrementalDetokenizer {
 public:
  // `tokenizer` must outlive it.
  IncrementalDetokenizer(const Tokenizer& tokenizer, DecodeOptions options);

  // The text that this token completes; empty while a character is still incomplete.
  // Throws Error invalid for an id outside the vocabulary, and is then as it was before.
  std::string push(TokenId id);
  // What is still held back, with U+FFFD for an incomplete character.
  // After it, the next push begins a new text.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  DecodeOptions options_;
  std::string pending_;  // bytes that begin a character, not yet returned
};

}  // namespace paceline
