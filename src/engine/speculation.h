// Speculation asks drafters for the tokens that decoding sequences may draw next.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/sequence.h"
#include "engine/step_record.h"
#include "sched/plan_step.h"
#include "spec/draft_length.h"
#include "spec/drafter.h"
#include "spec/prediction_drafter.h"

namespace paceline {

// A drafter that fails leaves its sequences to plain decoding.
class Speculation {
 public:
  // `drafter` may be null: then only requests with a prediction have drafts.
  // With `has_states`, drafts leave open the chunk that their rows are in.
  Speculation(const SpeculationLimits& limits, Drafter* drafter, int64_t vocab_size,
              bool has_states);

  // Sets how many tokens each running sequence would like to draft in the coming step.
  void wish(std::span<const std::unique_ptr<Sequence>> running);
  // Whether tokens are ever drafted for the sequence.
  bool may_draft(const Sequence& sequence) const {
    return sequence.speculates && (drafter_ != nullptr || !sequence.request().prediction.empty());
  }
  // Fills the drafts that the plan has rows for, and takes away rows that stay empty. False when
  // there was nothing to draft. `failure` says what went wrong in a drafter, if anything did.
  bool propose(std::span<const std::unique_ptr<Sequence>> running, StepPlan& plan,
               std::string& failure);
  // Counts what became of a sequence's draft.
  void settle(Sequence& sequence, int64_t num_drafted);
  // Learns what rows cost, from a step without prompts.
  void record_step(const StepRecord& record, int64_t num_decodes, double seconds);

  const SpeculationCounters& counters() const { return counters_; }

 private:
  Drafter* drafter_of(const Sequence& sequence);
  int64_t most_drafted(Sequence& sequence);
  void adapt_lengths(int64_t num_decodes);
  void add_candidate(Sequence& sequence, int64_t most);
  void propose_all(Drafter& drafter, std::string& failure);
  void give_up(Sequence& sequence, std::string_view why, std::string& failure);
  void cut(Sequence& sequence, int64_t most) const;

  SpeculationLimits limits_;
  Drafter* drafter_;
  PredictionDrafter predictions_;
  int64_t vocab_size_;
  bool has_states_;
  RowCost cost_;
  AcceptanceRate acceptance_;  // of all sequences
  DraftLengths lengths_;
  SpeculationCounters counters_;
  // A sequence that would draft as many tokens as pay.
  struct Adapting {
    Sequence* sequence;
    AcceptanceRate acceptance;  // assumed
    bool begins;                // with its first draft
    int64_t most;
  };
  std::vector<Adapting> adapting_;
  std::vector<DraftCandidate> candidates_;  // of these
  std::vector<DraftRequest> requests_;
  std::vector<Sequence*> drafting_;
  std::vector<Sequence*> asking_;  // of these, one drafter's
};

}  // namespace paceline
