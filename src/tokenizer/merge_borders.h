// MergeBorders: pairs of characters that no merge can join, where a text may be cut.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/unicode_class.h"

namespace paceline {

// A merge joins a token that ends in a character x and one that begins with a character y; the
// result's text is the text of both. If every token stands for its own text and no merge has the
// pair (x, y) at its seam, then no merge crosses that pair, and the parts on both sides merge as
// they would alone. Cutting there changes no result, and splits a text without a pre-tokenizer into
// words that can be cached.
//
// The seams are stored in a Bloom filter (Bloom 1970) with two bits in one word. A false positive
// only loses a cut.
class MergeBorders {
 public:
  // Without seams, every character is a part of its own.
  explicit MergeBorders(size_t num_merges = 0);

  // Adds the seam of a merge of these two tokens; neither is empty.
  void add_seam(std::string_view left, std::string_view right);

  // Whether a merge may reach across.
  bool may_join(char32_t left, char32_t right) const {
    const uint64_t hash = hash_of(left, right);
    const uint64_t bits = bits_of(hash);
    return (words_[hash >> shift_] & bits) == bits;
  }

  // Calls `visit` with the parts of `text`, well-formed UTF-8, from left to right; none is empty.
  template <class Visit>
  void for_each_part(std::string_view text, Visit visit) const {
    const ClassReader reader(text, UnicodeClassTable::shared());
    size_t begin = 0;
    ClassifiedCodePoint left = reader.at(0);
    for (size_t at = left.size; at < text.size();) {
      const ClassifiedCodePoint right = reader.at(at);
      if (!may_join(left.code_point, right.code_point)) {
        visit(text.substr(begin, at - begin));
        begin = at;
      }
      left = right;
      at += right.size;
    }
    if (begin < text.size()) visit(text.substr(begin));
  }

 private:
  // Use its high bits, which are mixed best.
  static uint64_t hash_of(char32_t left, char32_t right) {
    return ((uint64_t{left} << 21) | right) * 0x9E3779B97F4A7C15u;
  }
  static uint64_t bits_of(uint64_t hash) {
    return (uint64_t{1} << ((hash >> 30) & 63)) | (uint64_t{1} << ((hash >> 36) & 63));
  }

  std::vector<uint64_t> words_;  // a power of two
  int shift_;                    // leaves the index of a word
};

}  // namespace paceline
