// The generated table behind unicode_class.h: runs of code points with equal classes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline {

struct UnicodeRange {
  uint32_t first;
  uint32_t last;  // inclusive
  uint16_t classes;
};

// Ascending and disjoint; a code point in none of them has no class.
extern const UnicodeRange kUnicodeRanges[];
extern const size_t kNumUnicodeRanges;

}  // namespace paceline
