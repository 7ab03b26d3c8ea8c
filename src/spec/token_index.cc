#include "spec/token_index.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "base/siphash.h"

namespace paceline {
namespace {

constexpr int64_t kFirstCapacity = 16;  // a power of two

// One key for all indexes of the process. Results don't depend on it.
std::vector<uint64_t> hash_multipliers(int64_t count) {
  static const SipKey key = random_sip_key();
  std::vector<uint64_t> multipliers;
  for (int64_t i = 0; i < count; ++i) {
    const auto words = philox4x32(key.low, static_cast<uint64_t>(i), key.high);
    multipliers.push_back((uint64_t{words[0]} << 32) | words[1]);
  }
  return multipliers;
}

}  // namespace

TokenIndex::TokenIndex(int64_t min_length, int64_t max_length)
    : min_length_(min_length), max_length_(max_length) {
  PL_CHECK(1 <= min_length && min_length <= max_length && max_length <= kMaxLength,
           "matches of 1 to kMaxLength tokens");
  tables_.resize(static_cast<size_t>(max_length - min_length + 1));
  multipliers_ = hash_multipliers(max_length + 1);
}

void TokenIndex::extend(std::span<const int32_t> text) {
  const auto size = static_cast<int64_t>(text.size());
  PL_CHECK(size <= int64_t{kEndMask}, "a text of fewer than 2^31 tokens");
  while (num_added_ + 1 < size) add(text, ++num_added_);
}

TokenMatch TokenIndex::find(std::span<const int32_t> text) {
  const auto size = static_cast<int64_t>(text.size());
  TokenMatch best;
  for (int64_t length = min_length_; length <= std::min(max_length_, size); ++length) {
    if (table(length).slots.empty()) break;
    const uint32_t slot = slot_of(text, length, size);
    if (slot == 0) break;
    best = {.length = length, .end = int64_t{slot & kEndMask}};
    if ((slot & kIsRepeated) == 0 || length == max_length_) {
      best.length = common_length(text, best.end, size, max_length_);
      break;
    }
  }
  return best;
}

int64_t TokenIndex::bytes() const {
  size_t bytes = sizeof(*this) + multipliers_.capacity() * sizeof(uint64_t);
  for (const Table& one : tables_) bytes += sizeof(one) + one.slots.capacity() * sizeof(uint32_t);
  return static_cast<int64_t>(bytes);
}

// Follows the occurrences of ever longer sequences that end at `end`, as long as there was one.
void TokenIndex::add(std::span<const int32_t> text, int64_t end) {
  for (int64_t length = min_length_; length <= std::min(max_length_, end); ++length) {
    if (table(length).slots.empty()) grow(text, length);
    uint32_t& slot = slot_of(text, length, end);
    if (slot == 0) {
      insert(text, length, end);
      return;
    }
    const uint32_t last = slot;
    slot = static_cast<uint32_t>(end) | kIsRepeated;
    const int64_t last_end = last & kEndMask;
    if ((last & kIsRepeated) == 0 && length < max_length_ && last_end > length)
      insert(text, length + 1, last_end);
  }
}

// The sequence isn't in the table yet.
void TokenIndex::insert(std::span<const int32_t> text, int64_t length, int64_t end) {
  Table& into = table(length);
  if (4 * (into.num_used + 1) > 3 * static_cast<int64_t>(into.slots.size())) grow(text, length);
  slot_of(text, length, end) = static_cast<uint32_t>(end);
  ++into.num_used;
}

void TokenIndex::grow(std::span<const int32_t> text, int64_t length) {
  Table& table = this->table(length);
  std::vector<uint32_t> old(std::max<size_t>(kFirstCapacity, 2 * table.slots.size()));
  old.swap(table.slots);
  const uint64_t mask = table.slots.size() - 1;
  for (const uint32_t slot : old) {
    if (slot == 0) continue;
    uint64_t at = hash(text, length, slot & kEndMask) & mask;
    while (table.slots[at] != 0) at = (at + 1) & mask;
    table.slots[at] = slot;
  }
}

// Multiply-shift over the tokens (Dietzfelbinger, "Universal hashing and k-wise independent random
// variables via integer arithmetic without primes", STACS 1996), mixed once more: linear probing
// would be slow where tokens in sequence get hashes in sequence.
uint64_t TokenIndex::hash(std::span<const int32_t> text, int64_t length, int64_t end) {
  num_operations_ += length;
  uint64_t sum = multipliers_[static_cast<size_t>(max_length_)];
  for (int64_t i = 0; i < length; ++i) {
    sum += multipliers_[static_cast<size_t>(i)] *
           static_cast<uint32_t>(text[static_cast<size_t>(end - 1 - i)]);
  }
  sum = (sum ^ (sum >> 32)) * 0xD6E8FEB86659FD93u;
  return sum ^ (sum >> 32);
}

uint32_t& TokenIndex::slot_of(std::span<const int32_t> text, int64_t length, int64_t end) {
  std::vector<uint32_t>& slots = table(length).slots;
  const uint64_t mask = slots.size() - 1;
  for (uint64_t at = hash(text, length, end) & mask;; at = (at + 1) & mask) {
    ++num_operations_;
    uint32_t& slot = slots[at];
    if (slot == 0 || common_length(text, slot & kEndMask, end, length) == length) return slot;
  }
}

// How many tokens before `a` equal those before `b`, at most `most`.
int64_t TokenIndex::common_length(std::span<const int32_t> text, int64_t a, int64_t b,
                                  int64_t most) {
  most = std::min({most, a, b});
  int64_t length = 0;
  while (length < most &&
         text[static_cast<size_t>(a - 1 - length)] == text[static_cast<size_t>(b - 1 - length)]) {
    ++length;
  }
  num_operations_ += length + 1;
  return length;
}

}  // namespace paceline
