// Sets of Unicode code points as sorted ranges.
#pragma once

#include <utility>
#include <vector>

namespace paceline {

constexpr char32_t kLastCodePoint = 0x10FFFF;

// First and last of each range, sorted and apart.
using CodePointRanges = std::vector<std::pair<char32_t, char32_t>>;

// Ranges in any order, which may overlap, as a set.
CodePointRanges sorted_ranges(CodePointRanges ranges);
// Every code point that isn't in `ranges`, surrogates included.
CodePointRanges all_code_points_but(const CodePointRanges& ranges);
// The part of `ranges` from `first` to `last`.
CodePointRanges clipped_ranges(const CodePointRanges& ranges, char32_t first, char32_t last);
// `ranges` and the other case of their ASCII letters.
CodePointRanges with_ascii_cases(const CodePointRanges& ranges);

}  // namespace paceline
