#include "sampling/logprobs.h"

namespace paceline {

std::vector<TokenLogprob> top_logprobs(BlockedRow& row, float log_sum_exp, int32_t count,
                                       Candidates& scratch) {
  std::vector<TokenLogprob> top;
  if (count <= 0 || row.has_nan()) return top;
  top.reserve(static_cast<size_t>(count));
  scratch.collect(row, row.reached_by(count));
  for (const RankedWeight& entry : scratch.ranked(count)) {
    const int32_t id = id_of_key(entry.key);
    top.push_back({id, logprob_of(row.at(id), log_sum_exp)});
  }
  return top;
}

}  // namespace paceline
