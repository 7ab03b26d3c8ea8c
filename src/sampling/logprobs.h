// Log-probabilities of a raw row of logits: logit - log(sum(exp(logits))).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/sample.h"
#include "base/sampling_math.h"
#include "sampling/blocked_row.h"
#include "sampling/candidates.h"

namespace paceline {

// The `count` >= 0 likeliest by (probability down, id up); tokens of probability 0 are left out.
// None of a row with NaN, which may be where a mask hides it from draws.
std::vector<TokenLogprob> top_logprobs(BlockedRow& row, float log_sum_exp, int32_t count,
                                       Candidates& scratch);

}  // namespace paceline
