#include "engine/step_record.h"

namespace paceline {

void StepRecord::clear() {
  plan_seconds = forward_seconds = total_seconds = 0;
  num_rows = num_waiting = 0;
  free_blocks.clear();
  cached_blocks.clear();
  admitted.clear();
  preempted.clear();
  slices.clear();
  blocks.clear();
  tokens.clear();
  finished.clear();
}

}  // namespace paceline
