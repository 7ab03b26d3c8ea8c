// Texts that special tokens are part of, as a vocabulary's masks have them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/regex_set.h"

namespace paceline {

// In a mask's vocabulary a special token is the byte 0xFF and its text; every other token is its
// text.
class SpecialText {
 public:
  // The texts of the special tokens, in any order.
  explicit SpecialText(std::span<const std::string> special_tokens);

  // The text where each special token, the longest at every place, is that token.
  std::string marked(std::string_view text) const;
  RegexId literal(RegexSet& regexes, std::string_view text) const {
    return regexes.literal(marked(text));
  }

 private:
  std::vector<std::string> special_tokens_;  // the longest first
};

// Texts of any bytes in which `mark` doesn't stand, neither with special tokens nor without.
RegexId text_without(RegexSet& regexes, std::string_view mark);
// Texts of any bytes that don't begin with `mark`, blanks in front of it apart.
RegexId text_beginning_without(RegexSet& regexes, std::string_view mark);
// At most 8 of the blanks " \t\n\r".
RegexId some_blanks(RegexSet& regexes);

}  // namespace paceline
