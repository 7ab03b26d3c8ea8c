// WordCache remembers the tokens of words that were merged before.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "paceline/tokenizer.h"

namespace paceline {

// Two-way associative: each place holds two words, and a new word replaces the older of them. Whole
// words are compared, so the cache never changes a result.
class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 32;  // longer words aren't kept
  static constexpr size_t kMaxTokens = 7;      // nor those of more tokens
  static constexpr size_t kNumEntries = 16384;

  // A word in the form in which it is compared: padded with zeros.
  struct Key {
    std::array<uint64_t, kMaxWordBytes / 8> bytes{};
    uint32_t size = 0;
  };
  // `word` has 1 to kMaxWordBytes bytes.
  static Key key_of(std::string_view word);

  WordCache() : entries_(kNumEntries) {}

  // Appends the tokens of a cached word; false for another.
  bool append(const Key& key, std::vector<TokenId>& out) const;
  // `key` isn't in the cache.
  void put(const Key& key, std::span<const TokenId> tokens);

 private:
  struct alignas(64) Entry {
    std::array<uint64_t, kMaxWordBytes / 8> bytes{};
    uint16_t size = 0;  // 0: free
    uint16_t num_tokens = 0;
    std::array<TokenId, kMaxTokens> tokens{};
  };
  static_assert(sizeof(Entry) == 64);  // a cache line

  static bool holds(const Entry& entry, const Key& key);
  static size_t place_of(const Key& key);  // the first of two entries

  std::vector<Entry> entries_;
};

}  // namespace paceline
