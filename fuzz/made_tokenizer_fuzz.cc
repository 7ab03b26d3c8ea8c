// Any bytes as the other files that tokenizers are published in: refused with an Error, or a
// tokenizer that encodes and decodes. The first byte says which file: 's' tokenizer.model, 't'
// tekken.json, 'v' vocab.json and, after a NUL, merges.txt, 'l' vocab.txt.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/used_tokenizer.h"
#include "tokenizer/made_tokenizer.h"

namespace {

std::string made_json(char kind, std::string_view bytes, const paceline::TokenizerConfig& config) {
  using namespace paceline;
  if (kind == 's') {
    return sentence_piece_json(parse_sentence_piece_file(bytes, "fuzz"), config, "fuzz");
  }
  if (kind == 'l') return vocab_txt_json(bytes, config, "fuzz");
  if (kind == 't') return tekken_json(std::string(bytes), config, "fuzz");
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  return vocab_and_merges_json(std::string(bytes.substr(0, end)),
                               bytes.substr(std::min(end + 1, bytes.size())), config, "fuzz");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const bool flag : {false, true}) {
    TokenizerConfig config;
    config.legacy = config.add_eos_token = flag;
    if (flag) config.special_tokens = {{"bos_token", "<s>"}, {"pad_token", "<new>"}};
    expect_error_at_most([&] {
      use(Tokenizer::from_json(made_json(static_cast<char>(*data), bytes, config), "fuzz"));
    });
  }
  return 0;
}
