// Training is a run that trains LoRA matrices beside a model's weights, or all of them, from files
// to files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "paceline/error.h"
#include "paceline/results.h"
#include "paceline/train_options.h"

namespace paceline {

// What a run will do.
struct TrainingPlan {
  std::string data_file = {};
  std::string data_format = {};  // "chats", "plain text", ...
  int64_t num_examples = 0;
  int64_t num_tokens = 0;
  int64_t num_counted_tokens = 0;  // of these, part of the loss
  int64_t num_validation_examples = 0;
  int64_t num_steps = 0;
  int64_t num_modules = 0;               // with LoRA matrices; 0: all weights are trained
  int64_t num_parameters = 0;            // that are trained
  DataType dtype = DataType::automatic;  // of these
  std::vector<std::string> notes = {};   // what a person should read first
  WeightsCacheUse weights_cache = {};
};

struct StepCost {
  double loss = 0;
  int64_t num_tokens = 0;  // part of the loss
  double seconds = 0;
  uint64_t peak_bytes = 0;
};

// One thread at a time. LLMs of the same process aren't disturbed, but share the machine.
class Training {
 public:
  // Reads the model and the data, and checks every option and example; writes nothing. Throws Error
  // as LLM::load does; invalid for options that don't go together, naming the flag of `paceline
  // train`, and for examples, naming file and line; unsupported for models that can't be trained.
  static Training open(const TrainOptions& options);

  Training(Training&&) noexcept;
  Training& operator=(Training&&) noexcept;
  ~Training();

  const TrainingPlan& plan() const;

  // Takes a first step and keeps nothing of it but its cost. The run is over.
  StepCost measure_step();

  // Takes the directory, for this process alone, and returns the step after which the run goes on:
  // that of the last checkpoint, or 0. Throws Error invalid for a directory that isn't empty, or
  // whose run had other options or data; exhausted while another process has it.
  int64_t begin();

  // begin(), unless that was called, and all steps. `report` is called on this thread for each line
  // of metrics.jsonl. A stop takes effect after the step in progress, and saves a checkpoint.
  // Throws Error exhausted when a file can't be written whole, numerical when a loss isn't finite;
  // the message names the checkpoint that was saved last. The run is over, whatever happens.
  TrainingOutcome run(const std::function<void(const TrainingPoint&)>& report = nullptr,
                      const std::stop_token& stop = {});

 private:
  struct State;
  explicit Training(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace paceline
