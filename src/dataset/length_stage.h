// LengthStage: sequences that grow during a run.
#pragma once

#include <cstdint>
#include <span>

namespace paceline {

// Sequences of at most `length` places until this part of a run.
struct LengthStage {
  int64_t length = 0;
  double until = 0;
};

// The most places of a sequence in a step of a run of `num_steps`; 0: no limit of its own.
int64_t sequence_length_at(std::span<const LengthStage> stages, int64_t step, int64_t num_steps);

}  // namespace paceline
