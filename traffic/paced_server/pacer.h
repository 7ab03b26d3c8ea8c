// Pacer computes when a step ends: decodes at the ticks of a fixed grid, prefills by their tokens.
#pragma once

#include <cstdint>

#include "traffic/tick_grid.h"

namespace paceline::traffic {

// The schedule is absolute: after a late step, steps are shorter until each token is emitted at its
// tick again. Ticks are skipped only after a delay of kMostTicksBehind.
class Pacer {
 public:
  static constexpr int64_t kMostTicksBehind = 20;

  // Decode steps and prompt tokens per second.
  Pacer(double rate, double prefill_rate) : grid_(rate), prefill_rate_(prefill_rate) {}

  // When a step that begins now should end. `is_decoding`: some of its sequences decode, so it
  // follows the last step on the grid.
  Clock::time_point end_of_step(Clock::time_point now, bool is_decoding, int64_t prefill_rows);

 private:
  TickGrid grid_;
  double prefill_rate_;
  int64_t tick_ = 0;  // the last step's
};

}  // namespace paceline::traffic
