// Makes the tokenizer.json of a vocab.txt: BERT's tokens, one a line.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/error.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "tokenizer/made_tokenizer.h"
#include "tokenizer/named_token_list.h"
#include "tokenizer/tokenizer_json_parts.h"
#include "tokenizer/vocabulary.h"

namespace paceline {
namespace {

constexpr std::string_view kInsideWord = "##";
constexpr int kMaxWordCharacters = 100;

void check_class(std::string_view name, std::string_view where) {
  if (name.ends_with("Fast")) name.remove_suffix(4);
  if (name.empty() || name == "BertTokenizer" || name == "DistilBertTokenizer") return;
  refuse_to_make(where, fmt::format("tokenizer_class {} without a tokenizer.json", name));
}

// The ids of lines as Python reads them: "\r\n" and "\r" end a line too. Of equal lines the last
// one counts.
std::map<std::string, int64_t, std::less<>> ids_of_lines(std::string_view text) {
  std::map<std::string, int64_t, std::less<>> ids;
  for (int64_t id = 0; !text.empty(); ++id) {
    const size_t end = std::min(text.find_first_of("\r\n"), text.size());
    ids.insert_or_assign(std::string(text.substr(0, end)), id);
    text.remove_prefix(end);
    text.remove_prefix(std::min(text.size(), size_t{text.starts_with("\r\n") ? 2u : 1u}));
  }
  return ids;
}

void write_bert_normalizer(const TokenizerConfig& config, JsonWriter& writer) {
  writer.key("normalizer").begin_object().member("type", "BertNormalizer");
  writer.member("clean_text", true);
  writer.member("handle_chinese_chars", config.tokenize_chinese_chars.value_or(true));
  writer.key("strip_accents");
  if (config.strip_accents) {
    writer.boolean(*config.strip_accents);
  } else {
    writer.null();
  }
  writer.member("lowercase", config.do_lower_case.value_or(true)).end_object();
}

}  // namespace

std::string vocab_txt_json(std::string_view text, const TokenizerConfig& config,
                           std::string_view where) {
  check_class(config.tokenizer_class, where);
  if (!is_valid_utf8(text)) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: isn't UTF-8, expected a token a line", where));
  }
  const auto ids = ids_of_lines(text);
  const auto id_of = [&](std::string_view token) -> std::optional<int64_t> {
    const auto found = ids.find(token);
    return found == ids.end() ? std::nullopt : std::optional(found->second);
  };
  const auto named = [&](std::string_view name, std::string_view usual) {
    for (const auto& [known, token] : config.special_tokens) {
      if (known == name) return std::string_view(token);
    }
    return usual;
  };
  const auto frame_token = [&](std::string_view token) -> FrameToken {
    const auto id = id_of(token);
    if (!id) {
      throw Error(ErrorCode::corrupt,
                  fmt::format("{}: the special token {} is missing, expected it on a line", where,
                              shown_text(token)));
    }
    return {token, *id};
  };
  std::string json;
  JsonWriter writer(json);
  begin_tokenizer_json(writer);
  int64_t next_id = 0;
  for (const auto& [token, id] : ids) next_id = std::max(next_id, id + 1);
  TokenizerConfig names = config;
  for (const auto& [name, usual] : {std::pair{"unk_token", "[UNK]"},
                                    {"sep_token", "[SEP]"},
                                    {"pad_token", "[PAD]"},
                                    {"cls_token", "[CLS]"},
                                    {"mask_token", "[MASK]"}}) {
    if (named(name, "").empty()) names.special_tokens.emplace_back(name, usual);
  }
  writer.key("added_tokens").begin_array();
  write_named_tokens(
      names, id_of, [](std::string_view) { return false; }, next_id, writer);
  writer.end_array();
  write_bert_normalizer(config, writer);
  writer.key("pre_tokenizer").begin_object().member("type", "BertPreTokenizer").end_object();
  const FrameToken cls = frame_token(named("cls_token", "[CLS]"));
  const FrameToken sep = frame_token(named("sep_token", "[SEP]"));
  writer.key("post_processor").begin_object().member("type", "BertProcessing");
  for (const auto& [key, token] : {std::pair{"sep", sep}, {"cls", cls}}) {
    writer.key(key).begin_array().string(token.text).integer(token.id).end_array();
  }
  writer.end_object();
  writer.key("decoder").begin_object().member("type", "WordPiece");
  writer.member("prefix", kInsideWord).member("cleanup", true).end_object();
  writer.key("model").begin_object().member("type", "WordPiece");
  writer.member("unk_token", named("unk_token", "[UNK]"));
  writer.member("continuing_subword_prefix", kInsideWord);
  writer.member("max_input_chars_per_word", kMaxWordCharacters);
  writer.key("vocab").begin_object();
  for (const auto& [token, id] : ids) writer.member(token, id);
  writer.end_object().end_object().end_object();
  return json;
}

}  // namespace paceline
