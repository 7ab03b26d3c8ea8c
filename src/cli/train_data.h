// The data of a training run: examples, and the batches of its steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/siphash.h"
#include "cli/settings.h"
#include "dataset/batch_plan.h"
#include "dataset/dataset.h"
#include "dataset/length_stage.h"
#include "load/loaded_model.h"

namespace paceline {

struct TrainData {
  std::vector<Example> train;
  std::vector<Example> validation;
  DatasetReport report;
  std::vector<std::string> notes;      // what a person should read first
  std::optional<int32_t> first_token;  // of each sequence of a plain text
};

// Throws Error naming the file and line. `now`: the clock of chat templates, or nothing.
TrainData read_train_data(const TrainChoice& choice, const LoadedModel& model,
                          const std::optional<std::string>& now);

// A digest of all examples: their tokens, and which of these count for the loss.
Hash128 digest_of(const TrainData& data);

// The batches of steps in turn, epoch after epoch.
class TrainBatches {
 public:
  // `examples` must outlive it.
  TrainBatches(const std::vector<Example>& examples, const BatchOptions& options,
               const TrainChoice& choice);

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

// "256:0.45,512:0.85": lengths and the parts of the run until which they hold, both rising. Throws
// UsageError beginning with `where`.
std::vector<LengthStage> parse_length_stages(std::string_view text, std::string_view where);

// Those of --sequence-lengths. Throws UsageError when they aren't valid.
std::vector<LengthStage> length_stages(const TrainChoice& choice);

BatchOptions batch_options(const TrainChoice& choice, const TrainData& data);

// The steps of the run: those asked for, or those of --epochs. A part of an epoch has that part of
// its steps, rounded up.
int64_t num_run_steps(const TrainChoice& choice, const TrainData& data);

// The first batches of the validation's examples, each counted token with the same weight.
std::vector<TrainBatch> validation_batches(const TrainData& data, const TrainChoice& choice);

}  // namespace paceline
