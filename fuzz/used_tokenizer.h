// Uses a tokenizer in every way and aborts where two ways disagree.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"
#include "paceline/tokenizer.h"

namespace paceline {

inline constexpr std::string_view kText =
    "It's 12345 caf\u0065\u0301 \u4F60\u597D,\n\n <s>  word<|im_end|> \xFF \u2581x\u0130";

inline void require(bool condition) {
  if (!condition) std::abort();
}

inline void use(const Tokenizer& tokenizer) {
  for (const bool flag : {false, true}) {
    const EncodeOptions options{.add_special = flag, .specials_as_text = flag};
    const Encoding encoding = tokenizer.encode_with_spans(kText, options);
    require(encoding.ids == tokenizer.encode(kText, options));
    require(encoding.spans.size() == encoding.ids.size());
    for (const TextSpan& span : encoding.spans) {
      require(span.begin <= span.end && span.end <= kText.size());
    }
    IncrementalDetokenizer detokenizer(tokenizer, {.skip_special = flag});
    std::string streamed;
    for (const TokenId id : encoding.ids) {
      require(id >= 0 && id < tokenizer.vocab_size());
      streamed += detokenizer.push(id);
      require(is_valid_utf8(streamed));
    }
    require(streamed + detokenizer.finish() ==
            tokenizer.decode(encoding.ids, {.skip_special = flag}));
  }
}

template <class Read>
void expect_error_at_most(Read read) {
  try {
    read();
  } catch (const Error&) {
  }
}

}  // namespace paceline
