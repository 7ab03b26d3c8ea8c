// Penalties, logit bias and mask change single logits before the row is ranked.
#pragma once

#include <span>

#include "sampling/sampling_options.h"
#include "sampling/token_history.h"

namespace paceline {

// False when apply_penalties changes no row.
bool changes_logits(const SamplingOptions& options, const TokenHistory& history);

// In place, in this order: the repetition penalty divides positive and multiplies other logits of
// tokens of prompt and output (Keskar et al., "CTRL", 2019; HF RepetitionPenaltyLogitsProcessor),
// the frequency penalty times the count in the output and the presence penalty are subtracted, the
// bias is added, and what the mask forbids becomes -inf.
void apply_penalties(std::span<float> logits, const SamplingOptions& options,
                     const TokenHistory& history);

}  // namespace paceline
