#include "paceline/tokenizer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/model_files.h"
#include "tokenizer/made_tokenizer.h"
#include "tokenizer/tokenizer_state.h"

namespace paceline {
namespace {

constexpr size_t kMaxTokenizerBytes = size_t{256} << 20;

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::filesystem::path& directory) {
  return load(ModelFiles(directory));
}

Tokenizer Tokenizer::load(const ModelFiles& given) {
  constexpr std::string_view kName = "tokenizer.json";
  const ModelFiles files = with_tokenizer_json(given);
  const std::string where = files.where(kName);
  const TokenizerConfig config = read_tokenizer_config(files);
  TokenizerFile content =
      read_tokenizer_file(files.read(kName, kMaxTokenizerBytes), where, prefix_space_of(config));
  if (config.lowers_case) content.normalizer = with_lower_case(std::move(content.normalizer));
  add_missing_tokens(config, content);
  return Tokenizer(std::make_unique<State>(std::move(content), config, where));
}

Tokenizer Tokenizer::from_json(std::string_view json, std::string_view where) {
  if (json.size() > kMaxTokenizerBytes) {
    throw Error(ErrorCode::invalid, fmt::format("{}: {} bytes, at most {} are read", where,
                                                json.size(), kMaxTokenizerBytes));
  }
  return Tokenizer(std::make_unique<State>(read_tokenizer_file(std::string(json), where),
                                           TokenizerConfig{}, where));
}

int64_t Tokenizer::vocab_size() const { return state_->bpe.vocab_size(); }

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  return state_->bpe.encode(text, options);
}

Encoding Tokenizer::encode_with_spans(std::string_view text, EncodeOptions options) const {
  return state_->bpe.encode_with_spans(text, options);
}

PairEncoding Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                    EncodeOptions options, std::optional<PairLimit> limit) const {
  return state_->bpe.encode_pair(first, second, options, limit);
}

std::vector<size_t> Tokenizer::special_offsets(std::string_view text) const {
  return state_->bpe.added_tokens().special_offsets(text);
}

std::string Tokenizer::decode(std::span<const TokenId> ids, DecodeOptions options) const {
  return state_->bpe.decode(ids, options);
}

std::string_view Tokenizer::token_bytes(TokenId id) const { return state_->bpe.token_bytes(id); }
std::string_view Tokenizer::token_text(TokenId id) const { return state_->bpe.token_text(id); }
std::optional<TokenId> Tokenizer::token_id(std::string_view token_text) const {
  return state_->bpe.token_id(token_text);
}
bool Tokenizer::is_special(TokenId id) const { return state_->bpe.is_special(id); }
void Tokenizer::check_id(TokenId id) const { state_->bpe.check_id(id); }

std::optional<TokenId> Tokenizer::bos_token() const { return state_->named.bos; }
std::optional<TokenId> Tokenizer::pad_token() const { return state_->named.pad; }
const std::vector<TokenId>& Tokenizer::stop_tokens() const { return state_->named.stops; }
const std::vector<std::pair<std::string, std::string>>& Tokenizer::special_tokens() const {
  return state_->named.special;
}

}  // namespace paceline
