// Masks of a constraint: a bit for each token, whether it may be drawn.
#pragma once

#include <cstdint>
#include <span>

namespace paceline {

// The logits, with -inf for tokens that `allowed` doesn't allow. Bit i of word j is for token
// 64 j + i; tokens beyond the last word aren't allowed. `out` is as long as `logits`.
void copy_allowed(std::span<const float> logits, std::span<const uint64_t> allowed,
                  std::span<float> out);

}  // namespace paceline
