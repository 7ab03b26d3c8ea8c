// Makes the tokenizer.json of a tekken.json.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/base64.h"
#include "base/error.h"
#include "base/json_document.h"
#include "base/json_writer.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/made_tokenizer.h"
#include "tokenizer/named_token_list.h"
#include "tokenizer/piece_merges.h"
#include "tokenizer/tokenizer_json_parts.h"
#include "tokenizer/vocabulary.h"

namespace paceline {
namespace {

// Of files without special_tokens, up to version 7 (mistral_common's Tekkenizer).
constexpr std::array<std::string_view, 20> kFirstSpecialTokens = {"<unk>",
                                                                  "<s>",
                                                                  "</s>",
                                                                  "[INST]",
                                                                  "[/INST]",
                                                                  "[AVAILABLE_TOOLS]",
                                                                  "[/AVAILABLE_TOOLS]",
                                                                  "[TOOL_RESULTS]",
                                                                  "[/TOOL_RESULTS]",
                                                                  "[TOOL_CALLS]",
                                                                  "[IMG]",
                                                                  "<pad>",
                                                                  "[IMG_BREAK]",
                                                                  "[IMG_END]",
                                                                  "[PREFIX]",
                                                                  "[MIDDLE]",
                                                                  "[SUFFIX]",
                                                                  "[SYSTEM_PROMPT]",
                                                                  "[/SYSTEM_PROMPT]",
                                                                  "[TOOL_CONTENT]"};

// Special tokens have the first ids, then come the byte strings in order of their rank.
struct Tekken {
  std::string pattern;
  std::vector<std::string> special;
  std::vector<std::string> words;  // in the byte-level alphabet
};

int64_t integer_or(const DocumentCursor& object, std::string_view key, int64_t otherwise) {
  const auto field = object.find(key);
  return field ? field->integer(kTokenIdRange) : otherwise;
}

std::vector<std::string> read_special_tokens(const DocumentCursor& root) {
  const auto list = root.find("special_tokens");
  if (!list) return {kFirstSpecialTokens.begin(), kFirstSpecialTokens.end()};
  std::vector<std::string> texts(list->num_items());
  for (const DocumentCursor& item : list->items()) {
    const DocumentCursor rank = item.at("rank");
    const auto index =
        static_cast<size_t>(rank.integer({.min = 0, .max = static_cast<double>(texts.size()) - 1}));
    if (!texts[index].empty()) rank.fail("the rank occurs twice");
    texts[index] = item.at("token_str").string();
    if (texts[index].empty()) item.at("token_str").mismatch("some text");
  }
  return texts;
}

std::string read_word(const DocumentCursor& item, int64_t expected_rank) {
  const DocumentCursor rank = item.at("rank");
  if (rank.integer(kTokenIdRange) != expected_rank) {
    rank.fail(fmt::format("expected {}: ranks ascend without gaps", expected_rank));
  }
  const DocumentCursor field = item.at("token_bytes");
  const auto bytes = bytes_of_base64(field.string());
  if (!bytes || bytes->empty()) field.mismatch("base64 of at least one byte");
  return to_byte_level(*bytes);
}

Tekken read_tekken(std::string text, std::string_view where) {
  const JsonDocument document(std::move(text), where, ErrorCode::corrupt);
  const DocumentCursor root = document.root();
  const DocumentCursor config = root.at("config");
  Tekken tekken{.pattern = std::string(config.at("pattern").string()),
                .special = read_special_tokens(root),
                .words = {}};
  const int64_t num_special =
      integer_or(config, "default_num_special_tokens", std::ssize(tekken.special));
  if (num_special < std::ssize(tekken.special)) {
    config.at("default_num_special_tokens")
        .fail(fmt::format("expected at least the {} of special_tokens", tekken.special.size()));
  }
  for (int64_t i = std::ssize(tekken.special); i < num_special; ++i) {
    tekken.special.push_back(fmt::format("<SPECIAL_{}>", i));
  }
  const DocumentCursor vocab = root.at("vocab");
  const auto all = static_cast<int64_t>(vocab.num_items());
  const int64_t size = integer_or(config, "default_vocab_size", all + num_special);
  if (size < num_special || size - num_special > all) {
    config.at("default_vocab_size")
        .fail(fmt::format("expected {} to {}: there are {} special tokens and {} others",
                          num_special, num_special + all, num_special, all));
  }
  int64_t rank = 0;
  for (const DocumentCursor& item : vocab.items()) {
    if (rank == size - num_special) break;
    tekken.words.push_back(read_word(item, rank++));
  }
  return tekken;
}

void write_split(std::string_view pattern, JsonWriter& writer) {
  writer.key("normalizer").null().key("pre_tokenizer").begin_object().member("type", "Sequence");
  writer.key("pretokenizers").begin_array().begin_object().member("type", "Split");
  writer.key("pattern").begin_object().member("Regex", pattern).end_object();
  writer.member("behavior", "Isolated").member("invert", false).end_object();
  writer.begin_object().member("type", "ByteLevel").member("add_prefix_space", false);
  writer.member("trim_offsets", false).member("use_regex", false).end_object();
  writer.end_array().end_object();
}

}  // namespace

std::string tekken_json(std::string text, const TokenizerConfig& config, std::string_view where) {
  const Tekken tekken = read_tekken(std::move(text), where);
  const int64_t num_special = std::ssize(tekken.special);
  std::unordered_map<std::string_view, int64_t> special_ids;
  std::string json;
  JsonWriter writer(json);
  begin_tokenizer_json(writer);
  writer.key("added_tokens").begin_array();
  for (int64_t id = 0; id < num_special; ++id) {
    const std::string& special = tekken.special[static_cast<size_t>(id)];
    special_ids.emplace(special, id);
    write_added_token(id, special, true, writer);
  }
  const auto is_special = [&](std::string_view token) { return special_ids.contains(token); };
  write_named_tokens(
      config, [](std::string_view) { return std::nullopt; }, is_special,
      num_special + std::ssize(tekken.words), writer);
  writer.end_array();
  write_split(tekken.pattern, writer);
  const auto frame_token = [&](std::string_view name, bool is_added) -> FrameToken {
    const auto at = special_ids.find(name);
    return is_added && at != special_ids.end() ? FrameToken{at->first, at->second} : FrameToken{};
  };
  writer.key("post_processor");
  write_frame(frame_token("<s>", config.add_bos_token.value_or(true)),
              frame_token("</s>", config.add_eos_token.value_or(false)), writer);
  writer.key("decoder");
  write_byte_level_decoder(writer);
  std::vector<std::string_view> texts(static_cast<size_t>(num_special));
  std::vector<ScoredPiece> merging;
  for (const std::string& word : tekken.words) {
    texts.push_back(is_special(word) ? std::string_view() : word);
    merging.push_back({word, -static_cast<float>(merging.size())});
  }
  begin_bpe_model({.ignore_merges = true}, texts, writer);
  writer.key("merges").begin_array();
  for (const auto& [left, right] : merges_of_pieces(merging)) {
    writer.begin_array().string(left).string(right).end_array();
  }
  writer.end_array().end_object().end_object();
  return json;
}

}  // namespace paceline
