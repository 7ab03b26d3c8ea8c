#include "train/route_gradient.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace paceline {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

std::vector<double> scores_of(const RoutingParams& params, std::span<const float> logits) {
  std::vector<double> scores(logits.begin(), logits.begin() + params.num_experts);
  if (params.score == ExpertScore::sigmoid) {
    for (double& score : scores) score = sigmoid(score);
    return scores;
  }
  const double largest = *std::ranges::max_element(scores);
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
  return scores;
}

// By the scores of the chosen experts: weight = scale * score, or of normalised ones
// scale * score / sum.
std::vector<double> score_gradients(const RoutingParams& params, std::span<const double> scores,
                                    std::span<const int32_t> chosen,
                                    std::span<const double> dweights) {
  const auto scale = double{params.scale};
  std::vector<double> gradients(chosen.size());
  double sum = 0, mean = 0;  // of the scores; of dweights, weighted by the scores
  for (size_t i = 0; i < chosen.size(); ++i) {
    const double score = scores[static_cast<size_t>(chosen[i])];
    sum += score;
    mean += dweights[i] * score;
  }
  mean /= sum;
  for (size_t i = 0; i < chosen.size(); ++i) {
    gradients[i] = params.normalise ? scale * (dweights[i] - mean) / sum : scale * dweights[i];
  }
  return gradients;
}

}  // namespace

void route_gradient(const RoutingParams& params, std::span<const float> logits,
                    std::span<const int32_t> experts, std::span<const double> dweights,
                    std::span<float> dlogits) {
  const auto num_chosen = static_cast<size_t>(params.experts_per_token);
  const auto chosen = experts.first(num_chosen);
  const std::vector<double> scores = scores_of(params, logits);
  const std::vector<double> dscores = score_gradients(params, scores, chosen, dweights);
  std::vector<double> by_expert(scores.size());
  for (size_t i = 0; i < num_chosen; ++i) by_expert[static_cast<size_t>(chosen[i])] = dscores[i];
  double mean = 0;  // of the gradients, weighted by the softmax
  for (size_t i = 0; i < scores.size(); ++i) mean += by_expert[i] * scores[i];
  for (size_t i = 0; i < scores.size(); ++i) {
    const double slope = params.score == ExpertScore::softmax
                             ? scores[i] * (by_expert[i] - mean)
                             : by_expert[i] * scores[i] * (1 - scores[i]);
    dlogits[i] = static_cast<float>(slope);
  }
  if (params.shared != SharedExpert::gated) return;
  const double gate = sigmoid(double{logits[scores.size()]});
  dlogits[scores.size()] = static_cast<float>(dweights[num_chosen] * gate * (1 - gate));
}

}  // namespace paceline
