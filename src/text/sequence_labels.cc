#include "text/sequence_labels.h"

#include <algorithm>
#include <cmath>

namespace paceline {

std::vector<float> SequenceLabels::scores(std::span<const float> logits) const {
  std::vector<float> scores(logits.begin(), logits.end());
  if (scoring == Scoring::none) return scores;
  const double largest = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const float logit : logits) total += std::exp(double{logit} - largest);
  for (float& score : scores) {
    const double logit = score;
    score = static_cast<float>(scoring == Scoring::sigmoid ? 1.0 / (1.0 + std::exp(-logit))
                                                           : std::exp(logit - largest) / total);
  }
  return scores;
}

}  // namespace paceline
