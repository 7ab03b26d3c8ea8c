// StepBatch is the batch of one step, and which sequence each of its slices and outputs belongs to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "runner/batch_builder.h"

namespace paceline {

// A row whose state leaves the decoder, and its use.
struct StepOutput {
  Sequence* sequence = nullptr;
  int64_t row = 0;
  int64_t position = 0;
  bool is_drawn = false;  // a token is drawn from it; otherwise it scores the token after it
};

// Outputs that are pooled: consecutive positions of one sequence.
struct PooledSlice {
  Sequence* sequence = nullptr;
  int64_t first_row = 0;
  int64_t first_output = 0;
  int64_t count = 0;
  int64_t first_position = 0;
};

struct StepSlice {
  Sequence* sequence = nullptr;
  int64_t first_row = 0;
  int64_t count = 0;        // rows
  int64_t num_drafted = 0;  // of these, the last ones: tokens that are drafted, not drawn
};

class StepBatch {
 public:
  explicit StepBatch(const StateCache& cache) : builder_(cache) {}

  void clear();
  // The next `count` uncomputed tokens of the sequence, the last `num_drafted` of them of its
  // draft. Their slots are reserved.
  void add(Sequence& sequence, int64_t count, int64_t num_drafted);
  // Adds the copies of blocks, then the outputs: whole rows first, then rows that need only
  // some columns, then those that are pooled.
  void finish();
  // Drops the slices of ended sequences; those of the others keep their rows. Returns whether a run
  // goes on with one of those.
  bool forget_finished();
  // Makes each slice its row of a run's next step: that of its sequence's last token. Returns
  // likewise.
  bool advance();

  const Batch& batch() const { return builder_.batch(); }
  std::span<const StepSlice> slices() const { return slices_; }
  // In the order of the batch's output rows, without pooled ones. Those of a slice follow each
  // other.
  std::span<const StepOutput> outputs() const { return outputs_; }
  int64_t num_whole_outputs() const { return num_whole_outputs_; }
  std::span<const PooledSlice> pooled() const { return pooled_; }

 private:
  void add_outputs(const StepSlice& slice);
  void add_pooled(const StepSlice& slice);

  BatchBuilder builder_;
  std::vector<StepSlice> slices_;
  std::vector<StepOutput> outputs_;
  std::vector<StepOutput> column_outputs_;
  std::vector<PooledSlice> pooled_;
  int64_t num_whole_outputs_ = 0;
};

}  // namespace paceline
