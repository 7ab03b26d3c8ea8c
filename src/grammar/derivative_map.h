// DerivativeMap remembers derivatives. It is a hash table in parts, each of which grows by itself,
// at loads of its own, so that no single call has to copy many of them.
#pragma once

#include <array>
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
    const uint64_t hash = hash_of(key);
    const Part& part = parts_[hash >> (64 - kPartBits)];
    if (part.entries.empty()) return std::nullopt;
    const Entry& found = part.entries[slot_of(part, key, hash)];
    return found.key == 0 ? std::nullopt : std::optional(found.value);
  }
  // `key` isn't in the map yet.
  void insert(uint64_t key, uint32_t value) {
    const uint64_t hash = hash_of(key);
    const size_t index = hash >> (64 - kPartBits);
    Part& part = parts_[index];
    // From a third to two thirds: parts are equally full, and would all grow at once.
    constexpr size_t kParts = size_t{1} << kPartBits;
    if (++part.size * 3 * kParts > part.entries.size() * (kParts + index)) grow(part);
    part.entries[slot_of(part, key, hash)] = {key, value};
  }
  size_t memory_bytes() const {
    size_t num_entries = 0;
    for (const Part& part : parts_) num_entries += part.entries.capacity();
    return num_entries * sizeof(Entry);
  }

 private:
  struct Entry {
    uint64_t key = 0;
    uint32_t value = 0;
  };
  struct Part {
    std::vector<Entry> entries;  // a power of two, or none
    size_t size = 0;
  };
  static constexpr unsigned kPartBits = 6;

  static uint64_t hash_of(uint64_t key) {
    key *= 0x9E3779B97F4A7C15ULL;
    return key ^ key >> 32;
  }
  // Of the key, or where it would stand.
  static size_t slot_of(const Part& part, uint64_t key, uint64_t hash) {
    const size_t mask = part.entries.size() - 1;
    size_t slot = hash & mask;
    while (part.entries[slot].key != 0 && part.entries[slot].key != key) slot = (slot + 1) & mask;
    return slot;
  }
  static void grow(Part& part) {
    constexpr size_t kFirstEntries = 8;
    const std::vector<Entry> old = std::move(part.entries);
    part.entries.assign(old.empty() ? kFirstEntries : old.size() * 2, {});
    for (const Entry& entry : old) {
      if (entry.key != 0) part.entries[slot_of(part, entry.key, hash_of(entry.key))] = entry;
    }
  }

  std::array<Part, size_t{1} << kPartBits> parts_;
};

}  // namespace paceline
