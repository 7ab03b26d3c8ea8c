// TokenSet says for each token of a vocabulary whether it may come next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace paceline {

class TokenSet {
 public:
  TokenSet() = default;
  explicit TokenSet(size_t num_tokens) : num_tokens_(num_tokens), words_((num_tokens + 63) / 64) {}

  size_t num_tokens() const { return num_tokens_; }
  bool allows(uint32_t token) const { return words_[token / 64] >> (token % 64) & 1; }
  void allow(uint32_t token) { words_[token / 64] |= uint64_t{1} << (token % 64); }
  void forbid(uint32_t token) { words_[token / 64] &= ~(uint64_t{1} << (token % 64)); }
  void allow_all_of(const TokenSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  // Bit i of word j: token 64 j + i.
  std::span<const uint64_t> words() const { return words_; }
  size_t num_allowed() const;
  size_t memory_bytes() const { return sizeof(*this) + words_.capacity() * sizeof(uint64_t); }
  bool operator==(const TokenSet&) const = default;

 private:
  size_t num_tokens_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace paceline
