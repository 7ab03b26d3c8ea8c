#include "tokenizer/unicode_class.h"

#include <algorithm>
#include <map>

#include "tokenizer/unicode_ranges.h"

namespace paceline {
namespace {

constexpr size_t kClassBlock = 256;
using Block = std::array<uint16_t, kClassBlock>;

}  // namespace

const UnicodeClassTable& UnicodeClassTable::shared() {
  static const UnicodeClassTable table;
  return table;
}

UnicodeClassTable::UnicodeClassTable() {
  std::map<Block, uint16_t> known;
  size_t range = 0;
  for (size_t index = 0; index < block_of_.size(); ++index) {
    const size_t first = index * kClassBlock;
    const size_t last = first + kClassBlock - 1;
    Block block{};
    for (; range < kNumUnicodeRanges && kUnicodeRanges[range].first <= last; ++range) {
      const UnicodeRange& run = kUnicodeRanges[range];
      for (size_t c = std::max<size_t>(run.first, first); c <= std::min<size_t>(run.last, last);
           ++c) {
        block[c - first] = run.classes;
      }
      if (run.last > last) break;  // goes on in the next block
    }
    const auto next = static_cast<uint16_t>(known.size());
    const auto [entry, is_new] = known.emplace(block, next);
    if (is_new) classes_.insert(classes_.end(), block.begin(), block.end());
    block_of_[index] = entry->second;
  }
}

}  // namespace paceline
