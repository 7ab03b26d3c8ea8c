#include "engine/step_record.h"

namespace paceline {

void StepRecord::clear() {
  plan_us = draft_us = forward_us = total_us = 0;
  num_rows = num_forced = num_waiting = 0;
  free_blocks.clear();
  cached_blocks.clear();
  admitted.clear();
  preempted.clear();
  slices.clear();
  drafts.clear();
  blocks.clear();
  tokens.clear();
  finished.clear();
  draft_failure.clear();
}

}  // namespace paceline
