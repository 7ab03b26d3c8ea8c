// DerivativeMap remembers derivatives: a hash table in one array, which is copied as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace paceline {

class DerivativeMap {
 public:
  // Keys are not 0.
  std::optional<uint32_t> find(uint64_t key) const {
    const Entry& found = entries_[slot_of(key)];
    return found.key == 0 ? std::nullopt : std::optional(found.value);
  }
  // `key` isn't in the map yet.
  void insert(uint64_t key, uint32_t value) {
    if (++size_ * 2 > entries_.size()) grow();
    entries_[slot_of(key)] = {key, value};
  }
  size_t memory_bytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    uint64_t key = 0;
    uint32_t value = 0;
  };

  // Of the key, or where it would stand.
  size_t slot_of(uint64_t key) const {
    size_t slot = (key * 0x9E3779B97F4A7C15ULL) >> shift_;
    while (entries_[slot].key != 0 && entries_[slot].key != key) {
      slot = (slot + 1) & (entries_.size() - 1);
    }
    return slot;
  }
  void grow() {
    const std::vector<Entry> old = std::move(entries_);
    entries_.assign(old.size() * 2, {});
    --shift_;
    for (const Entry& entry : old) {
      if (entry.key != 0) entries_[slot_of(entry.key)] = entry;
    }
  }

  static constexpr unsigned kFirstBits = 8;
  std::vector<Entry> entries_ = std::vector<Entry>(size_t{1} << kFirstBits);
  unsigned shift_ = 64 - kFirstBits;
  size_t size_ = 0;
};

}  // namespace paceline
