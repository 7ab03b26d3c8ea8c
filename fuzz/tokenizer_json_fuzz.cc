// Any bytes as a tokenizer.json, and as each of the files beside it: refused with an Error, or a
// tokenizer that encodes and decodes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/used_tokenizer.h"
#include "tokenizer/tokenizer_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
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
