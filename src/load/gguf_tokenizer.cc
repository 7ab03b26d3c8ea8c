#include "load/gguf_tokenizer.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "load/gguf_splits.h"
#include "load/gguf_tokenizer_parts.h"

namespace paceline {
namespace {

// Writes the default template, and those listed by name.
void write_chat_templates(const GgufMetadata& metadata, JsonWriter& writer) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  const auto plain = metadata.string(kKey);
  const auto names = metadata.strings("tokenizer.chat_templates");
  if (!names || names->empty()) {
    if (plain) writer.member("chat_template", *plain);
    return;
  }
  writer.key("chat_template").begin_array();
  const auto write = [&](std::string_view name, std::string_view source) {
    writer.begin_object().member("name", name).member("template", source).end_object();
  };
  if (plain) write("default", *plain);
  for (const std::string_view name : *names) {
    const auto source = metadata.string(fmt::format("{}.{}", kKey, name));
    if (source && !(plain && name == "default")) write(name, *source);
  }
  writer.end_array();
}

}  // namespace

std::string gguf_byte_level_json(const GgufMetadata& metadata) {
  const GgufTokenTexts tokens(read_gguf_tokens(metadata));
  const GgufSplit& split =
      find_gguf_split(metadata.string("tokenizer.ggml.pre").value_or(""), metadata.file());
  const auto merges = metadata.strings("tokenizer.ggml.merges");
  if (!merges) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tokenizer.ggml.merges is missing", metadata.file()));
  }
  std::vector<std::string_view> texts;
  std::vector<bool> added;
  for (size_t id = 0; id < tokens.size(); ++id) {
    texts.push_back(tokens.text(id));
    added.push_back(tokens.is_added(id));
  }
  std::string json;
  JsonWriter writer(json);
  begin_tokenizer_json(writer);
  write_added_tokens(tokens, added, writer);
  writer.key("normalizer");
  write_normalizer(split, writer);
  writer.key("pre_tokenizer");
  write_pre_tokenizer(split, writer);
  writer.key("post_processor");
  write_gguf_frame(metadata, tokens,
                   split.begins_with_bos ? BeginningToken::yes : BeginningToken::no, writer);
  writer.key("decoder");
  write_byte_level_decoder(writer);
  begin_bpe_model({.ignore_merges = split.ignore_merges}, texts, writer);
  writer.key("merges").begin_array();
  for (const std::string_view merge : *merges) writer.string(merge);
  writer.end_array().end_object().end_object();
  return json;
}

bool has_gguf_tokenizer(const GgufMetadata& metadata) {
  const auto model = metadata.string("tokenizer.ggml.model");
  return model && *model != "none" && *model != "no_vocab";
}

std::string gguf_tokenizer_json(const GgufMetadata& metadata) {
  const std::string_view model = metadata.string("tokenizer.ggml.model").value_or("none");
  if (model == "gpt2") return gguf_byte_level_json(metadata);
  if (model == "llama" || model == "gemma4") return gguf_sentence_piece_json(metadata);
  throw Error(
      ErrorCode::unsupported,
      fmt::format("{}: tokenizer.ggml.model: \"{}\" isn't supported; gpt2, llama and gemma4 are",
                  metadata.file(), model.substr(0, 64)));
}

std::string gguf_tokenizer_config_json(const GgufMetadata& metadata) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("tokenizer_class", "PreTrainedTokenizerFast");
  writer.member("clean_up_tokenization_spaces", false);
  const auto texts =
      metadata.strings("tokenizer.ggml.tokens").value_or(std::vector<std::string_view>());
  for (const auto& [theirs, ours] : {std::pair{"bos", "bos_token"},
                                     {"eos", "eos_token"},
                                     {"unknown", "unk_token"},
                                     {"padding", "pad_token"}}) {
    const auto id = gguf_token_id(metadata, theirs);
    if (id && *id < static_cast<int64_t>(texts.size())) {
      writer.member(ours, texts[static_cast<size_t>(*id)]);
    }
  }
  write_chat_templates(metadata, writer);
  writer.end_object();
  return json;
}

}  // namespace paceline
