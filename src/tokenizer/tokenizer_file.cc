#include "tokenizer/tokenizer_file.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/json.h"

namespace paceline {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;
using Members = std::map<std::string_view, element>;

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxAddedTokenBytes = 4096;
// How far ids may reach beyond the number of tokens: a file with holes is read, but not a table of
// holes.
constexpr int64_t kMaxHoles = 65536;

// Where in the file; a name is put together only when an error needs it.
struct Place {
  std::string_view file;

  template <class... T>
  [[noreturn]] void corrupt(fmt::format_string<T...> format, T&&... values) const {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: {}", file, fmt::format(format, std::forward<T>(values)...)));
  }
  [[noreturn]] void unsupported(std::string_view what) const {
    throw Error(ErrorCode::unsupported, fmt::format("{}: {} isn't supported", file, what));
  }
};

std::string_view kind_of(element value) {
  switch (value.type()) {
    case element_type::ARRAY:
      return "an array";
    case element_type::OBJECT:
      return "an object";
    case element_type::STRING:
      return "a string";
    case element_type::BOOL:
      return "a boolean";
    case element_type::NULL_VALUE:
      return "null";
    default:
      return "a number";
  }
}

simdjson::dom::object object_of(element value, std::string_view name, Place place) {
  if (!value.is_object()) place.corrupt("{}: expected an object, found {}", name, kind_of(value));
  return simdjson::dom::object(value);
}

simdjson::dom::array array_of(element value, std::string_view name, Place place) {
  if (!value.is_array()) place.corrupt("{}: expected an array, found {}", name, kind_of(value));
  return simdjson::dom::array(value);
}

Members members_of(element value, std::string_view name, Place place) {
  Members members;
  for (const auto field : object_of(value, name, place)) {
    if (!members.emplace(field.key, field.value).second) {
      place.corrupt("{}: the key {} stands twice", name, in_quotes(field.key));
    }
  }
  return members;
}

// A small part of the file as a tree of its own.
Json tree_of(const Members& members, std::string_view key, Place place) {
  const auto found = members.find(key);
  if (found == members.end()) return Json();
  try {
    return parse_json(simdjson::minify(found->second), fmt::format("{}: {}", place.file, key));
  } catch (const Error& error) {
    throw Error(ErrorCode::corrupt, error.what());
  }
}

// An option that is absent or null has its default.
template <class T>
T option(const Members& model, std::string_view key, T otherwise, Place place) {
  const auto found = model.find(key);
  if (found == model.end() || found->second.is_null()) return otherwise;
  T value{};
  if (found->second.get(value) != simdjson::SUCCESS) {
    place.corrupt("model.{}: {} is no value for it", key, kind_of(found->second));
  }
  return value;
}

BpeOptions read_options(const Members& model, Place place) {
  if (option<double>(model, "dropout", 0, place) != 0) place.unsupported("model.dropout");
  const auto text = [&](std::string_view key) {
    return std::string(option<std::string_view>(model, key, {}, place));
  };
  BpeOptions options{.ignore_merges = option(model, "ignore_merges", false, place),
                     .byte_fallback = option(model, "byte_fallback", false, place),
                     .fuse_unk = option(model, "fuse_unk", false, place),
                     .continuing_subword_prefix = text("continuing_subword_prefix"),
                     .end_of_word_suffix = text("end_of_word_suffix")};
  if (const std::string unk = text("unk_token"); !unk.empty()) options.unk_token = unk;
  return options;
}

Vocabulary read_vocabulary(const Members& model, Place place) {
  const auto found = model.find("vocab");
  if (found == model.end()) place.corrupt("model.vocab is missing");
  const simdjson::dom::object entries = object_of(found->second, "model.vocab", place);
  const auto num_entries = static_cast<size_t>(std::distance(entries.begin(), entries.end()));
  const int64_t limit = std::min(kMaxTokenIds, static_cast<int64_t>(num_entries) * 4 + kMaxHoles);
  Vocabulary vocabulary(num_entries);
  for (const auto entry : entries) {
    const auto fail = [&](std::string_view what) {
      place.corrupt("model.vocab[{}]: {}", in_quotes(entry.key), what);
    };
    int64_t id = 0;
    if (entry.value.get(id) != simdjson::SUCCESS) {
      fail(fmt::format("expected an id, found {}", kind_of(entry.value)));
    }
    if (id < 0 || id >= limit) {
      fail(fmt::format("the id {} is outside 0..{} ({} tokens)", id, limit - 1, num_entries));
    }
    switch (vocabulary.insert(entry.key, static_cast<TokenId>(id))) {
      case Vocabulary::Inserted::yes:
        break;
      case Vocabulary::Inserted::text_is_taken:
        fail("the token stands twice");
        break;
      case Vocabulary::Inserted::id_is_taken:
        fail(fmt::format("the id {} is that of {} already", id,
                         in_quotes(vocabulary.text(static_cast<TokenId>(id)))));
    }
  }
  vocabulary.shrink_to_fit();
  return vocabulary;
}

struct Pair {
  std::string_view left;
  std::string_view right;
};

// A merge in either spelling: "a b" or ["a", "b"]; nothing if it is neither.
std::optional<Pair> pair_of(element value) {
  Pair pair;
  std::string_view line;
  if (value.get(line) == simdjson::SUCCESS) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
      return std::nullopt;
    }
    return Pair{line.substr(0, space), line.substr(space + 1)};
  }
  simdjson::dom::array both;
  if (value.get(both) != simdjson::SUCCESS || both.size() != 2 ||
      both.at(0).get(pair.left) != simdjson::SUCCESS ||
      both.at(1).get(pair.right) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  return pair;
}

// Line 0 of the lists that began as a merges.txt.
bool is_version_line(element value) {
  std::string_view line;
  return value.get(line) == simdjson::SUCCESS && line.starts_with("#version");
}

void read_merges(const Members& model, Place place, TokenizerFile& file) {
  const Vocabulary& vocabulary = file.vocabulary;
  // The right token loses it when it is merged.
  const size_t prefix_size = file.options.continuing_subword_prefix.size();
  const auto found = model.find("merges");
  if (found == model.end()) place.corrupt("model.merges is missing");
  const simdjson::dom::array lines = array_of(found->second, "model.merges", place);
  const auto num_lines = static_cast<size_t>(std::distance(lines.begin(), lines.end()));
  MergeTable merges(num_lines);
  MergeBorders borders(num_lines);
  bool texts_merge = prefix_size == 0;
  std::string joined;
  uint32_t rank = 0;
  size_t index = 0;
  for (const element line : lines) {
    const size_t line_index = index++;
    if (is_version_line(line)) continue;
    const auto pair = pair_of(line);
    if (!pair) place.corrupt("model.merges[{}]: expected a pair of tokens", line_index);
    if (pair->right.size() < prefix_size) {
      place.corrupt("model.merges[{}]: {} lacks the prefix", line_index, in_quotes(pair->right));
    }
    joined.assign(pair->left).append(pair->right.substr(prefix_size));
    const auto id_of = [&](std::string_view token) {
      const auto id = vocabulary.find(token);
      if (!id) {
        place.corrupt("model.merges[{}]: {} isn't in the vocabulary", line_index, in_quotes(token));
      }
      return *id;
    };
    const TokenId left = id_of(pair->left);
    const TokenId right = id_of(pair->right);
    merges.set(left, right, {rank++, id_of(joined)});
    texts_merge = texts_merge && !fallback_byte(pair->left) && !fallback_byte(pair->right);
    if (!pair->left.empty() && !pair->right.empty()) borders.add_seam(pair->left, pair->right);
  }
  file.merges = std::move(merges);
  if (texts_merge) file.borders = std::move(borders);
}

void read_model(element value, Place place, TokenizerFile& file) {
  const Members model = members_of(value, "model", place);
  if (const auto type = model.find("type"); type != model.end()) {
    std::string_view name;
    if (type->second.get(name) != simdjson::SUCCESS) {
      place.corrupt("model.type: expected a string, found {}", kind_of(type->second));
    }
    if (name != "BPE") place.unsupported(fmt::format("model {}", name));
  }
  file.options = read_options(model, place);
  file.vocabulary = read_vocabulary(model, place);
  read_merges(model, place, file);
}

// An added token must be the vocabulary's of that text and id, or new in both.
void check_added_token(const AddedToken& token, const JsonField& field, const TokenizerFile& file) {
  if (token.content.size() > kMaxAddedTokenBytes) {
    field.unsupported(fmt::format("an added token of {} bytes", token.content.size()));
  }
  const auto known_id = file.vocabulary.find(token.content);
  if (known_id && *known_id != token.id) {
    field.corrupt(fmt::format("the id {} of {}, which the vocabulary has at {}", token.id,
                              in_quotes(token.content), *known_id));
  }
  if (!known_id && file.vocabulary.contains(token.id)) {
    field.corrupt(fmt::format("the id {} of {}, which is that of {} in the vocabulary", token.id,
                              in_quotes(token.content), in_quotes(file.vocabulary.text(token.id))));
  }
}

std::vector<AddedToken> read_added_tokens(const JsonField& root, const TokenizerFile& file) {
  std::vector<AddedToken> tokens;
  const size_t num_tokens = root.is_null() ? 0 : root.num_items();
  const int64_t limit = std::min(
      kMaxTokenIds, static_cast<int64_t>(file.vocabulary.id_limit() + 4 * num_tokens) + kMaxHoles);
  std::map<TokenId, size_t> ids;
  std::map<std::string, size_t> contents;
  for (size_t i = 0; i < num_tokens; ++i) {
    const JsonField field = root.item(i);
    AddedToken token;
    const int64_t id = field.member("id").integer();
    if (id < 0 || id >= limit) {
      field.member("id").corrupt(fmt::format("{} is outside 0..{}", id, limit - 1));
    }
    token.id = static_cast<TokenId>(id);
    token.content = field.member("content").string();
    token.special = field.boolean_or("special", false);
    token.normalized = field.boolean_or("normalized", !token.special);
    token.lstrip = field.boolean_or("lstrip", false);
    token.rstrip = field.boolean_or("rstrip", false);
    token.single_word = field.boolean_or("single_word", false);
    if (token.content.empty()) field.member("content").corrupt("is empty");
    check_added_token(token, field, file);
    if (const auto [first, is_new] = ids.emplace(token.id, i); !is_new) {
      field.corrupt(fmt::format("the id {} is that of added_tokens[{}]", id, first->second));
    }
    if (const auto [first, is_new] = contents.emplace(token.content, i); !is_new) {
      field.corrupt(fmt::format("the same token as added_tokens[{}]", first->second));
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// The ids of the post-processor must be tokens.
void check_frame(const TokenizerFile& file, Place place) {
  const auto exists = [&](TokenId id) {
    return file.vocabulary.contains(id) ||
           std::any_of(file.added_tokens.begin(), file.added_tokens.end(),
                       [&](const AddedToken& token) { return token.id == id; });
  };
  for (const auto* side : {&file.frame.before, &file.frame.behind}) {
    for (const TokenId id : *side) {
      if (!exists(id)) place.corrupt("post_processor: the id {} has no token", id);
    }
  }
}

}  // namespace

TokenizerFile read_tokenizer_file(std::string json, std::string_view where) {
  const Place place{where};
  const size_t size = json.size();
  json.append(simdjson::SIMDJSON_PADDING, '\0');
  simdjson::dom::parser parser;
  element root;
  auto error = parser.allocate(std::max<size_t>(size, 32), kMaxDepth);
  if (error == simdjson::SUCCESS) error = parser.parse(json.data(), size, false).get(root);
  if (error == simdjson::MEMALLOC) {
    throw Error(ErrorCode::exhausted, fmt::format("{}: out of memory", where));
  }
  if (error != simdjson::SUCCESS) place.corrupt("{}", simdjson::error_message(error));
  const Members members = members_of(root, "the file", place);

  TokenizerFile file;
  const auto model = members.find("model");
  if (model == members.end()) place.corrupt("model is missing");
  read_model(model->second, place, file);

  Json::Object parts;
  for (const std::string_view key :
       {"added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    parts.emplace_back(key, tree_of(members, key, place));
  }
  const Json tree(std::move(parts));
  const JsonField field(tree, where);
  file.normalizer = read_normalizer(field.find("normalizer"));
  file.pieces = read_pre_tokenizer(field.find("pre_tokenizer"));
  file.decoder = read_decoder(field.find("decoder"));
  file.added_tokens = read_added_tokens(field.member("added_tokens"), file);
  file.frame = read_post_processor(field.find("post_processor"));
  check_frame(file, place);
  return file;
}

}  // namespace paceline
