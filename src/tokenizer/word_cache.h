// WordCache remembers, during one call, where in the output the tokens of a piece stand already.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/hashing.h"

namespace paceline {

// Direct-mapped: a new piece takes the place of the one it collides with, so its size is bounded.
// The pieces are views, which must stay valid as long as it lives.
class WordCache {
 public:
  struct Entry {
    const char* piece = nullptr;
    uint32_t piece_size = 0;
    uint32_t num_tokens = 0;
    size_t first_token = 0;  // its place in the output
  };
  static constexpr size_t kMaxPieceBytes = 64;

  explicit WordCache(size_t text_bytes)
      : entries_(std::bit_ceil(std::clamp(text_bytes / 16, kMinEntries, kMaxEntries))) {}

  // Null for pieces that are too long to be worth it. If the entry isn't that of `piece`, the
  // caller makes it so.
  Entry* entry_of(std::string_view piece) {
    if (piece.size() > kMaxPieceBytes) return nullptr;
    return &entries_[hash_bytes(piece, kKey) & (entries_.size() - 1)];
  }
  static bool holds(const Entry& entry, std::string_view piece) {
    return entry.piece != nullptr && std::string_view(entry.piece, entry.piece_size) == piece;
  }

 private:
  static constexpr size_t kMinEntries = 16;
  static constexpr size_t kMaxEntries = 8192;
  static constexpr uint64_t kKey = 0x8EBC6AF09C88C6E3;  // collisions cost only the replaced entry

  std::vector<Entry> entries_;
};

}  // namespace paceline
