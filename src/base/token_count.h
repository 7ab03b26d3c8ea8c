// TokenCount is how often a token stands in a sequence.
#pragma once

#include <cstdint>

namespace paceline {

struct TokenCount {
  int32_t id = 0;
  int32_t in_output = 0;  // 0 for tokens of the prompt alone
};

}  // namespace paceline
