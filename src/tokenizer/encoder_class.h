// EncoderClassTable: the classes of code points for the normalizers BertNormalizer and Precompiled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline {

// Bits, in the order of tools/make_encoder_classes.py.
enum EncoderClass : uint8_t {
  kBertRemoved = 1 << 0,        // removed by clean_text
  kBertSpace = 1 << 1,          // a space after clean_text
  kBertChinese = 1 << 2,        // gets spaces around it
  kNonspacingMark = 1 << 3,     // removed by strip_accents
  kClusterExtend = 1 << 4,      // joins the grapheme cluster before it
  kClusterControl = 1 << 5,     // a grapheme cluster alone
  kClusterPrepend = 1 << 6,     // joins the grapheme cluster after it
  kClusterPictograph = 1 << 7,  // joins another one after a zero-width joiner
};

struct EncoderRange {
  uint32_t first;
  uint32_t last;  // inclusive
  uint8_t classes;
};

// Generated. Ascending and disjoint; a code point in none of them has no class.
extern const EncoderRange kEncoderRanges[];
extern const size_t kNumEncoderRanges;

// Immutable; one table for the whole program.
class EncoderClassTable {
 public:
  static const EncoderClassTable& shared();

  // Bits of EncoderClass. `code_point` must be below 0x110000.
  uint8_t of(char32_t code_point) const {
    return classes_[(size_t{block_of_[code_point >> 8]} << 8) | (code_point & 0xFF)];
  }

 private:
  EncoderClassTable();

  std::array<uint16_t, 0x1100> block_of_{};  // blocks of classes_, by code point / 256
  std::vector<uint8_t> classes_;             // blocks of 256
};

}  // namespace paceline
