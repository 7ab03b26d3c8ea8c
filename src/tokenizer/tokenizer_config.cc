#include "tokenizer/tokenizer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/json_field.h"

namespace paceline {
namespace {

constexpr size_t kMaxTokenizerConfigBytes = size_t{64} << 20;

// transformers writes "no limit" as 1000000000000000019884624838656, which JSON allows and parsers
// of 64-bit integers refuse: such a number becomes a floating-point one.
std::string with_long_integers_as_floats(std::string_view json) {
  constexpr size_t kMaxDigits = 18;  // always fit
  std::string out;
  out.reserve(json.size() + 8);
  bool in_string = false;
  size_t digits = 0;  // of the number being read, as long as it is an integer
  bool integer = true;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    const bool number = !in_string && ((c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' ||
                                       c == '+' || c == '-');
    if (number) {
      integer = integer && (c == '-' || (c >= '0' && c <= '9'));
      ++digits;
    } else {
      if (integer && digits > kMaxDigits) out += "e0";
      digits = 0;
      integer = true;
    }
    out.push_back(c);
    if (in_string && c == '\\' && i + 1 < json.size()) {
      out.push_back(json[++i]);
    } else if (c == '"') {
      in_string = !in_string;
    }
  }
  return out;
}

Json parse(std::string_view json, std::string_view where) {
  try {
    return parse_json(with_long_integers_as_floats(json), where);
  } catch (const Error& error) {
    throw Error(ErrorCode::corrupt, error.what());
  }
}

constexpr std::array<std::string_view, 7> kStandardNames = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

// A token is written as a string or as an AddedToken with its content.
std::string text_of(const JsonField& field) {
  return field.is_string() ? field.string() : field.member("content").string();
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

// bos_token and its like, and whatever else ends in _token and is a token.
void read_names(const JsonField& root, TokenizerConfig& config) {
  for (const auto& [name, field] : root.members()) {
    if (field.is_null()) continue;
    const bool is_token = field.is_string() || field.is_object();
    const bool is_named = name.ends_with("_token") && is_token;
    if (is_standard(name) || is_named) set(config, name, text_of(field));
    if (name != "extra_special_tokens" || !field.is_object()) continue;
    for (const auto& [extra, text] : field.members()) set(config, extra, text_of(text));
  }
}

int64_t id_of(std::string_view digits, const JsonField& field) {
  int64_t id = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!whole || id < 0 || id >= kMaxTokenIds) field.corrupt("expected a token id");
  return id;
}

AddedToken added_token_of(const JsonField& field, int64_t id) {
  AddedToken token{.id = static_cast<TokenId>(id)};
  token.content = field.member("content").string();
  token.special = field.boolean_or("special", false);
  token.normalized = field.boolean_or("normalized", !token.special);
  token.lstrip = field.boolean_or("lstrip", false);
  token.rstrip = field.boolean_or("rstrip", false);
  token.single_word = field.boolean_or("single_word", false);
  return token;
}

}  // namespace

void read_tokenizer_config_file(std::string_view json, std::string_view where,
                                TokenizerConfig& config) {
  const Json tree = parse(json, where);
  const JsonField root(tree, where);
  read_names(root, config);
  const auto added = root.find("added_tokens_decoder");
  if (!added) return;
  for (const auto& [id, field] : added->members()) {
    config.added_tokens.push_back(added_token_of(field, id_of(id, field)));
  }
}

void read_special_tokens_map(std::string_view json, std::string_view where,
                             TokenizerConfig& config) {
  const Json tree = parse(json, where);
  read_names(JsonField(tree, where), config);
}

void read_added_tokens_file(std::string_view json, std::string_view where,
                            TokenizerConfig& config) {
  const Json tree = parse(json, where);
  for (const auto& [text, field] : JsonField(tree, where).members()) {
    const int64_t id = field.integer();
    if (id < 0 || id >= kMaxTokenIds) field.corrupt(fmt::format("{} is no token id", id));
    const bool special =
        std::any_of(config.special_tokens.begin(), config.special_tokens.end(),
                    [&, &text = text](const auto& token) { return token.second == text; });
    config.added_tokens.push_back({.id = static_cast<TokenId>(id),
                                   .content = text,
                                   .special = special,
                                   .normalized = !special});
  }
}

void read_generation_eos(std::string_view json, std::string_view where, TokenizerConfig& config) {
  const Json tree = parse(json, where);
  const auto field = JsonField(tree, where).find("eos_token_id");
  if (!field) return;
  const auto add = [&](const JsonField& id) {
    if (id.integer() < 0) id.corrupt(fmt::format("{} is no token id", id.integer()));
    config.eos_ids.push_back(id.integer());
  };
  if (!field->is_array()) return add(*field);
  for (size_t i = 0; i < field->num_items(); ++i) add(field->item(i));
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
  sort_names(config);
  return config;
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
  // A file may have holes, but not a table of holes.
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
