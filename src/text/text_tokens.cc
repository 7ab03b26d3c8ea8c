#include "text/text_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_cursor.h"
#include "paceline/error.h"

namespace paceline {

TextTokens::TextTokens(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  bytes_.resize(static_cast<size_t>(tokenizer.vocab_size()));
  for (TokenId id = 0; id < static_cast<TokenId>(bytes_.size()); ++id) {
    std::string& bytes = bytes_[static_cast<size_t>(id)];
    if (tokenizer.is_special(id)) bytes += kSpecialMark;
    bytes += tokenizer.token_bytes(id);
  }
  for (TokenId id = 0; id < static_cast<TokenId>(bytes_.size()); ++id) {
    const std::string& bytes = bytes_[static_cast<size_t>(id)];
    if (!bytes.empty()) id_of_bytes_.try_emplace(bytes, id);
    longest_ = std::max(longest_, bytes.size());
  }
}

bool TextTokens::is_written_by(const std::vector<TokenId>& ids, size_t first,
                               std::string_view text) const {
  for (size_t i = first; i < ids.size(); ++i) {
    const std::string& bytes = bytes_[static_cast<size_t>(ids[i])];
    if (bytes.empty() || !text.starts_with(bytes)) return false;
    text.remove_prefix(bytes.size());
  }
  return text.empty();
}

// Some tokenizers put a space before a text, so texts are tried behind others as well.
std::vector<TokenId> TextTokens::tokens_of(std::string_view text) const {
  for (const std::string_view before : {"", "\n", "x"}) {
    std::vector<TokenId> ids =
        tokenizer_.encode(std::string(before).append(text), {.specials_as_text = true});
    size_t first = ids.size();
    size_t num_bytes = 0;
    while (first > 0 && num_bytes < text.size()) {
      num_bytes += bytes_[static_cast<size_t>(ids[--first])].size();
    }
    if (num_bytes != text.size() || !is_written_by(ids, first, text)) continue;
    ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(first));
    return ids;
  }
  return longest_tokens_of(text);
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

}  // namespace paceline
