// The generated table of the normalizer Lowercase: runs of code points with an equal distance to
// their lower case.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline {

struct LowercaseRun {
  uint32_t first;
  uint32_t last;  // inclusive
  uint32_t step;  // 2: every other one
  int32_t delta;
};

// Ascending and disjoint. U+0130, whose lower case has two code points, isn't among them.
extern const LowercaseRun kLowercaseRuns[];
extern const size_t kNumLowercaseRuns;

}  // namespace paceline
