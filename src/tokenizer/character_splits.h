// Pre-tokenizers that cut at classes of characters: Digits, Punctuation, WhitespaceSplit and
// similar.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/pre_tokenizer.h"

namespace paceline {

// `Digits`, `Punctuation` and `WhitespaceSplit`: every character of these classes (bits of
// UnicodeClass) is a match.
class ClassSplit final : public PreTokenizer {
 public:
  ClassSplit(uint16_t classes, SplitBehavior behavior) : classes_(classes), behavior_(behavior) {}
  void split(Pieces& pieces) const override;

 private:
  uint16_t classes_;
  SplitBehavior behavior_;
};

// `Whitespace`: runs of word characters, and runs of others that aren't white space.
class WordSplit final : public PreTokenizer {
 public:
  void split(Pieces& pieces) const override;
};

// `ByteLevel` before another pre-tokenizer: converts every piece to the byte-level alphabet.
class ByteLevelMapping final : public PreTokenizer {
 public:
  void split(Pieces& pieces) const override;
};

// `Metaspace`: spaces become the replacement, one more is put before the text, and each begins a
// piece.
class MetaspaceSplit final : public PreTokenizer {
 public:
  enum class Prepend { always, first, never };  // first: where the input begins
  struct Options {
    std::string replacement;  // one character
    Prepend prepend = Prepend::always;
    bool split = true;
  };
  explicit MetaspaceSplit(Options options) : options_(std::move(options)) {}
  void split(Pieces& pieces) const override;

 private:
  std::string_view replace(std::string_view piece, TextStore& store) const;

  Options options_;
};

}  // namespace paceline
