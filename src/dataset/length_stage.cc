#include "dataset/length_stage.h"

namespace paceline {

int64_t sequence_length_at(std::span<const LengthStage> stages, int64_t step, int64_t num_steps) {
  for (const LengthStage& stage : stages) {
    if (static_cast<double>(step) < stage.until * static_cast<double>(num_steps)) {
      return stage.length;
    }
  }
  return 0;
}

}  // namespace paceline
