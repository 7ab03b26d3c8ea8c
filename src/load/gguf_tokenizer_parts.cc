#include "load/gguf_tokenizer_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_set>

namespace paceline {
namespace {

void write_vocabulary(const std::vector<std::string_view>& texts, JsonWriter& writer) {
  writer.key("vocab").begin_object();
  for (size_t id = 0; id < texts.size(); ++id) {
    if (!texts[id].empty()) writer.member(texts[id], id);
  }
  writer.end_object();
}

struct FrameToken {
  std::string_view text = {};  // empty: none
  int64_t id = -1;
};

// The token named "bos" or "eos", if the file puts it around texts.
FrameToken frame_token(const GgufMetadata& metadata, const GgufTokenTexts& tokens,
                       std::string_view name, bool otherwise) {
  const auto id = gguf_token_id(metadata, name);
  const std::string key = fmt::format("tokenizer.ggml.add_{}_token", name);
  if (!id || !metadata.boolean(key).value_or(otherwise)) return {};
  if (*id >= static_cast<int64_t>(tokens.size())) return {};
  return {tokens.text(static_cast<size_t>(*id)), *id};
}

// Writes one item of a template: a text ("Sequence") or a token ("SpecialToken"); nothing when `id`
// is empty.
void write_piece(std::string_view kind, std::string_view id, int64_t type_id, JsonWriter& writer) {
  if (id.empty()) return;
  writer.begin_object().key(kind).begin_object().member("id", id);
  writer.member("type_id", type_id).end_object().end_object();
}

void write_ids(const FrameToken& token, JsonWriter& writer) {
  if (token.text.empty()) return;
  writer.key(token.text).begin_object().member("id", token.text);
  writer.key("ids").begin_array().integer(token.id).end_array();
  writer.key("tokens").begin_array().string(token.text).end_array().end_object();
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
    writer.begin_object().member("id", id).member("content", tokens.text(id));
    for (const std::string_view flag : {"single_word", "lstrip", "rstrip", "normalized"}) {
      writer.member(flag, false);
    }
    writer.member("special", tokens.is_special(id)).end_object();
  }
  writer.end_array();
}

void write_frame(const GgufMetadata& metadata, const GgufTokenTexts& tokens,
                 BeginningToken otherwise, JsonWriter& writer) {
  const FrameToken bos = frame_token(metadata, tokens, "bos", otherwise == BeginningToken::yes);
  const FrameToken eos = frame_token(metadata, tokens, "eos", false);
  writer.begin_object().member("type", "TemplateProcessing").key("single").begin_array();
  write_piece("SpecialToken", bos.text, 0, writer);
  write_piece("Sequence", "A", 0, writer);
  write_piece("SpecialToken", eos.text, 0, writer);
  writer.end_array().key("pair").begin_array();
  write_piece("Sequence", "A", 0, writer);
  write_piece("Sequence", "B", 1, writer);
  writer.end_array().key("special_tokens").begin_object();
  write_ids(bos, writer);
  if (eos.id != bos.id) write_ids(eos, writer);
  writer.end_object().end_object();
}

void begin_bpe_model(const BpeMembers& members, const std::vector<std::string_view>& texts,
                     JsonWriter& writer) {
  writer.key("model").begin_object().member("type", "BPE").key("dropout").null();
  writer.key("unk_token");
  if (members.unknown.empty()) {
    writer.null();
  } else {
    writer.string(members.unknown);
  }
  writer.key("continuing_subword_prefix").null().key("end_of_word_suffix").null();
  writer.member("fuse_unk", !members.unknown.empty());
  writer.member("byte_fallback", members.byte_fallback);
  writer.member("ignore_merges", members.ignore_merges);
  write_vocabulary(texts, writer);
}

void begin_tokenizer_json(JsonWriter& writer) {
  writer.begin_object().member("version", "1.0").key("truncation").null().key("padding").null();
}

}  // namespace paceline
