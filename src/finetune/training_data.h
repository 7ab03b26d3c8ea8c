// The data of a training run: examples, and the batches of its steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/siphash.h"
#include "dataset/batch_plan.h"
#include "dataset/dataset.h"
#include "load/loaded_model.h"
#include "paceline/train_options.h"

namespace paceline {

struct TrainingData {
  std::vector<Example> train;
  std::vector<Example> validation;
  DatasetReport report;
  std::vector<std::string> notes;      // what a person should read first
  std::optional<int32_t> first_token;  // of each sequence of a plain text
};

// Throws Error naming the file and line. `now`: the clock of chat templates, or nothing.
TrainingData read_training_data(const TrainOptions& options, const LoadedModel& model,
                                const std::optional<std::string>& now);

// A digest of all examples: their tokens, and which of these count for the loss.
Hash128 digest_of(const TrainingData& data);

// The batches of steps in turn, epoch after epoch.
class TrainBatches {
 public:
  // `examples` must outlive it.
  TrainBatches(const std::vector<Example>& examples, const BatchOptions& batches,
               const TrainOptions& options);

  // Of step `number`, counted over all epochs.
  std::vector<TrainBatch> step(int64_t number);

 private:
  void go_to(int64_t number);

  const std::vector<Example>& examples_;
  BatchOptions options_;
  std::vector<LengthStage> stages_;
  int64_t num_steps_;  // of the run
  int64_t epoch_ = 0;
  int64_t first_step_ = 0;  // of the epoch
  std::unique_ptr<BatchPlan> plan_;
};

BatchOptions batch_options(const TrainOptions& options, const TrainingData& data);

// The steps of the run: those asked for, or those of --epochs. A part of an epoch has that part of
// its steps, rounded up.
int64_t num_run_steps(const TrainOptions& options, const TrainingData& data);

// The first batches of the validation's examples, each counted token with the same weight.
std::vector<TrainBatch> validation_batches(const TrainingData& data, const TrainOptions& options);

}  // namespace paceline
