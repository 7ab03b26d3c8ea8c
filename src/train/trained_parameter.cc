#include "train/trained_parameter.h"

#include <cstring>

namespace paceline {

void TrainedParameter::clear_gradient() const {
  std::memset(gradient_.raw(), 0, gradient_.size_bytes());
}

}  // namespace paceline
