// BatchPlan is which examples each training step of an epoch computes, and in which rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataset/example.h"
#include "train/train_batch.h"

namespace paceline {

struct BatchOptions {
  int64_t max_seq_length = 2048;  // what a row may hold; best a multiple of kGradientRows
  int64_t batch_size = 4;         // rows of a step
  int64_t micro_batch_rows = 1;   // of these, computed at once
  bool is_packed = true;          // a row holds as many examples as fit, else one
  uint64_t seed = 0;
  // Stands before each sequence that a longer one is cut into; nothing: the token before it does.
  std::optional<int32_t> first_token = {};
};

// The examples of a row, by index. None attends to another.
using PlannedRow = std::vector<int64_t>;

// A pure function of the examples' lengths, the options and the epoch: resuming at any step needs
// no step before it.
//
// The examples are shuffled by seed and epoch. Each goes into the first of the last kOpenRows rows
// that has room for it, or opens a row; an example of n tokens takes n - 1 of a row's
// max_seq_length places. A step is `batch_size` rows in the order they were opened; the last step
// of an epoch may have fewer, so that each example comes exactly once.
class BatchPlan {
 public:
  static constexpr int64_t kOpenRows = 64;

  // `examples` must outlive it. Throws Error invalid when an option is out of range, there is no
  // example, or one has fewer than 2 or more than max_seq_length tokens.
  BatchPlan(std::span<const Example> examples, const BatchOptions& options, int64_t epoch);

  int64_t num_steps() const;
  int64_t num_rows() const { return static_cast<int64_t>(rows_.size()); }
  // The rows of a step, 0 <= step < num_steps().
  std::span<const PlannedRow> rows(int64_t step) const;

  // Tokens of a step that are part of its loss; at least one.
  int64_t num_counted(int64_t step) const;
  // The step's rows in micro-batches of micro_batch_rows, in order. Each row is padded to a
  // multiple of kGradientRows, so that the gradients have the same bits however rows are divided.
  // The weight of a counted token is 1 / num_counted(step): losses and gradients of the
  // micro-batches add up to the mean over the step's counted tokens. Examples of more places than
  // `sequence_length` (0: any) are cut into sequences that don't see each other; each token is
  // predicted once all the same.
  std::vector<TrainBatch> step(int64_t index, int64_t sequence_length = 0) const;

 private:
  void plan_rows(int64_t epoch);
  void add_example(const Example& example, float weight, int64_t sequence_length,
                   TrainBatch& batch) const;

  std::span<const Example> examples_;
  BatchOptions options_;
  std::vector<PlannedRow> rows_;
};

struct StepPlace {
  int64_t epoch = 0;
  int64_t step = 0;  // of the epoch
};

// Where the step of this number, counted from 0 over all epochs, is. Plans the epochs before it.
StepPlace find_step(std::span<const Example> examples, const BatchOptions& options, int64_t number);

// The weights of TrainBatch::add: of predicting tokens 1 to n - 1, `weight` if it counts, else 0.
std::vector<float> loss_weights(const Example& example, float weight);

}  // namespace paceline
