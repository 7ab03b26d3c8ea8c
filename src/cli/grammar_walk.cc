#include "cli/grammar_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/json_cursor.h"
#include "paceline/error.h"

namespace paceline {
namespace {

class WalkClock {
 public:
  double microseconds() const {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

TextTokens::TextTokens(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  bytes_.resize(static_cast<size_t>(tokenizer.vocab_size()));
  for (TokenId id = 0; id < static_cast<TokenId>(bytes_.size()); ++id) {
    if (!tokenizer.is_special(id)) bytes_[static_cast<size_t>(id)] = tokenizer.token_bytes(id);
  }
  for (TokenId id = 0; id < static_cast<TokenId>(bytes_.size()); ++id) {
    const std::string& bytes = bytes_[static_cast<size_t>(id)];
    if (!bytes.empty()) id_of_bytes_.try_emplace(bytes, id);
    longest_ = std::max(longest_, bytes.size());
  }
}

std::vector<TokenId> TextTokens::tokens_of(std::string_view text) const {
  std::vector<TokenId> ids = tokenizer_.encode(text, {.specials_as_text = true});
  size_t end = 0;
  for (const TokenId id : ids) {
    const std::string& bytes = bytes_[static_cast<size_t>(id)];
    if (bytes.empty() || !text.substr(end).starts_with(bytes)) return longest_tokens_of(text);
    end += bytes.size();
  }
  return end == text.size() ? ids : longest_tokens_of(text);
}

std::vector<TokenId> TextTokens::longest_tokens_of(std::string_view text) const {
  std::vector<TokenId> ids;
  for (size_t begin = 0; begin < text.size();) {
    size_t size = std::min(longest_, text.size() - begin);
    auto found = id_of_bytes_.find(text.substr(begin, size));
    while (found == id_of_bytes_.end() && size > 1) {
      found = id_of_bytes_.find(text.substr(begin, --size));
    }
    if (found == id_of_bytes_.end()) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("the vocabulary has no token for {} at byte {} of a text",
                              shown_text(text.substr(begin, 1)), begin));
    }
    ids.push_back(found->second);
    begin += size;
  }
  return ids;
}

std::shared_ptr<const TokenTrie> GrammarWalk::trie_of(const TextTokens& tokens) {
  return std::make_shared<const TokenTrie>(tokens.bytes());
}

GrammarWalk::GrammarWalk(const ConstraintSpec& spec, const TextTokens& tokens,
                         std::shared_ptr<const TokenTrie> trie)
    : spec_(spec), tokens_(tokens) {
  const WalkClock watch;
  constraint_ = std::make_shared<Constraint>(compile_constraint(spec), std::move(trie));
  times_.compile_us = watch.microseconds();
  Matcher(constraint_).mask();
  times_.first_mask_us = watch.microseconds();
}

bool GrammarWalk::accepts(std::string_view text) {
  Matcher matcher(constraint_);
  for (const TokenId id : tokens_.tokens_of(text)) {
    const auto token = static_cast<uint32_t>(id);
    const WalkClock watch;
    const bool is_allowed = matcher.mask()->allows(token) && matcher.accept(token);
    times_.token_us.push_back(watch.microseconds());
    if (!is_allowed) return false;
  }
  const WalkClock watch;
  matcher.mask();
  times_.token_us.push_back(watch.microseconds());
  return matcher.is_complete();
}

size_t GrammarWalk::accepted_bytes(std::string_view text) const {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  Matcher matcher(std::make_shared<Constraint>(compile_constraint(spec_),
                                               std::make_shared<const TokenTrie>(bytes)));
  size_t count = 0;
  while (count < text.size() && matcher.accept(static_cast<uint8_t>(text[count]))) ++count;
  return count;
}

}  // namespace paceline
