#include "tokenizer/merge_borders.h"

#include <algorithm>
#include <bit>

#include "base/utf8.h"

namespace paceline {
namespace {

// Files have about one distinct seam per 15 merges.
constexpr size_t kMergesPerWord = 32;
constexpr size_t kMinWords = 64;
constexpr size_t kMaxWords = size_t{1} << 16;

}  // namespace

MergeBorders::MergeBorders(size_t num_merges)
    : words_(std::bit_ceil(std::clamp(num_merges / kMergesPerWord, kMinWords, kMaxWords))),
      shift_(64 - std::countr_zero(words_.size())) {}

void MergeBorders::add_seam(std::string_view left, std::string_view right) {
  size_t last = left.size() - 1;
  while (last > 0 && (static_cast<uint8_t>(left[last]) & 0xC0) == 0x80) --last;
  const uint64_t hash =
      hash_of(decode_utf8(left.substr(last)).code_point, decode_utf8(right).code_point);
  words_[hash >> shift_] |= bits_of(hash);
}

}  // namespace paceline
