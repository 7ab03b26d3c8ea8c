// StepDraws draws the tokens of a step: where the rows were computed, if the runner can, and else
// from one row of logits after the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/constraint_worker.h"
#include "engine/row_draws.h"
#include "engine/sequence.h"
#include "engine/step_batch.h"
#include "engine/step_record.h"
#include "runner/decode_loop.h"
#include "runner/runner.h"
#include "sampling/sampler.h"

namespace paceline {

// Everything referred to must outlive it.
class StepDraws {
 public:
  StepDraws(Runner& runner, Memory& memory, const EngineLimits& limits, StepLog& log);

  // Before the forward: a worker begins to find what constraints allow.
  void begin(const StepBatch& batch);
  // After the forward: lets the runner draw from all rows that it may, at once.
  void draw_rows(const StepBatch& batch);
  // Instead of that: the tokens of a run's step, by rows of the batch.
  void take(const StepBatch& batch, std::span<const DecodedToken> tokens);
  // After the commit, also where it or the forward failed.
  void finish();

  // By rows of the batch.
  std::span<const uint8_t> finite_rows() const { return finite_rows_; }
  // Outputs of the batch that have been drawn from, ascending, and what was drawn.
  std::span<const int64_t> drawn_outputs() const { return drawn_outputs_; }
  std::span<Sample> samples() { return samples_; }

  // The sequence's next token from its row.
  Sample draw(Sequence& sequence, const LogitsRow& row);
  // The token that the sequence has at `position`.
  Sample score(const Sequence& sequence, int64_t position, const LogitsRow& row);

 private:
  bool may_draw(const StepOutput& output);
  void add_draw(const StepOutput& output);
  const TokenRule* rule_of(const Sequence& sequence);
  Sample next_sample(const Sequence& sequence, const LogitsRow& row);

  Runner& runner_;
  const EngineLimits& limits_;
  StepLog& log_;
  Sampler sampler_;
  Distribution distribution_;  // of a drafted token's row
  ConstraintWorker constraint_worker_;
  RowDraws row_draws_;
  std::vector<int64_t> drawn_outputs_;
  std::vector<Sample> samples_;
  std::vector<uint8_t> finite_tokens_;  // of a run's step
  std::span<const uint8_t> finite_rows_;
};

}  // namespace paceline
