// WordPieceModel: a word's tokens by longest match from its beginning.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "paceline/tokenizer.h"
#include "tokenizer/prefix_table.h"
#include "tokenizer/vocabulary.h"

namespace paceline {

// Devlin et al., "BERT" (2018). Must agree with WordPiece of HF tokenizers. Immutable.
class WordPieceModel {
 public:
  struct Options {
    TokenId unknown = -1;                   // of a word that no tokens make
    std::string_view prefix = "##";         // of tokens inside a word
    size_t max_input_chars_per_word = 100;  // a longer word is unknown
  };
  WordPieceModel(const Vocabulary& vocabulary, const Options& options);

  // Appends the tokens of well-formed UTF-8. Unless `sizes` is null, appends each token's number of
  // bytes in the word to it.
  void append(std::string_view word, std::vector<TokenId>& ids,
              std::vector<uint32_t>* sizes = nullptr) const;

 private:
  PrefixTable first_;   // where a word begins
  PrefixTable inside_;  // without the prefix
  TokenId unknown_;
  size_t max_characters_;
};

}  // namespace paceline
