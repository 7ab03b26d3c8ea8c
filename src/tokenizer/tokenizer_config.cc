#include "tokenizer/tokenizer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "base/json_document.h"

namespace paceline {
namespace {

constexpr size_t kMaxTokenizerConfigBytes = size_t{64} << 20;

// Of sentence-transformers; the first one that exists is read, and all but the first are of older
// models.
constexpr const char* kSentenceConfigs[] = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json"};

constexpr std::array<std::string_view, 7> kStandardNames = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

// A token is written as a string or as an AddedToken with its content.
std::string text_of(const DocumentCursor& field) {
  return std::string(field.is_string() ? field.string() : field.at("content").string());
}

void set(TokenizerConfig& config, std::string_view name, std::string text) {
  const auto is_it = [&](const auto& token) { return token.first == name; };
  auto& tokens = config.special_tokens;
  const auto known = std::find_if(tokens.begin(), tokens.end(), is_it);
  if (known == tokens.end()) {
    tokens.emplace_back(name, std::move(text));
  } else {
    known->second = std::move(text);
  }
}

// The standard names come first, in their order.
void sort_names(TokenizerConfig& config) {
  const auto place = [](const auto& token) {
    return std::find(kStandardNames.begin(), kStandardNames.end(), token.first);
  };
  std::stable_sort(config.special_tokens.begin(), config.special_tokens.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

bool is_standard(std::string_view name) {
  return std::find(kStandardNames.begin(), kStandardNames.end(), name) != kStandardNames.end();
}

// Reads bos_token and the like, and any other member whose name ends in _token and that is a token.
void read_names(const DocumentCursor& root, TokenizerConfig& config) {
  for (const auto& [name, value] : root.members()) {
    const DocumentCursor field = root.below(name, value);
    if (field.is_null()) continue;
    const bool is_token = field.is_string() || field.is_object();
    const bool is_named = name.ends_with("_token") && is_token;
    if (is_standard(name) || is_named) set(config, name, text_of(field));
    const bool is_list = name == "additional_special_tokens" || name == "extra_special_tokens";
    if (is_list && field.is_array()) {
      for (const DocumentCursor& item : field.items()) {
        config.more_special_tokens.push_back(text_of(item));
      }
    }
    if (name != "extra_special_tokens" || !field.is_object()) continue;
    for (const auto& [extra, text] : field.members()) {
      set(config, extra, text_of(field.below(extra, text)));
    }
  }
}

TokenId id_of(std::string_view digits, const DocumentCursor& field) {
  TokenId id = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!whole || id < 0 || id >= kMaxTokenIds) field.fail("expected a token id");
  return id;
}

}  // namespace

void read_tokenizer_config_file(std::string_view json, std::string_view where,
                                TokenizerConfig& config) {
  const JsonDocument document(std::string(json), where, ErrorCode::corrupt);
  const DocumentCursor root = document.root();
  read_names(root, config);
  const auto read_flag = [&root](std::string_view name, std::optional<bool>& flag) {
    if (const auto field = root.find(name)) flag = field->boolean();
  };
  if (const auto field = root.find("tokenizer_class")) config.tokenizer_class = field->string();
  read_flag("add_prefix_space", config.add_prefix_space);
  read_flag("add_bos_token", config.add_bos_token);
  read_flag("add_eos_token", config.add_eos_token);
  read_flag("legacy", config.legacy);
  read_flag("do_lower_case", config.do_lower_case);
  read_flag("tokenize_chinese_chars", config.tokenize_chinese_chars);
  read_flag("strip_accents", config.strip_accents);
  const auto added = root.find("added_tokens_decoder");
  if (!added) return;
  for (const auto& [id, value] : added->members()) {
    const DocumentCursor field = added->entry(id, value);
    config.added_tokens.push_back(read_added_token(field, id_of(id, field)));
  }
}

void read_special_tokens_map(std::string_view json, std::string_view where,
                             TokenizerConfig& config) {
  const JsonDocument document(std::string(json), where, ErrorCode::corrupt);
  read_names(document.root(), config);
}

void read_added_tokens_file(std::string_view json, std::string_view where,
                            TokenizerConfig& config) {
  const JsonDocument document(std::string(json), where, ErrorCode::corrupt);
  const DocumentCursor root = document.root();
  for (const auto& [text, value] : root.members()) {
    const bool special =
        std::any_of(config.special_tokens.begin(), config.special_tokens.end(),
                    [&, &text = text](const auto& token) { return token.second == text; });
    config.added_tokens.push_back(
        {.id = static_cast<TokenId>(root.entry(text, value).integer(kTokenIdRange)),
         .content = std::string(text),
         .special = special,
         .normalized = !special});
  }
}

void read_generation_eos(std::string_view json, std::string_view where, TokenizerConfig& config) {
  const JsonDocument document(std::string(json), where, ErrorCode::corrupt);
  const auto field = document.root().find("eos_token_id");
  if (!field) return;
  // What is wrong in it is for the reader of the whole file to say.
  const auto add = [&](const DocumentCursor& id) {
    const auto value = id.node().integer();
    if (value && *value >= 0) config.eos_ids.push_back(*value);
  };
  if (!field->is_array()) return add(*field);
  for (const DocumentCursor& id : field->items()) add(id);
}

// What is wrong in other fields is for the reader of the whole file to say.
void read_sentence_case(std::string_view json, std::string_view where, TokenizerConfig& config) {
  const JsonDocument document(std::string(json), where, ErrorCode::corrupt);
  config.lowers_case = document.root().boolean_or("do_lower_case", false);
}

TokenizerConfig read_tokenizer_config(const ModelFiles& files) {
  TokenizerConfig config;
  const auto read = [&](const char* name, auto read_file) {
    if (!files.contains(name)) return;
    read_file(files.read(name, kMaxTokenizerConfigBytes), files.where(name), config);
  };
  read("tokenizer_config.json", read_tokenizer_config_file);
  if (config.added_tokens.empty()) {
    read("special_tokens_map.json", read_special_tokens_map);
    read("added_tokens.json", read_added_tokens_file);
  }
  read("generation_config.json", read_generation_eos);
  const auto* const sentence =
      std::find_if(std::begin(kSentenceConfigs), std::end(kSentenceConfigs),
                   [&files](const char* name) { return files.contains(name); });
  if (files.contains("modules.json") && sentence != std::end(kSentenceConfigs)) {
    read(*sentence, read_sentence_case);
  }
  sort_names(config);
  return config;
}

std::optional<bool> prefix_space_of(const TokenizerConfig& config) {
  const std::string& name = config.tokenizer_class;
  if (name == "PreTrainedTokenizerFast" || name == "TokenizersBackend") return std::nullopt;
  if (name == "GPT2Tokenizer" || name == "GPT2TokenizerFast") {
    return config.add_prefix_space.value_or(false);
  }
  return config.add_prefix_space;
}

void add_missing_tokens(const TokenizerConfig& config, TokenizerFile& file) {
  std::unordered_map<std::string, size_t> by_content;
  std::unordered_set<TokenId> taken;
  auto next = static_cast<TokenId>(file.vocabulary.id_limit());
  for (size_t i = 0; i < file.added_tokens.size(); ++i) {
    by_content.emplace(file.added_tokens[i].content, i);
    taken.insert(file.added_tokens[i].id);
    next = std::max(next, file.added_tokens[i].id + 1);
  }
  // A file may have some unused ids, but not mostly unused ones.
  const int64_t limit = int64_t{next} + static_cast<int64_t>(config.added_tokens.size()) + 65536;
  for (AddedToken token : config.added_tokens) {
    if (token.content.empty()) continue;
    if (const auto known = by_content.find(token.content); known != by_content.end()) {
      token.id = file.added_tokens[known->second].id;
      file.added_tokens[known->second] = std::move(token);
      continue;
    }
    if (const auto id = file.vocabulary.find(token.content)) {
      token.id = *id;
    } else if (token.id >= limit || taken.contains(token.id) ||
               file.vocabulary.contains(token.id)) {
      token.id = next;
    }
    next = std::max(next, token.id + 1);
    taken.insert(token.id);
    by_content.emplace(token.content, file.added_tokens.size());
    file.added_tokens.push_back(std::move(token));
  }
}

}  // namespace paceline
