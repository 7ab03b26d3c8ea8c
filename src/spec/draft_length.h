// Draft length: how many tokens to draft for a sequence, so that drafts pay at every batch size.
#pragma once

#include <cstdint>

#include "spec/row_cost.h"

namespace paceline {

// The probability that the model draws a drafted token, given that it drew the ones before it: of
// one sequence, the recent past counting most. A value.
class AcceptanceRate {
 public:
  // After every step that decoded or verified the sequence: of `drafted` tokens the first
  // `accepted` were drawn. Call it with (0, 0) after a step without a draft too.
  void record(int64_t drafted, int64_t accepted);

  // The rate of a new sequence, as far as others tell: its own drafts soon count more.
  // `steps_since_rejection` says how soon it is tried where drafts don't pay.
  AcceptanceRate as_prior(int64_t steps_since_rejection) const {
    AcceptanceRate prior;
    prior.value_ = value_;
    prior.steps_since_rejection_ = steps_since_rejection;
    return prior;
  }

  double value() const { return value_; }
  // Steps since a drafted token was last rejected; at least kProbeInterval at the beginning and
  // when all of the last draft was accepted.
  int64_t steps_since_rejection() const { return steps_since_rejection_; }

  static constexpr int64_t kProbeInterval = 64;  // steps

 private:
  double value_ = 0.7;
  int64_t num_outcomes_ = 4;  // what the prior counts for
  int64_t steps_since_rejection_ = kProbeInterval;
};

// The k <= `most` for which `num_decodes` sequences that all draft k tokens at this acceptance get
// the most tokens per second: (1 + a + ... + a^k) / (seconds(num_decodes * (1 + k)) + the
// drafter's). 0 unless that is 2 % more than without drafts, and as long as steps without drafts
// weren't measured at this batch size. Row counts are tried up to twice the largest measured one.
// Where no draft pays, 1 now and then: costs and texts change.
int64_t draft_length(const AcceptanceRate& acceptance, const RowCost& cost, int64_t num_decodes,
                     int64_t most);

}  // namespace paceline
