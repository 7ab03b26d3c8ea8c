// How long the sequences of a step are, in runs whose sequences grow.
#pragma once

#include <cstdint>
#include <span>

#include "paceline/train_options.h"

namespace paceline {

// The most places of a sequence in a step of a run of `num_steps`; 0: no limit of its own.
int64_t sequence_length_at(std::span<const LengthStage> stages, int64_t step, int64_t num_steps);

}  // namespace paceline
