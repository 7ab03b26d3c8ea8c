#include "tokenizer/token_table.h"

#include <algorithm>

namespace paceline {

TokenTable::TokenTable(const Vocabulary& vocabulary, const AddedTokens& added_tokens,
                       const TokenDecoder& decoder) {
  size_t limit = vocabulary.id_limit();
  for (const AddedToken& token : added_tokens.tokens()) {
    limit = std::max(limit, static_cast<size_t>(token.id) + 1);
  }
  entries_.resize(limit);
  bytes_.reserve(8 * vocabulary.num_tokens());
  for (size_t i = 0; i < vocabulary.id_limit(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (vocabulary.contains(id)) set(id, vocabulary.text(id), decoder);
  }
  for (const AddedToken& token : added_tokens.tokens()) {
    set(token.id, token.pattern, decoder);
    entries_[static_cast<size_t>(token.id)].special = token.special ? 1 : 0;
  }
  bytes_.shrink_to_fit();
}

void TokenTable::set(TokenId id, std::string_view text, const TokenDecoder& decoder) {
  std::string bytes(text);
  const bool is_byte = decoder.decode_inside(bytes);
  Entry& entry = entries_[static_cast<size_t>(id)];
  entry.begin = static_cast<uint32_t>(bytes_.size());
  entry.size = static_cast<uint32_t>(bytes.size()) & 0x1FFFFFFFu;
  entry.byte = is_byte ? 1 : 0;
  entry.exists = 1;
  bytes_ += bytes;
}

std::string_view TokenTable::bytes(TokenId id) const {
  if (!contains(id)) return {};
  const Entry entry = entries_[static_cast<size_t>(id)];
  return std::string_view(bytes_).substr(entry.begin, entry.size);
}

bool TokenTable::is_special(TokenId id) const {
  return contains(id) && entries_[static_cast<size_t>(id)].special != 0;
}

}  // namespace paceline
