// PoolingStep pools the states of a step's rows, and finishes the vectors of texts that are
// computed to their end.
#pragma once

#include <span>
#include <vector>

#include "engine/step_batch.h"
#include "runner/runner.h"

namespace paceline {

class PoolingStep {
 public:
  // After the batch's rows have been committed. Sequences that failed are left alone; the others
  // get PromptOutputs::pooled with their last row. A vector's bits don't depend on how its rows
  // came.
  void run(Runner& runner, const StepBatch& batch);

 private:
  void pool(Runner& runner, const PooledSlice& slice) const;
  void take_ended(std::span<const StepSlice> slices);

  std::vector<Sequence*> ended_;  // whose last row was in the batch
  std::vector<float> pooled_;     // [ended, hidden]
};

}  // namespace paceline
