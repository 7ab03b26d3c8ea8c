// WordCache caches the tokens of merged words.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "paceline/tokenizer.h"

namespace paceline {

// Two-way associative: a new word replaces the older of two entries. Whole words are compared, so
// the cache never changes a result.
class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 32;  // longer words aren't cached
  static constexpr size_t kMaxTokens = 7;      // nor words of more tokens
  static constexpr size_t kNumEntries = 16384;

  // A word padded with zeros, for comparison.
  struct Key {
    std::array<uint64_t, kMaxWordBytes / 8> bytes{};
    uint32_t size = 0;
  };
  // `word` has 1 to kMaxWordBytes bytes.
  static Key key_of(std::string_view word);

  WordCache() : entries_(kNumEntries) {}

  // Appends the tokens of a cached word; false if it isn't cached.
  bool append(const Key& key, std::vector<TokenId>& out) const;
  // `key` must not be in the cache.
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
