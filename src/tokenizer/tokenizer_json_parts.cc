#include "tokenizer/tokenizer_json_parts.h"

namespace paceline {
namespace {

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

void write_vocabulary(const std::vector<std::string_view>& texts, JsonWriter& writer) {
  writer.key("vocab").begin_object();
  for (size_t id = 0; id < texts.size(); ++id) {
    if (!texts[id].empty()) writer.member(texts[id], id);
  }
  writer.end_object();
}

}  // namespace

void begin_tokenizer_json(JsonWriter& writer) {
  writer.begin_object().member("version", "1.0").key("truncation").null().key("padding").null();
}

void write_added_token(int64_t id, std::string_view text, bool is_special, JsonWriter& writer) {
  writer.begin_object().member("id", id).member("content", text);
  for (const std::string_view flag : {"single_word", "lstrip", "rstrip", "normalized"}) {
    writer.member(flag, false);
  }
  writer.member("special", is_special).end_object();
}

void write_frame(const FrameToken& before, const FrameToken& behind, JsonWriter& writer) {
  writer.begin_object().member("type", "TemplateProcessing").key("single").begin_array();
  write_piece("SpecialToken", before.text, 0, writer);
  write_piece("Sequence", "A", 0, writer);
  write_piece("SpecialToken", behind.text, 0, writer);
  writer.end_array().key("pair").begin_array();
  write_piece("Sequence", "A", 0, writer);
  write_piece("Sequence", "B", 1, writer);
  writer.end_array().key("special_tokens").begin_object();
  write_ids(before, writer);
  if (behind.id != before.id) write_ids(behind, writer);
  writer.end_object().end_object();
}

void write_byte_level_decoder(JsonWriter& writer) {
  writer.begin_object().member("type", "ByteLevel");
  writer.member("add_prefix_space", true).member("trim_offsets", true).member("use_regex", true);
  writer.end_object();
}

void begin_bpe_members(const BpeMembers& members, JsonWriter& writer) {
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
}

void begin_bpe_model(const BpeMembers& members, const std::vector<std::string_view>& texts,
                     JsonWriter& writer) {
  begin_bpe_members(members, writer);
  write_vocabulary(texts, writer);
}

}  // namespace paceline
