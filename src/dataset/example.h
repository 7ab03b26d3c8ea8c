// Example is one sequence to learn: its tokens, and which of them are part of the loss.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace paceline {

struct Example {
  std::vector<int32_t> tokens;  // at least 2
  // Of each token: 1 if predicting it is part of the loss. The first token is never predicted.
  std::vector<uint8_t> counts;

  int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_counted() const { return std::count(counts.begin(), counts.end(), uint8_t{1}); }
};

}  // namespace paceline
