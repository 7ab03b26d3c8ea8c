// Draft lengths: how many tokens to draft for each sequence, so that drafts pay at every batch
// size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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
  // Whether the last step had a draft, and all of it was accepted.
  bool is_accepted() const { return is_accepted_; }

  static constexpr int64_t kProbeInterval = 64;  // steps

 private:
  double value_ = 0.7;
  int64_t num_outcomes_ = 4;  // what the prior counts for
  int64_t steps_since_rejection_ = kProbeInterval;
  bool is_accepted_ = false;
};

// A decoding sequence that may draft up to `most` tokens.
struct DraftCandidate {
  const AcceptanceRate* acceptance = nullptr;
  int64_t most = 0;
};

// Reused from step to step.
class DraftLengths {
 public:
  // The lengths of the candidates' drafts in a step of `num_decodes` sequences, candidates and
  // others. A sequence's length is the one that would get the most tokens per second if all
  // sequences drafted as it does: 1 token and a + a^2 + ... + a^k of a draft of k tokens at
  // acceptance a, in cost.seconds(all rows) and the drafter's time. All are 0 unless the step then
  // gets 4 % more tokens per second than without drafts: where products compute tiles of rows, the
  // drafts of a few may cost a whole tile. They are 0 too as long as steps without drafts weren't
  // measured at this batch size. Row counts are tried up to twice the largest measured one. While
  // no draft pays, sequences have 1 now and then, in the same steps, and again where it was
  // accepted and would pay if it always were: costs and texts change. Valid until the next call.
  std::span<const int64_t> choose(std::span<const DraftCandidate> candidates, const RowCost& cost,
                                  int64_t num_decodes);

 private:
  bool draft_as_if_all_did(std::span<const DraftCandidate> candidates, const RowCost& cost,
                           int64_t num_decodes);
  void probe(std::span<const DraftCandidate> candidates, const RowCost& cost, int64_t num_decodes);

  std::vector<int64_t> lengths_;
  int64_t steps_since_probes_ = 0;
};

}  // namespace paceline
