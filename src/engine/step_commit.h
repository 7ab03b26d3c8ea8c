// StepCommit makes results of a step's rows: keeps their keys and values, scores, takes tokens into
// their sequences, and ends these.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/pooling_step.h"
#include "engine/request_list.h"
#include "engine/speculation.h"
#include "engine/step_batch.h"
#include "engine/step_draws.h"
#include "engine/step_record.h"
#include "runner/runner.h"
#include "state/state_cache.h"

namespace paceline {

class StepCommit {
 public:
  // What it shares with the other parts of a step; everything must outlive it.
  struct Parts {
    Runner& runner;
    StateCache& cache;
    const EngineLimits& limits;
    RequestList& requests;
    Speculation& speculation;
    StepDraws& draws;
    StepLog& log;
  };
  StepCommit(const Parts& parts, TokenTexts token_texts);

  // After the forward of the batch, and the draws where it was computed.
  void commit(const StepBatch& batch);
  // Any thread, and constant.
  std::string_view token_bytes(TokenId id, SpecialTokens specials) const;

 private:
  // In the order of commit().
  void keep_rows(Sequence& sequence, int64_t first_row, int64_t count);
  void commit_rows(const StepBatch& batch);
  void commit_logits(std::span<const StepOutput> outputs, int64_t first);
  bool takes_row(const StepOutput& output);
  void commit_row(const StepOutput& output, LogitsRow& row, int64_t row_index);
  void score(Sequence& sequence, int64_t position, const LogitsRow& row);
  void commit_last_row(Sequence& sequence, const LogitsRow& row);
  void commit_sample(Sequence& sequence, Sample sample);
  void accept(Sequence& sequence, TokenEvent& event);
  void end_constrained(Sequence& sequence, TokenEvent& event);
  void commit_columns(const StepBatch& batch);
  void settle_drafts(const StepBatch& batch);
  void end_prompts(const StepBatch& batch);

  Parts parts_;
  TokenTexts token_texts_;
  PoolingStep pooling_;
  Clock::time_point computed_at_;  // when the step's forward ended
};

}  // namespace paceline
