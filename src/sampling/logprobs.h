// Log-probabilities of a raw row of logits: logit - log(sum(exp(logits))).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "sampling/blocked_row.h"
#include "sampling/candidates.h"
#include "sampling/sample.h"

namespace paceline {

float log_sum_exp_of(Backend& backend, std::span<const float> logits);

// -inf for a token of probability 0; never above 0.
float logprob_of(float logit, float log_sum_exp);

// The `count` >= 0 likeliest by (probability down, id up); tokens of probability 0 are left out.
std::vector<TokenLogprob> top_logprobs(BlockedRow& row, float log_sum_exp, int32_t count,
                                       Candidates& scratch);

}  // namespace paceline
