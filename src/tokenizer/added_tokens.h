// AddedTokens: tokens beside the model's vocabulary, which are found in a text before it is
// encoded.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "paceline/tokenizer.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/string_matcher.h"

namespace paceline {

struct AddedToken {
  TokenId id = -1;
  std::string content = {};  // not empty
  std::string pattern = {};  // its text in inputs and outputs: normalised if `normalized`
  bool special = false;
  bool normalized = false;   // searched in the normalised text
  bool lstrip = false;       // includes the white space before it
  bool rstrip = false;       // and behind it
  bool single_word = false;  // only without word characters beside it
};

// Must agree with AddedVocabulary of HF tokenizers. Immutable.
class AddedTokens {
 public:
  // `normalizer` may be null. The patterns are made here.
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer* normalizer);
  AddedTokens(const AddedTokens&) = delete;
  AddedTokens& operator=(const AddedTokens&) = delete;

  // A stretch of a text: plain when `token` is negative.
  struct Segment {
    std::string_view text;
    TokenId token = -1;
  };
  enum class Stage { raw, normalized };

  // Whether a special token is recognised, by where it stands in the text that is cut.
  using Recognises = std::function<bool(std::string_view)>;

  // Cuts `text` at the tokens of this stage; no plain segment is empty.
  std::vector<Segment> split(std::string_view text, Stage stage,
                             const Recognises& recognises) const;

  // Where special tokens begin in a text that isn't normalised, overlapping ones too; ascending.
  std::vector<size_t> special_offsets(std::string_view text) const;

  // The token with this id or content; null when there is none.
  const AddedToken* find(TokenId id) const;
  const AddedToken* find(std::string_view content) const;

  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  struct Patterns {  // of one stage
    StringMatcher matcher;
    std::vector<size_t> tokens;  // indices into tokens_, by the matcher's index
  };

  static std::vector<AddedToken> with_patterns(std::vector<AddedToken> tokens,
                                               const Normalizer* normalizer);
  static Patterns make_patterns(const std::vector<AddedToken>& tokens, Stage stage);
  static StringMatcher match_specials(const std::vector<AddedToken>& tokens);

  std::vector<AddedToken> tokens_;
  Patterns raw_;
  Patterns normalized_;
  StringMatcher specials_;  // as they are written
  std::unordered_map<TokenId, size_t> by_id_;
  std::unordered_map<std::string_view, size_t> by_content_;  // views of tokens_
};

}  // namespace paceline
