// Vocabulary: the tokens of a model by id and by text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/number_range.h"
#include "paceline/tokenizer.h"

namespace paceline {

// Ids must be below this: no model has 16 million tokens, and tables by id must stay small.
inline constexpr int64_t kMaxTokenIds = int64_t{1} << 24;
inline constexpr NumberRange kTokenIdRange = {.min = 0, .max = kMaxTokenIds - 1};
// The most unused ids of a file: a vocabulary of mostly unused ids is refused.
inline constexpr int64_t kMaxHoles = 65536;

class Vocabulary {
 public:
  // `num_tokens` is the capacity; inserting more is an error of the caller.
  explicit Vocabulary(size_t num_tokens = 0);

  enum class Inserted { yes, text_is_taken, id_is_taken };
  // `id` is in [0, kMaxTokenIds).
  Inserted insert(std::string_view text, TokenId id);

  std::optional<TokenId> find(std::string_view text) const { return find(text, prepare(text)); }
  // A lookup in two steps, for several texts at once: prepare() hashes a text and prefetches the
  // memory that find() reads.
  uint64_t prepare(std::string_view text) const;
  std::optional<TokenId> find(std::string_view text, uint64_t hash) const;
  // Empty when there is no such token.
  std::string_view text(TokenId id) const;
  bool contains(TokenId id) const;

  size_t num_tokens() const { return num_tokens_; }
  // The highest id plus one.
  size_t id_limit() const { return places_.size(); }
  void shrink_to_fit();

 private:
  struct Place {
    uint32_t begin = 0;
    uint32_t size = kNoToken;
  };
  struct Slot {
    uint32_t tag = 0;  // some bits of the hash
    TokenId id = -1;   // -1: free
  };
  static constexpr uint32_t kNoToken = UINT32_MAX;

  // The slot that holds `text`, or the free one where it belongs.
  size_t slot_of(std::string_view text, uint64_t hash) const;

  std::string texts_;          // all texts, concatenated
  std::vector<Place> places_;  // by id
  std::vector<Slot> slots_;    // open addressing; a power of two, at most two thirds full
  uint64_t key_;
  size_t num_tokens_ = 0;
};

}  // namespace paceline
