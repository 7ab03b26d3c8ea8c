#include "sampling/ranking.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/error.h"

namespace paceline {

namespace {

constexpr int kDigitBits = 11;
constexpr size_t kNumDigits = size_t{1} << kDigitBits;
constexpr size_t kFewEntries = 128;  // sorted instead

size_t digit(uint64_t key, int shift) { return (key >> shift) & (kNumDigits - 1); }

// Moves the entries with the digit in which the prefix ends to the front; subtracts the weight of
// those above from `target`.
std::span<RankedWeight> narrow(std::span<RankedWeight> entries, int shift, uint64_t& target) {
  std::array<uint64_t, kNumDigits> sums{};
  size_t last = kNumDigits;  // the lowest digit that occurs, should all fall short
  for (const RankedWeight& entry : entries) {
    sums[digit(entry.key, shift)] += entry.weight;
    last = std::min(last, digit(entry.key, shift));
  }
  size_t current = kNumDigits - 1;
  for (; current > last && sums[current] < target; --current) target -= sums[current];

  RankedWeight* kept = entries.data();
  for (const RankedWeight& entry : entries) {
    const RankedWeight copy = entry;
    *kept = copy;
    kept += digit(copy.key, shift) == current ? 1 : 0;
  }
  return {entries.data(), kept};
}

}  // namespace

uint64_t last_key_of_prefix(std::span<RankedWeight> entries, uint64_t target) {
  PL_CHECK(!entries.empty() && target > 0, "a prefix has at least one entry");
  int shift = 64 - kDigitBits;
  while (entries.size() > kFewEntries) {
    entries = narrow(entries, shift, target);
    shift = std::max(0, shift - kDigitBits);
  }
  std::sort(entries.begin(), entries.end(),
            [](const RankedWeight& a, const RankedWeight& b) { return a.key > b.key; });
  for (const RankedWeight& entry : entries) {
    if (entry.weight >= target) return entry.key;
    target -= entry.weight;
  }
  return entries.back().key;
}

}  // namespace paceline
