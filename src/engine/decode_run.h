// DecodeRun is the engine's use of a runner's decode loop: steps of the same sequences without a
// plan in between.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/row_draws.h"
#include "engine/sequence.h"
#include "engine/step_batch.h"
#include "runner/decode_loop.h"
#include "runner/runner.h"

namespace paceline {

class DecodeRun {
 public:
  // Runs have at most `max_steps` steps; with fewer than two there are none. The runner must
  // outlive it.
  DecodeRun(Runner& runner, int64_t max_steps);

  // The steps of a run of this many sequences, at most; 1: there are no runs.
  int64_t max_steps(int64_t num_sequences) const;
  // The steps that a decoding sequence could take in a run; 0: it needs the engine between steps.
  int64_t steps_of(const Sequence& sequence) const;

  // Starts a run of the batch's slices. Each has blocks for that many steps, or for all it takes.
  void start(const StepBatch& batch, AdapterTable adapters, int64_t num_steps);
  // Whether steps are left.
  bool is_active() const { return steps_left_ > 0; }
  // Makes the next step, which the runner has begun already, the last one.
  void end_soon() { steps_left_ = 1; }
  // The tokens of the next step, by rows of the batch.
  std::span<const DecodedToken> next();
  // Whether the step behind those tokens, which has begun, computes a row of the batch's slice too.
  bool is_ahead(int64_t slice, const DecodedToken& token) const;
  void stop();

 private:
  int64_t vocab_size_;
  DecodeLoop* loop_;
  int64_t max_steps_;
  int64_t steps_left_ = 0;
  int64_t num_read_ = 0;                                        // steps of the run
  std::vector<std::shared_ptr<const LoadedAdapter>> adapters_;  // which ended sequences leave
  RowDraws draws_;
  std::vector<DecodeTerms> terms_;
};

}  // namespace paceline
