// Pacer says when a step ends: decodes on the ticks of a fixed grid, prefills as long as they take.
#pragma once

#include <cstdint>

#include "traffic/tick_grid.h"

namespace paceline::traffic {

// The schedule is absolute: a step that came late is followed by steps in a hurry, until each token
// is out at the tick it was due; only who is kMostTicksBehind late gives those ticks up.
class Pacer {
 public:
  static constexpr int64_t kMostTicksBehind = 20;

  // Decode steps and prompt tokens per second.
  Pacer(double rate, double prefill_rate) : grid_(rate), prefill_rate_(prefill_rate) {}

  // When a step that begins now is to end. `is_decoding`: some of its sequences have begun to
  // speak, so that it is the step behind the last one.
  Clock::time_point end_of_step(Clock::time_point now, bool is_decoding, int64_t prefill_rows);

 private:
  TickGrid grid_;
  double prefill_rate_;
  int64_t tick_ = 0;  // the last step's
};

}  // namespace paceline::traffic
