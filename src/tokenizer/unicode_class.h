// UnicodeClassTable: the classes of code points for split patterns and normalisation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace paceline {

// Bits, in the order of tools/make_unicode_classes.py. The versions of Unicode are those of HF
// tokenizers.
enum UnicodeClass : uint16_t {
  kLetter = 1 << 0,       // \p{L}
  kNumber = 1 << 1,       // \p{N}
  kMark = 1 << 2,         // \p{M}
  kPunctuation = 1 << 3,  // \p{P}
  kSymbol = 1 << 4,       // \p{S}
  kSpace = 1 << 5,        // \s
  kWord = 1 << 6,         // \w, for added tokens with single_word
  kNfcActive = 1 << 7,    // NFC may change it, reorder it or compose it with the character before
  kNfcBarrier = 1 << 8,   // newer than the NFC of HF tokenizers: neither reordered nor composed
  kDecomposesLater = 1 << 9,   // newer than its normalizers: not decomposed
  kAccent = 1 << 10,           // removed by StripAccents
  kDigit = 1 << 11,            // cut out by Digits
  kPunctuationMark = 1 << 12,  // cut out by Punctuation and BertPreTokenizer
};

// Immutable; one table for the whole program.
class UnicodeClassTable {
 public:
  static const UnicodeClassTable& shared();

  // Bits of UnicodeClass. `code_point` must be below 0x110000.
  uint16_t of(char32_t code_point) const {
    return classes_.data()[(size_t{block_of_[code_point >> 8]} << 8) | (code_point & 0xFF)];
  }
  // The classes of the first 256 code points.
  const uint16_t* first_block() const { return classes_.data(); }

 private:
  UnicodeClassTable();

  std::array<uint16_t, 0x1100> block_of_{};  // blocks of classes_, by code point / 256
  std::vector<uint16_t> classes_;            // blocks of 256; block 0 is that of ASCII
};

struct ClassifiedCodePoint {
  char32_t code_point = 0;
  uint16_t classes = 0;
  uint8_t size = 0;  // bytes; 0 at the end of the text
};

// Reads code points with their classes from well-formed UTF-8.
class ClassReader {
 public:
  ClassReader(std::string_view text, const UnicodeClassTable& table)
      : text_(text), table_(table), ascii_(table.first_block()) {}

  size_t size() const { return text_.size(); }

  // The code point that begins at `offset`, which must be a boundary or the end.
  ClassifiedCodePoint at(size_t offset) const {
    if (offset >= text_.size()) return {};
    const char32_t lead = byte(offset);
    return lead < 0x80 ? ClassifiedCodePoint{lead, ascii_[lead], 1} : at_multibyte(offset, lead);
  }

  // The end of the run of code points that have (have none) of these classes; `offset` itself if
  // there is no run.
  size_t end_of_run(size_t offset, uint16_t classes) const {
    for (;;) {
      const ClassifiedCodePoint here = at(offset);
      if ((here.classes & classes) == 0) return offset;
      offset += here.size;
    }
  }
  size_t end_of_run_without(size_t offset, uint16_t classes) const {
    for (;;) {
      const ClassifiedCodePoint here = at(offset);
      if (here.size == 0 || (here.classes & classes) != 0) return offset;
      offset += here.size;
    }
  }

  // The begin of the code point before `offset`, which must not be 0.
  size_t before(size_t offset) const {
    do {
      --offset;
    } while ((static_cast<uint8_t>(text_[offset]) & 0xC0) == 0x80);
    return offset;
  }

 private:
  ClassifiedCodePoint at_multibyte(size_t offset, char32_t lead) const;
  char32_t byte(size_t offset) const { return static_cast<uint8_t>(text_[offset]); }
  char32_t tail(size_t offset) const { return byte(offset) & 0x3F; }

  std::string_view text_;
  const UnicodeClassTable& table_;
  const uint16_t* ascii_;  // classes by code point
};

inline ClassifiedCodePoint ClassReader::at_multibyte(size_t offset, char32_t lead) const {
  char32_t code_point = 0;
  uint8_t size = 0;
  if (lead < 0xE0) {
    code_point = ((lead & 0x1F) << 6) | tail(offset + 1);
    size = 2;
  } else if (lead < 0xF0) {
    code_point = ((lead & 0x0F) << 12) | (tail(offset + 1) << 6) | tail(offset + 2);
    size = 3;
  } else {
    code_point = ((lead & 0x07) << 18) | (tail(offset + 1) << 12) | (tail(offset + 2) << 6) |
                 tail(offset + 3);
    size = 4;
  }
  return {code_point, table_.of(code_point), size};
}

}  // namespace paceline
