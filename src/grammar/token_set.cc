#include "grammar/token_set.h"

#include <bit>

namespace paceline {

size_t TokenSet::num_allowed() const {
  size_t count = 0;
  for (const uint64_t word : words_) count += static_cast<size_t>(std::popcount(word));
  return count;
}

}  // namespace paceline
