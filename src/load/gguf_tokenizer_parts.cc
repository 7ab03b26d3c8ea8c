#include "load/gguf_tokenizer_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_set>

namespace paceline {
namespace {

// The token named "bos" or "eos", if the file puts it around texts.
FrameToken frame_token(const GgufMetadata& metadata, const GgufTokenTexts& tokens,
                       std::string_view name, bool otherwise) {
  const auto id = gguf_token_id(metadata, name);
  const std::string key = fmt::format("tokenizer.ggml.add_{}_token", name);
  if (!id || !metadata.boolean(key).value_or(otherwise)) return {};
  if (*id >= static_cast<int64_t>(tokens.size())) return {};
  return {tokens.text(static_cast<size_t>(*id)), *id};
}

}  // namespace

GgufTokenTexts::GgufTokenTexts(GgufTokens tokens) : tokens_(std::move(tokens)) {
  std::unordered_set<std::string_view> known;
  for (std::string_view& text : tokens_.texts) {
    if (!text.empty() && !known.insert(text).second) text = {};
  }
}

bool GgufTokenTexts::has_type(GgufTokenType type) const {
  return std::find(tokens_.types.begin(), tokens_.types.end(), type) != tokens_.types.end();
}

void write_added_tokens(const GgufTokenTexts& tokens, const std::vector<bool>& added,
                        JsonWriter& writer) {
  writer.key("added_tokens").begin_array();
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!added[id] || tokens.text(id).empty()) continue;
    write_added_token(static_cast<int64_t>(id), tokens.text(id), tokens.is_special(id), writer);
  }
  writer.end_array();
}

void write_gguf_frame(const GgufMetadata& metadata, const GgufTokenTexts& tokens,
                      BeginningToken otherwise, JsonWriter& writer) {
  write_frame(frame_token(metadata, tokens, "bos", otherwise == BeginningToken::yes),
              frame_token(metadata, tokens, "eos", false), writer);
}

}  // namespace paceline
