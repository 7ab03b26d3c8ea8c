#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "llm/llm_state.h"

namespace paceline {
namespace {

// The labels' softmax, in double and in their order.
std::vector<float> normalised(const std::vector<float>& logprobs) {
  const float largest = *std::max_element(logprobs.begin(), logprobs.end());
  std::vector<double> weights;
  double total = 0;
  for (const float logprob : logprobs) {
    weights.push_back(std::exp(static_cast<double>(logprob) - static_cast<double>(largest)));
    total += weights.back();
  }
  std::vector<float> scores;
  for (const double weight : weights) scores.push_back(static_cast<float>(weight / total));
  return scores;
}

}  // namespace

Classification LLM::classify(const Prompt& prompt, const ClassifyOptions& options) {
  State& state = open_state();
  const LoadedModel& model = *state.model;
  ClassifyRequest request{
      .prompt = encode_prompt(model, prompt, options.sampling.add_special_tokens),
      .prompt_name = prompt_name(prompt, options.sampling.prompt_name),
      .sampling = make_sampling(model, options.sampling),
      .want_token = options.want_token_id,
      .want_logits = options.with_logits};
  for (const std::string& label : options.labels) {
    request.labels.push_back(encode_prompt(model, label, false));
  }
  const PrefillTimer timer(state, request.prompt.size());
  const auto found = model.engine->classify(request, options.sampling.cancelled);

  Classification result;
  result.token_id = found.token;
  if (found.token) result.token = token_string(model, *found.token);
  result.logits = found.logits;
  if (options.labels.empty()) return result;
  for (const float logprob : found.label_logprobs) {
    if (std::isnan(logprob)) {
      throw Error(ErrorCode::numerical, "the logits of the labels hold a NaN");
    }
  }
  result.scores = normalised(found.label_logprobs);
  const auto best = std::max_element(result.scores.begin(), result.scores.end());
  result.label = options.labels[static_cast<size_t>(best - result.scores.begin())];
  return result;
}

}  // namespace paceline
