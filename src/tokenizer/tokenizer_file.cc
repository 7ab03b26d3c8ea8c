#include "tokenizer/tokenizer_file.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/dom_field.h"

namespace paceline {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxAddedTokenBytes = 4096;

// A small part of the file as a tree of its own.
Json tree_of(const DomMembers& members, std::string_view key, FilePlace place) {
  const auto found = members.find(key);
  if (found == members.end()) return Json();
  try {
    return parse_json(simdjson::minify(found->second), fmt::format("{}: {}", place.file, key));
  } catch (const Error& error) {
    throw Error(ErrorCode::corrupt, error.what());
  }
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
void check_frame(const TokenizerFile& file, FilePlace place) {
  const auto exists = [&](TokenId id) {
    return file.vocabulary.contains(id) ||
           std::any_of(file.added_tokens.begin(), file.added_tokens.end(),
                       [&](const AddedToken& token) { return token.id == id; });
  };
  for (const auto* side : {&file.frame.before, &file.frame.behind}) {
    for (const TokenId id : *side) {
      if (!exists(id)) place.corrupt(fmt::format("post_processor: the id {} has no token", id));
    }
  }
}

// The text and the parser's memory, which is as large, are freed before anything else is made.
simdjson::dom::document parse(std::string json, FilePlace place) {
  simdjson::dom::document document;
  simdjson::dom::parser parser;
  const size_t size = json.size();
  json.append(simdjson::SIMDJSON_PADDING, '\0');
  auto error = parser.allocate(std::max<size_t>(size, 32), kMaxDepth);
  if (error == simdjson::SUCCESS) {
    error = parser.parse_into_document(document, json.data(), size, false).error();
  }
  if (error == simdjson::MEMALLOC) {
    throw Error(ErrorCode::exhausted, fmt::format("{}: out of memory", place.file));
  }
  if (error != simdjson::SUCCESS) place.corrupt(simdjson::error_message(error));
  return document;
}

}  // namespace

TokenizerFile read_tokenizer_file(std::string json, std::string_view where) {
  const FilePlace place{where};
  const simdjson::dom::document document = parse(std::move(json), place);
  const DomMembers members = members_of(document.root(), "the file", place);

  TokenizerFile file;
  const auto model = members.find("model");
  if (model == members.end()) place.corrupt("model is missing");
  static_cast<BpeModel&>(file) = read_bpe_model(model->second, place);

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
