#include "load/gguf_tokens.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"

namespace paceline {
namespace {

constexpr size_t kMaxTokens = size_t{1} << 24;

void check_texts(const GgufMetadata& metadata, const GgufTokens& tokens) {
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (is_valid_utf8(tokens.texts[id])) continue;
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tokenizer.ggml.tokens[{}]: not valid UTF-8", metadata.file(), id));
  }
}

void read_types(const GgufMetadata& metadata, GgufTokens& tokens) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  tokens.types.assign(tokens.size(), GgufTokenType::normal);
  const auto types = metadata.integers(kKey);
  if (!types) return;
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: {}: {}", metadata.file(), kKey, what));
  };
  if (types->size() != tokens.size()) {
    fail(fmt::format("{} entries for {} tokens", types->size(), tokens.size()));
  }
  for (size_t id = 0; id < types->size(); ++id) {
    const int64_t type = (*types)[id];
    if (type < 1 || type > 6) fail(fmt::format("[{}] is {}, expected 1 to 6", id, type));
    tokens.types[id] = static_cast<GgufTokenType>(type);
  }
}

}  // namespace

GgufTokens read_gguf_tokens(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "tokenizer.ggml.tokens";
  auto texts = metadata.strings(kKey);
  if (!texts) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: {} is missing", metadata.file(), kKey));
  }
  if (texts->size() > kMaxTokens) {
    throw Error(ErrorCode::exhausted,
                fmt::format("{}: {}: {} tokens, at most {} are read", metadata.file(), kKey,
                            texts->size(), kMaxTokens));
  }
  GgufTokens tokens{.texts = std::move(*texts), .types = {}};
  check_texts(metadata, tokens);
  read_types(metadata, tokens);
  for (const std::string_view name : {"bos", "eos", "eot", "eom", "padding"}) {
    const auto id = gguf_token_id(metadata, name);
    if (!id || *id >= static_cast<int64_t>(tokens.size())) continue;
    GgufTokenType& type = tokens.types[static_cast<size_t>(*id)];
    if (type == GgufTokenType::normal) type = GgufTokenType::control;
  }
  return tokens;
}

std::optional<int64_t> gguf_token_id(const GgufMetadata& metadata, std::string_view name) {
  constexpr int64_t kNoToken = UINT32_MAX;
  const auto id = metadata.integer(fmt::format("tokenizer.ggml.{}_token_id", name));
  if (!id || *id < 0 || *id == kNoToken) return std::nullopt;
  return id;
}

}  // namespace paceline
