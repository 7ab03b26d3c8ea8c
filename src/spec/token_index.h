// TokenIndex finds where the end of a growing text of tokens occurred before in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace paceline {

// A sequence of n tokens that ends before `end`, where the same n tokens end the text.
struct TokenMatch {
  int64_t length = 0;  // 0: nothing was found
  int64_t end = 0;     // the token at `end` followed it
};

// Tables of positions by the n tokens before them, one table for each n. Sequences of n + 1 tokens
// are only stored below those of n tokens that occurred more than once: a single occurrence is
// compared with the text instead. The text itself isn't stored. Hashes have a key of the process,
// so no text can be made to collide, and every hit is compared.
class TokenIndex {
 public:
  static constexpr int64_t kMaxLength = 16;

  // Finds matches of `min_length` to `max_length` tokens; 1 <= min_length <= max_length <=
  // kMaxLength.
  TokenIndex(int64_t min_length, int64_t max_length);

  // Adds what `text` has beyond the last call's. The last token waits for the one that follows it.
  // A token takes constant time, but for tables that double as they fill, and 4 to 11 bytes. Texts
  // have fewer than 2^31 tokens.
  void extend(std::span<const int32_t> text);

  // The longest match, and of these the last one. `text` is that of the last extend().
  TokenMatch find(std::span<const int32_t> text);

  int64_t bytes() const;
  // Table slots read and tokens compared or hashed since construction.
  int64_t num_operations() const { return num_operations_; }

 private:
  // Linear probing. A slot is 0 (empty), or `end` of the last occurrence with kIsRepeated if there
  // were earlier ones.
  struct Table {
    std::vector<uint32_t> slots;
    int64_t num_used = 0;
  };
  static constexpr uint32_t kIsRepeated = uint32_t{1} << 31;
  static constexpr uint32_t kEndMask = kIsRepeated - 1;

  Table& table(int64_t length) { return tables_[static_cast<size_t>(length - min_length_)]; }
  void add(std::span<const int32_t> text, int64_t end);
  void insert(std::span<const int32_t> text, int64_t length, int64_t end);
  void grow(std::span<const int32_t> text, int64_t length);
  uint64_t hash(std::span<const int32_t> text, int64_t length, int64_t end);
  // The slot of the `length` tokens before `end`, or the empty one where they belong.
  uint32_t& slot_of(std::span<const int32_t> text, int64_t length, int64_t end);
  int64_t common_length(std::span<const int32_t> text, int64_t a, int64_t b, int64_t most);

  int64_t min_length_;
  int64_t max_length_;
  int64_t num_added_ = 0;  // every end up to here is in the tables
  std::vector<Table> tables_;
  std::vector<uint64_t> multipliers_;  // by distance from the end, and one for the length
  int64_t num_operations_ = 0;
};

}  // namespace paceline
