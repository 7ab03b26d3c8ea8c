#include "tokenizer/encoder_class.h"

#include <algorithm>
#include <map>

namespace paceline {
namespace {

constexpr size_t kEncoderBlock = 256;

}  // namespace

const EncoderClassTable& EncoderClassTable::shared() {
  static const EncoderClassTable table;
  return table;
}

EncoderClassTable::EncoderClassTable() {
  std::vector<uint8_t> all(size_t{kEncoderBlock} * block_of_.size());
  for (size_t i = 0; i < kNumEncoderRanges; ++i) {
    const EncoderRange& range = kEncoderRanges[i];
    std::fill(all.begin() + range.first, all.begin() + range.last + 1, range.classes);
  }
  std::map<std::array<uint8_t, kEncoderBlock>, uint16_t> known;
  for (size_t index = 0; index < block_of_.size(); ++index) {
    std::array<uint8_t, kEncoderBlock> block{};
    std::copy_n(all.begin() + static_cast<ptrdiff_t>(index * kEncoderBlock), kEncoderBlock,
                block.begin());
    const auto [entry, is_new] = known.emplace(block, static_cast<uint16_t>(known.size()));
    if (is_new) classes_.insert(classes_.end(), block.begin(), block.end());
    block_of_[index] = entry->second;
  }
}

}  // namespace paceline
