// MixtureTraining is what of a mixture of experts is trained.
#pragma once

#include <algorithm>
#include <vector>

#include "train/linear_operation.h"

namespace paceline {

struct ExpertTraining {
  LinearTraining gate_up;
  LinearTraining down;
};

// What stands around experts that read latent columns.
struct LatentTraining {
  LinearTraining to, from;
  ExpertTraining shared;
};

struct MixtureTraining {
  LinearTraining router;
  std::vector<ExpertTraining> experts;  // one for each of Mixture::experts(), or none
  LatentTraining latent;                // where there is such a part

  bool has_loras() const {
    return std::ranges::any_of(experts, [](const ExpertTraining& expert) {
      return !expert.gate_up.loras.empty() || !expert.down.loras.empty();
    });
  }
};

}  // namespace paceline
