#include "base/random.h"

namespace paceline {

double uniform_draw(uint64_t seed, uint64_t counter) {
  const auto words = philox4x32(seed, counter);
  const uint64_t bits = (uint64_t{words[0]} << 32) | words[1];
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace paceline
