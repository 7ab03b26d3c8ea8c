// Encodes a classification label as the tokens that follow its prompt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "paceline/tokenizer.h"

namespace paceline {

// Whether a label directly after `prompt` would run into its last word: the label begins with a
// letter or digit, and the prompt ends with a letter, a digit or one of . , ; : ! ? ) ] } =.
// Characters beyond ASCII count as letters.
bool runs_into_prompt(std::string_view prompt, std::string_view label);

// The tokens that `text` adds to those of `context`, a short text; where they don't continue those,
// the tokens of `text` alone. Some tokenizers put a space before every text; `text` doesn't get
// one. Special tokens are text in its first `num_plain` bytes.
std::vector<TokenId> tokens_after(const Tokenizer& tokenizer, std::string_view context,
                                  std::string_view text, size_t num_plain = 0);

// The tokens that `label` adds to those of `prompt`, without special tokens. A label that would run
// into the prompt's last word gets a space in front, unless that needs more tokens than the label
// alone (as in languages without spaces).
std::vector<TokenId> label_tokens(const Tokenizer& tokenizer, std::string_view prompt,
                                  std::string_view label);

}  // namespace paceline
