#include "train/trained_set.h"

namespace paceline {

int64_t TrainedSet::num_parameters() const {
  int64_t total = 0;
  for (const TrainedParameter* const one : parameters_) total += one->value().num_elements();
  return total;
}

void TrainedSet::clear_gradients() {
  for (const TrainedParameter* const one : parameters_) one->clear_gradient();
}

void TrainedSet::complete_gradients() {
  for (const TrainedParameter* const one : parameters_) one->complete_gradient();
}

}  // namespace paceline
