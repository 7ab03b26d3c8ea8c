#include "tokenizer/prefix_table.h"

namespace paceline {

void PrefixTable::finish() {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.text < b.text; });
  singles_.fill(-1);
  // Single bytes move to the end, where no pair's range has them.
  const auto singles = std::stable_partition(entries_.begin(), entries_.end(),
                                             [](const Entry& e) { return e.text.size() > 1; });
  for (auto one = singles; one != entries_.end(); ++one) {
    singles_[static_cast<uint8_t>(one->text[0])] = static_cast<int32_t>(one - entries_.begin());
  }
  constexpr size_t kPairs = size_t{1} << 16;
  begins_.assign(kPairs + 1, 0);
  for (auto one = entries_.begin(); one != singles; ++one) {
    ++begins_[(size_t{static_cast<uint8_t>(one->text[0])} << 8 |
               static_cast<uint8_t>(one->text[1])) +
              1];
  }
  for (size_t pair = 0; pair < kPairs; ++pair) begins_[pair + 1] += begins_[pair];
}

}  // namespace paceline
