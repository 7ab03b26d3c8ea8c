#include "sampling/logprobs.h"

#include <algorithm>

#include "tensor/tensor.h"

namespace paceline {

float log_sum_exp_of(Backend& backend, std::span<const float> logits) {
  float sum = 0.0f;
  // A Tensor can't be const; log_sum_exp only reads its first operand.
  const Tensor row(const_cast<float*>(logits.data()), DType::f32,
                   {1, static_cast<int64_t>(logits.size())});
  backend.log_sum_exp(row, Tensor(&sum, DType::f32, {1}));
  return sum;
}

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
