// Makes the tokenizer.json of a vocab.json and a merges.txt.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/json_document.h"
#include "base/json_writer.h"
#include "tokenizer/made_tokenizer.h"
#include "tokenizer/named_token_list.h"
#include "tokenizer/tokenizer_json_parts.h"
#include "tokenizer/vocabulary.h"

namespace paceline {
namespace {

// Of transformers' Qwen2Tokenizer.
constexpr std::string_view kQwen2Split =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";

enum class Class { gpt2, qwen2 };

Class class_of(std::string_view name, std::string_view where) {
  if (name.ends_with("Fast")) name.remove_suffix(4);
  if (name.empty() || name == "GPT2Tokenizer") return Class::gpt2;
  if (name == "Qwen2Tokenizer") return Class::qwen2;
  refuse_to_make(where, fmt::format("tokenizer_class {} without a tokenizer.json", name));
}

void write_steps(Class kind, bool add_prefix_space, JsonWriter& writer) {
  const bool is_qwen = kind == Class::qwen2;
  writer.key("normalizer");
  if (is_qwen) {
    writer.begin_object().member("type", "NFC").end_object();
  } else {
    writer.null();
  }
  writer.key("pre_tokenizer").begin_object().member("type", "Sequence");
  writer.key("pretokenizers").begin_array();
  if (is_qwen) {
    writer.begin_object().member("type", "Split").key("pattern").begin_object();
    writer.member("Regex", kQwen2Split).end_object().member("behavior", "Isolated");
    writer.member("invert", false).end_object();
  }
  writer.begin_object().member("type", "ByteLevel").member("add_prefix_space", add_prefix_space);
  writer.member("trim_offsets", false).member("use_regex", !is_qwen).end_object();
  writer.end_array().end_object();
}

// Lines of two tokens; the first may be "#version: 0.2".
void write_merges(std::string_view text, JsonWriter& writer) {
  writer.key("merges").begin_array();
  for (bool is_first = true; !text.empty(); is_first = false) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool is_version = is_first && line.starts_with("#version");
    if (!line.empty() && !is_version) writer.string(line);
  }
  writer.end_array();
}

}  // namespace

std::string vocab_and_merges_json(std::string vocab, std::string_view merges,
                                  const TokenizerConfig& config, std::string_view where) {
  const Class kind = class_of(config.tokenizer_class, where);
  const JsonDocument document(std::move(vocab), where, ErrorCode::corrupt);
  const DocumentCursor root = document.root();
  std::string json;
  JsonWriter writer(json);
  begin_tokenizer_json(writer);
  int64_t next_id = 0;
  for (const auto& [text, value] : root.members()) {
    next_id = std::max(next_id, root.entry(text, value).integer(kTokenIdRange) + 1);
  }
  const auto id_of = [&](std::string_view text) -> std::optional<int64_t> {
    const auto field = root.find(text);
    return field ? std::optional(field->integer(kTokenIdRange)) : std::nullopt;
  };
  writer.key("added_tokens").begin_array();
  write_named_tokens(
      config, id_of, [](std::string_view) { return false; }, next_id, writer);
  writer.end_array();
  write_steps(kind, config.add_prefix_space.value_or(false), writer);
  writer.key("post_processor");
  const auto frame_token = [&](std::string_view name, bool is_added) -> FrameToken {
    if (!is_added) return {};
    for (const auto& [known, text] : config.special_tokens) {
      const auto id = known == name ? id_of(text) : std::nullopt;
      if (id) return {text, *id};
    }
    return {};
  };
  write_frame(frame_token("bos_token", config.add_bos_token.value_or(false)),
              frame_token("eos_token", config.add_eos_token.value_or(false)), writer);
  writer.key("decoder");
  write_byte_level_decoder(writer);
  begin_bpe_members({}, writer);
  writer.key("vocab").begin_object();
  for (const auto& [text, value] : root.members()) writer.member(text, *value.integer());
  writer.end_object();
  write_merges(merges, writer);
  writer.end_object().end_object();
  return json;
}

}  // namespace paceline
