#include "tokenizer/tokenizer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/mapped_file.h"
#include "tokenizer/bpe_tokenizer.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_file.h"

namespace paceline {
namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 20;

}  // namespace

void Tokenizer::check_id(TokenId id) const {
  if (id >= 0 && id < vocab_size()) return;
  throw Error(ErrorCode::invalid, fmt::format("the token id {} is outside the vocabulary (0..{})",
                                              id, vocab_size() - 1));
}

std::unique_ptr<Tokenizer> Tokenizer::load(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "tokenizer.json";
  const std::filesystem::path config_file = directory / "tokenizer_config.json";
  TokenizerConfig config;
  if (std::filesystem::exists(config_file)) {
    config =
        read_tokenizer_config(read_text_file(config_file, kMaxFileBytes), config_file.string());
  }
  return std::make_unique<BpeTokenizer>(
      read_tokenizer_file(read_text_file(file, kMaxFileBytes), file.string()), config);
}

std::unique_ptr<Tokenizer> Tokenizer::from_json(std::string_view json, std::string_view where) {
  if (json.size() > kMaxFileBytes) {
    throw Error(ErrorCode::invalid, fmt::format("{}: {} bytes, at most {} are read", where,
                                                json.size(), kMaxFileBytes));
  }
  return std::make_unique<BpeTokenizer>(read_tokenizer_file(std::string(json), where),
                                        TokenizerConfig{});
}

}  // namespace paceline
