// TrainingRun is a whole run: steps, reports, evaluations, checkpoints, until its end or until it
// is stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/checkpoint_files.h"
#include "trainer/metrics_file.h"
#include "trainer/trainer.h"

namespace paceline {

struct TrainingRunOptions {
  int64_t num_steps = 1000;
  int64_t steps_per_report = 10;
  int64_t steps_per_evaluation = 200;  // 0: only before the first and behind the last
  int64_t steps_per_checkpoint = 100;
  // Evaluations in a row without a lower validation loss that end the run; 0: none do.
  int64_t patience = 0;
};

// Where the data comes from.
struct RunData {
  // The micro-batches of a step, from 0 on.
  std::function<std::vector<TrainBatch>(int64_t step)> batches;
  std::vector<TrainBatch> validation;  // none: no evaluation
};

class TrainingRun {
 public:
  // `directory` exists and is the run's own: checkpoints, metrics.jsonl, at last the result.
  // `trainer` and `result` must outlive it.
  TrainingRun(Trainer& trainer, const std::filesystem::path& directory, TrainingRunOptions options,
              RunIdentity identity, const ResultFiles& result);

  // Continues after the last checkpoint, if there is one. Call it before run(). Returns the step.
  int64_t resume();

  // `report` is called for each line of metrics.jsonl. A stop saves a checkpoint first. An error
  // says which step was saved last.
  TrainingOutcome run(const RunData& data, const std::function<void(const TrainingPoint&)>& report,
                      const std::stop_token& stop);

  const std::vector<TrainingPoint>& points() const { return metrics_->points(); }

 private:
  void save();
  void finish();

  Trainer& trainer_;
  std::filesystem::path directory_;
  TrainingRunOptions options_;
  RunIdentity identity_;
  const ResultFiles& result_;
  CheckpointFiles checkpoints_;
  std::unique_ptr<MetricsFile> metrics_;
  int64_t saved_step_ = 0;
};

}  // namespace paceline
