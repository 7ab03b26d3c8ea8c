// The learning rate of each step of a training run.
#pragma once

#include <cstdint>
#include <optional>

#include "paceline/train_options.h"

namespace paceline {

struct LearningRate {
  double peak = 1e-5;
  RateSchedule schedule = RateSchedule::constant;
  int64_t warmup_steps = 0;  // the rate rises in a line, to the peak at the first step behind them
  std::optional<double> warmup_init = {};  // of step 0; nothing: one part of warmup_steps + 1
  int64_t hold_steps = 0;   // steps more at the peak, before linear and cosine begin to fall
  int64_t num_steps = 1;    // of the run: all but the constant one come to `last` at its end
  int64_t decay_steps = 0;  // linear and cosine: steps until `last`; 0: the rest of the run
  double last = 0.0;
  double decay_fraction =
      0.2;  // wsd (warm-up, stable, decay): the last part, a line down to `last`

  // Of step `step`, from 0 on.
  double at(int64_t step) const;
};

}  // namespace paceline
