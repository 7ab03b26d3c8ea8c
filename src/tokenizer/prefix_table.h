// PrefixTable: the tokens that a text begins with.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "paceline/tokenizer.h"

namespace paceline {

// Texts in order. A search starts with those of the same two first bytes and narrows them a byte at
// a time. Immutable after finish().
class PrefixTable {
 public:
  struct Entry {
    std::string_view text;
    TokenId id = -1;
    double score = 0;
  };

  // `num_bytes`: all texts together.
  explicit PrefixTable(size_t num_bytes = 0) { texts_.reserve(num_bytes); }
  PrefixTable(PrefixTable&&) = default;
  PrefixTable& operator=(PrefixTable&&) = default;

  // Adds a text that isn't empty.
  void add(std::string_view text, TokenId id, double score) {
    texts_.insert(texts_.end(), text.begin(), text.end());
    entries_.push_back(
        {std::string_view(texts_.data() + texts_.size() - text.size(), text.size()), id, score});
  }

  // To be called once, after the last add().
  void finish();

  // Calls `use(entry)` for every prefix of `text`, the shortest first.
  template <class Use>
  void for_each_prefix(std::string_view text, Use use) const {
    if (text.empty()) return;
    const auto lead = static_cast<uint8_t>(text[0]);
    if (singles_[lead] >= 0) use(entries_[static_cast<size_t>(singles_[lead])]);
    if (text.size() == 1) return;
    const size_t pair = size_t{lead} << 8 | static_cast<uint8_t>(text[1]);
    auto first = entries_.begin() + begins_[pair];
    auto last = entries_.begin() + begins_[pair + 1];
    for (size_t depth = 2; first != last; ++depth) {
      if (first->text.size() == depth) {
        use(*first);
        if (++first == last) return;
      }
      if (depth == text.size()) return;
      narrow(first, last, depth, static_cast<uint8_t>(text[depth]));
    }
  }

 private:
  using Place = std::vector<Entry>::const_iterator;

  static void narrow(Place& first, Place& last, size_t depth, uint8_t byte) {
    const auto byte_of = [depth](const Entry& entry) {
      return static_cast<uint8_t>(entry.text[depth]);
    };
    first = std::partition_point(first, last, [&](const Entry& e) { return byte_of(e) < byte; });
    last = std::partition_point(first, last, [&](const Entry& e) { return byte_of(e) == byte; });
  }

  std::vector<char> texts_;             // a string's move may copy a short text and break the views
  std::vector<Entry> entries_;          // sorted by text; views of texts_
  std::vector<int32_t> begins_;         // by two first bytes: entries of two bytes or more
  std::array<int32_t, 256> singles_{};  // entries of one byte; -1: none
};

}  // namespace paceline
