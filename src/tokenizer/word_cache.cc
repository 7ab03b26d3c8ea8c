#include "tokenizer/word_cache.h"

#include <algorithm>

#include "tokenizer/hashing.h"

namespace paceline {

WordCache::Key WordCache::key_of(std::string_view word) {
  Key key;
  key.size = static_cast<uint32_t>(word.size());
  size_t index = 0;
  for (; word.size() >= 8; word.remove_prefix(8)) key.bytes[index++] = load_word(word.data());
  if (!word.empty()) key.bytes[index] = load_short_word(word);
  return key;
}

size_t WordCache::place_of(const Key& key) {
  constexpr uint64_t kKey = 0x8EBC6AF09C88C6E3;  // collisions cost only the replaced entry
  uint64_t state = key.size;
  for (size_t i = 0; 8 * i < key.size; ++i) state = hash_mix(state ^ key.bytes[i], kKey);
  return state & (kNumEntries - 2);
}

bool WordCache::holds(const Entry& entry, const Key& key) {
  uint64_t differences = entry.size ^ key.size;
  for (size_t i = 0; i < key.bytes.size(); ++i) differences |= entry.bytes[i] ^ key.bytes[i];
  return differences == 0;
}

bool WordCache::append(const Key& key, std::vector<TokenId>& out) const {
  const Entry* entry = entries_.data() + place_of(key);
  if (!holds(*entry, key) && !holds(*++entry, key)) return false;
  if (entry->num_tokens == 1) {
    out.push_back(entry->tokens[0]);
  } else {
    out.insert(out.end(), entry->tokens.begin(), entry->tokens.begin() + entry->num_tokens);
  }
  return true;
}

void WordCache::put(const Key& key, std::span<const TokenId> tokens) {
  if (tokens.size() > kMaxTokens) return;
  Entry* entry = entries_.data() + place_of(key);
  entry[1] = entry[0];
  entry->bytes = key.bytes;
  entry->size = static_cast<uint16_t>(key.size);
  entry->num_tokens = static_cast<uint16_t>(tokens.size());
  std::copy(tokens.begin(), tokens.end(), entry->tokens.begin());
}

}  // namespace paceline
