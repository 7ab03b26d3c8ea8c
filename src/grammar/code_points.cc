#include "grammar/code_points.h"

#include <algorithm>

namespace paceline {

CodePointRanges sorted_ranges(CodePointRanges ranges) {
  std::sort(ranges.begin(), ranges.end());
  CodePointRanges joined;
  for (const auto& [first, last] : ranges) {
    if (!joined.empty() && first <= joined.back().second + 1) {
      joined.back().second = std::max(joined.back().second, last);
    } else {
      joined.emplace_back(first, last);
    }
  }
  return joined;
}

CodePointRanges all_code_points_but(const CodePointRanges& ranges) {
  CodePointRanges others;
  char32_t next = 0;
  for (const auto& [first, last] : ranges) {
    if (first > next) others.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLastCodePoint) others.emplace_back(next, kLastCodePoint);
  return others;
}

CodePointRanges clipped_ranges(const CodePointRanges& ranges, char32_t first, char32_t last) {
  CodePointRanges clipped;
  for (const auto& range : ranges) {
    if (range.second < first || range.first > last) continue;
    clipped.emplace_back(std::max(range.first, first), std::min(range.second, last));
  }
  return clipped;
}

CodePointRanges with_ascii_cases(const CodePointRanges& ranges) {
  constexpr char32_t kCaseDistance = 'a' - 'A';
  CodePointRanges both = ranges;
  for (const auto& [first, last] : clipped_ranges(ranges, 'A', 'Z')) {
    both.emplace_back(first + kCaseDistance, last + kCaseDistance);
  }
  for (const auto& [first, last] : clipped_ranges(ranges, 'a', 'z')) {
    both.emplace_back(first - kCaseDistance, last - kCaseDistance);
  }
  return sorted_ranges(std::move(both));
}

}  // namespace paceline
