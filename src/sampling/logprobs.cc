#include "sampling/logprobs.h"

#include <algorithm>

namespace paceline {

float logprob_of(float logit, float log_sum_exp) { return std::min(0.0f, logit - log_sum_exp); }

std::vector<TokenLogprob> top_logprobs(BlockedRow& row, float log_sum_exp, int32_t count,
                                       Candidates& scratch) {
  std::vector<TokenLogprob> top;
  if (count <= 0) return top;
  top.reserve(static_cast<size_t>(count));
  scratch.collect(row, row.reached_by(count));
  for (const RankedWeight& entry : scratch.ranked(count)) {
    const int32_t id = id_of_key(entry.key);
    top.push_back({id, logprob_of(row.at(id), log_sum_exp)});
  }
  return top;
}

}  // namespace paceline
