#include "tokenizer/tokenizer_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace paceline {
namespace {

constexpr size_t kMaxAddedTokenBytes = 4096;

// An added token must match the vocabulary in text and id, or be new in both.
void check_added_token(const AddedToken& token, const DocumentCursor& field,
                       const TokenizerFile& file) {
  if (token.content.size() > kMaxAddedTokenBytes) {
    refuse_part(field, fmt::format("an added token of {} bytes", token.content.size()));
  }
  const auto known_id = file.vocabulary.find(token.content);
  if (known_id && *known_id != token.id) {
    field.fail(fmt::format("the id {} of {}, which the vocabulary has at {}", token.id,
                           shown_text(token.content), *known_id));
  }
  if (!known_id && file.vocabulary.contains(token.id)) {
    field.fail(fmt::format("the id {} of {}, which is that of {} in the vocabulary", token.id,
                           shown_text(token.content), shown_text(file.vocabulary.text(token.id))));
  }
}

std::vector<AddedToken> read_added_tokens(const DocumentCursor& root, const TokenizerFile& file) {
  if (root.is_null()) return {};
  const auto fields = root.items();
  const int64_t limit =
      std::min(kMaxTokenIds,
               static_cast<int64_t>(file.vocabulary.id_limit() + 4 * fields.size()) + kMaxHoles);
  const NumberRange range{.min = 0, .max = static_cast<double>(limit - 1)};
  std::vector<AddedToken> tokens;
  std::map<TokenId, size_t> ids;
  std::map<std::string, size_t> contents;
  for (const DocumentCursor& field : fields) {
    AddedToken token = read_added_token(field, static_cast<TokenId>(field.at("id").integer(range)));
    if (token.content.empty()) field.at("content").mismatch("some text");
    check_added_token(token, field, file);
    if (const auto [first, is_new] = ids.emplace(token.id, tokens.size()); !is_new) {
      field.fail(fmt::format("the id {} is that of added_tokens[{}]", token.id, first->second));
    }
    if (const auto [first, is_new] = contents.emplace(token.content, tokens.size()); !is_new) {
      field.fail(fmt::format("the same token as added_tokens[{}]", first->second));
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// The ids of the post-processor must be tokens.
void check_frame(const TokenizerFile& file, const DocumentCursor& root) {
  const auto exists = [&](TokenId id) {
    return file.vocabulary.contains(id) ||
           std::any_of(file.added_tokens.begin(), file.added_tokens.end(),
                       [&](const AddedToken& token) { return token.id == id; });
  };
  std::vector<const std::vector<TokenId>*> lists = {&file.frame.before, &file.frame.behind};
  for (const SpecialFrame::Part& part : file.frame.pair) lists.push_back(&part.ids);
  for (const auto* list : lists) {
    for (const TokenId id : *list) {
      if (!exists(id)) {
        root.at("post_processor").fail(fmt::format("the id {} has no token", id));
      }
    }
  }
}

}  // namespace

AddedToken read_added_token(const DocumentCursor& field, TokenId id) {
  AddedToken token{.id = id, .content = std::string(field.at("content").string())};
  token.special = field.boolean_or("special", false);
  token.normalized = field.boolean_or("normalized", !token.special);
  token.lstrip = field.boolean_or("lstrip", false);
  token.rstrip = field.boolean_or("rstrip", false);
  token.single_word = field.boolean_or("single_word", false);
  return token;
}

TokenizerFile read_tokenizer_file(std::string json, std::string_view where,
                                  std::optional<bool> prefix_space) {
  // The text and the parser's memory, which is as large, are freed before anything else is made.
  const JsonDocument document(std::move(json), where, ErrorCode::corrupt, HugeIntegers::refused);
  const DocumentCursor root = document.root();
  TokenizerFile file;
  static_cast<BpeModel&>(file) = read_bpe_model(root.at("model"));
  file.normalizer = read_normalizer(root.find("normalizer"));
  file.pieces = read_pre_tokenizer(root.find("pre_tokenizer"), prefix_space);
  file.decoder = read_decoder(root.find("decoder"));
  file.added_tokens = read_added_tokens(root.at("added_tokens"), file);
  file.frame = read_post_processor(root.find("post_processor"));
  check_frame(file, root);
  return file;
}

}  // namespace paceline
