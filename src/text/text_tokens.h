// TextTokens are the tokens of a vocabulary as bytes of a text, and texts as those tokens.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "paceline/tokenizer.h"

namespace paceline {

class TextTokens {
 public:
  // No text holds it: it stands before the text of a special token.
  static constexpr char kSpecialMark = '\xFF';

  // `tokenizer` must outlive it.
  explicit TextTokens(const Tokenizer& tokenizer);

  // By id; a special token's are the mark and its text.
  const std::vector<std::string>& bytes() const { return bytes_; }
  // The tokens of a text within a longer one: what a tokenizer adds to the first word is left out.
  // Error unsupported when the vocabulary can't write the text.
  std::vector<TokenId> tokens_of(std::string_view text) const;

 private:
  bool is_written_by(const std::vector<TokenId>& ids, size_t first, std::string_view text) const;
  std::vector<TokenId> longest_tokens_of(std::string_view text) const;

  const Tokenizer& tokenizer_;
  std::vector<std::string> bytes_;
  std::unordered_map<std::string_view, TokenId> id_of_bytes_;
  size_t longest_ = 0;
};

}  // namespace paceline
