// Trims the white space at the ends of token spans.
#pragma once

#include <string_view>

#include "paceline/tokenizer.h"

namespace paceline {

struct TrimmedToken {
  std::string_view text;  // as the vocabulary writes it
  bool first = false;     // of the text
};

// Must agree with `process_offsets` of HF's pre_tokenizers/byte_level.rs: a span of `input` loses
// as many characters as the token has white space. `add_prefix_space`: the tokenizer put one space
// before the text.
TextSpan trim_span(TextSpan span, std::string_view input, TrimmedToken token,
                   bool add_prefix_space);

}  // namespace paceline
