// Speculative sampling by rejection: whatever a drafter proposes, the token follows the model's
// distribution (Leviathan et al., "Fast Inference from Transformers via Speculative Decoding",
// 2023; Chen et al., "Accelerating Large Language Model Decoding with Speculative Sampling", 2023).
#pragma once

#include <cstdint>

#include "sampling/distribution.h"

namespace paceline {

struct RejectionOutcome {
  bool accepted = false;
  int32_t token = -1;  // the drafted one, or the one that replaces it
};

// Accepts `drafted`, which was drawn from `q`, with probability min(1, p(t) / q(t)), else draws
// from max(0, p - q), normalised. Without `q`, or with an empty one, the drafter was certain:
// q(drafted) is 1. A token with p(t) = 0 is always rejected, one with p(t) > 0 and q(t) = 0
// accepted. A function of its arguments: the numbers of (seed, position) for DrawPurpose::accept
// and residual are those of no other draw. Exact in integers but for the 64 bits of the random
// number; residual weights are rounded to doubles. `p` isn't empty.
RejectionOutcome accept_or_resample(const Distribution& p, const Distribution* q, int32_t drafted,
                                    uint64_t seed, int64_t position);

// The token after a whole draft was accepted, or without any draft: as Sampler::draw draws it.
int32_t draw_bonus(const Distribution& p, uint64_t seed, int64_t position);

}  // namespace paceline
