#include "sampling/allowed_tokens.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace paceline {

void copy_allowed(std::span<const float> logits, std::span<const uint64_t> allowed,
                  std::span<float> out) {
  constexpr size_t kBits = 64;
  constexpr float kForbidden = -std::numeric_limits<float>::infinity();
  PL_CHECK(out.size() == logits.size(), "a row has one logit per token");
  for (size_t begin = 0, word = 0; begin < logits.size(); begin += kBits, ++word) {
    const size_t count = std::min(kBits, logits.size() - begin);
    const uint64_t bits = word < allowed.size() ? allowed[word] : 0;
    const float* const from = logits.data() + begin;
    float* const to = out.data() + begin;
    if (bits == 0) {
      std::fill_n(to, count, kForbidden);
    } else if (~bits == 0) {
      std::copy_n(from, count, to);
    } else {
      for (size_t i = 0; i < count; ++i) to[i] = (bits >> i & 1) != 0 ? from[i] : kForbidden;
    }
  }
}

}  // namespace paceline
