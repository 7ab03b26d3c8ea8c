// Any bytes as a tokenizer.json: refused with an Error, or a tokenizer that encodes and decodes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"

namespace {

using namespace paceline;

constexpr std::string_view kText =
    "It's 12345 caf\u0065\u0301 \u4F60\u597D,\n\n <s>  word<|im_end|> \xFF";

void require(bool condition) {
  if (!condition) std::abort();
}

void use(const Tokenizer& tokenizer) {
  for (const bool flag : {false, true}) {
    const auto ids = tokenizer.encode(kText, {.add_special = flag, .specials_as_text = flag});
    IncrementalDetokenizer detokenizer(tokenizer, {.skip_special = flag});
    std::string streamed;
    for (const TokenId id : ids) {
      require(id >= 0 && id < tokenizer.vocab_size());
      streamed += detokenizer.push(id);
    }
    require(is_valid_utf8(streamed));
    require(streamed + detokenizer.finish() == tokenizer.decode(ids, {.skip_special = flag}));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  try {
    use(*Tokenizer::from_json(json, "fuzz"));
  } catch (const Error&) {
  }
  try {
    read_tokenizer_config(json, "fuzz");
  } catch (const Error&) {
  }
  return 0;
}
