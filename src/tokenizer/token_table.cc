#include "tokenizer/token_table.h"

#include <algorithm>
#include <cstring>

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
  bytes_.append(kCopied, '\0');
  bytes_.shrink_to_fit();
}

size_t TokenTable::append_texts(std::span<const TokenId> ids, DecodeOptions options,
                                std::string& out) const {
  constexpr size_t kRoom = 4096;  // bytes that out grows by at a time, at most
  size_t used = out.size();
  size_t count = 0;
  for (; count < ids.size(); ++count) {
    const TokenId id = ids[count];
    if (!contains(id)) break;
    const Entry entry = at(id);
    const bool skipped = options.skip_special && entry.special != 0;
    if (entry.exists == 0 || entry.byte != 0 || skipped) break;
    const size_t size = entry.size;
    if (out.size() - used < size + kCopied) {
      out.resize(used + size + kCopied + std::min(kRoom, 4 * (ids.size() - count)));
    }
    const char* bytes = bytes_.data() + entry.begin;
    if (size <= kCopied) {
      std::memcpy(out.data() + used, bytes, kCopied);
    } else {
      std::memcpy(out.data() + used, bytes, size);
    }
    used += size;
  }
  out.resize(used);
  return count;
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
