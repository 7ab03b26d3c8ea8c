// Sample is the outcome of drawing one token from one row of logits, with its log-probabilities.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline {

struct TokenLogprob {
  int32_t id = 0;
  float logprob = 0.0f;
};

enum class SampleStatus : uint8_t {
  ok,
  nan_logits,       // the row holds a NaN
  nothing_to_draw,  // no candidate has a finite, positive weight: the largest logit is -inf or +inf
  all_forbidden,    // the largest logit that bias and mask leave is -inf
};

struct Sample {
  SampleStatus status = SampleStatus::ok;
  int32_t id = -1;
  float logprob = 0.0f;  // of the raw logits
  // Of the raw logits, by (probability down, id up); or of the ids that were asked for.
  std::vector<TokenLogprob> top_logprobs = {};
};

}  // namespace paceline
