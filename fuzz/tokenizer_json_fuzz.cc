// Any bytes as a tokenizer.json, and as each of the files beside it: refused with an Error, or a
// tokenizer that encodes and decodes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"
#include "paceline/tokenizer.h"
#include "tokenizer/tokenizer_config.h"

namespace {

using namespace paceline;

constexpr std::string_view kText =
    "It's 12345 caf\u0065\u0301 \u4F60\u597D,\n\n <s>  word<|im_end|> \xFF \u2581x\u0130";

void require(bool condition) {
  if (!condition) std::abort();
}

void use(const Tokenizer& tokenizer) {
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  expect_error_at_most([&] { use(Tokenizer::from_json(json, "fuzz")); });
  TokenizerConfig config;
  for (const auto read : {read_tokenizer_config_file, read_special_tokens_map,
                          read_added_tokens_file, read_generation_eos}) {
    expect_error_at_most([&] { read(json, "fuzz", config); });
  }
  TokenizerFile file;
  add_missing_tokens(config, file);
  return 0;
}
