#include "engine/speculation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/state_chunk.h"
#include "base/time_source.h"

namespace paceline {
namespace {

// A draft model must compute the prompt before its first draft. Therefore at most an eighth of the
// decoding sequences begin to draft in one step. While drafts don't pay, one sequence in eight
// tries.
constexpr int64_t kExplorerShare = 8;

bool decodes(const Sequence& sequence) {
  return sequence.num_output() > 0 && sequence.num_computed == sequence.num_tokens() - 1;
}

}  // namespace

Speculation::Speculation(const SpeculationLimits& limits, Drafter* drafter, int64_t vocab_size,
                         bool has_states)
    : limits_(limits), drafter_(drafter), vocab_size_(vocab_size), has_states_(has_states) {
  PL_CHECK(limits.num_tokens >= 0 && limits.num_tokens <= kMaxSpeculativeTokens,
           "drafts have a bounded length");
}

Drafter* Speculation::drafter_of(const Sequence& sequence) {
  if (!sequence.speculates) return nullptr;
  return sequence.request().prediction.empty() ? drafter_ : &predictions_;
}

void Speculation::wish(std::span<const std::unique_ptr<Sequence>> running) {
  adapting_.clear();
  int64_t num_decodes = 0;
  for (const auto& sequence : running) {
    if (sequence->draft.tokens.empty())
      sequence->acceptance.record(0, 0);  // a step without a draft
    sequence->draft.clear();
    sequence->draft_is_forced = false;
    sequence->num_accepted = 0;
    sequence->num_wished = 0;
    if (!decodes(*sequence)) continue;
    ++num_decodes;
    const int64_t most = most_drafted(*sequence);
    if (most > 0 && limits_.adapts && !sequence->draft_is_forced) {
      add_candidate(*sequence, most);
    } else {
      sequence->num_wished = most;
    }
  }
  if (!adapting_.empty()) adapt_lengths(num_decodes);
}

// 0 where the drafter has nothing to propose.
int64_t Speculation::most_drafted(Sequence& sequence) {
  // A draft of k tokens gives k + 1 at most.
  int64_t left = sequence.request().max_tokens - sequence.stats.output_tokens - 1;
  // Rows of the chunk that is open can be taken back, while its last one isn't computed.
  if (has_states_) left = std::min(left, kStateChunk - 1 - sequence.num_tokens() % kStateChunk);
  if (sequence.constraint != nullptr && !sequence.constraint->forced().empty()) {
    sequence.draft_is_forced = true;
    return std::min(left, std::ssize(sequence.constraint->forced()));
  }
  Drafter* drafter = drafter_of(sequence);
  if (drafter == nullptr) return 0;
  const int64_t longest =
      drafter == drafter_ ? limits_.num_tokens : std::max(limits_.num_tokens, kPredictedTokens);
  const int64_t most = std::max<int64_t>(std::min(left, longest), 0);
  if (most == 0 || sequence.draft_state == nullptr) return most;
  return drafter->prospects(*sequence.draft_state, sequence.tokens, most);
}

// A new sequence has the acceptance of all until its own is known. Where a first draft costs much,
// most sequences begin only if the drafts of others pay.
void Speculation::add_candidate(Sequence& sequence, int64_t most) {
  const bool begins = sequence.draft_state == nullptr && drafter_of(sequence) == drafter_;
  AcceptanceRate acceptance = sequence.acceptance;
  if (begins) {
    const bool explores =
        !drafter_->computes_prompts() || sequence.arrival_id % kExplorerShare == 0;
    acceptance = acceptance_.as_prior(explores ? acceptance.steps_since_rejection() : 0);
  }
  adapting_.push_back({&sequence, acceptance, begins, most});
}

// First drafts that cost much are made for few sequences at once.
void Speculation::adapt_lengths(int64_t num_decodes) {
  candidates_.clear();
  for (const Adapting& one : adapting_) candidates_.push_back({&one.acceptance, one.most});
  const auto lengths = lengths_.choose(candidates_, cost_, num_decodes);
  int64_t may_begin = std::max<int64_t>(num_decodes / kExplorerShare, 1);
  for (size_t i = 0; i < adapting_.size(); ++i) {
    const Adapting& one = adapting_[i];
    if (lengths[i] == 0) continue;
    if (one.begins) {
      if (drafter_->computes_prompts() && may_begin-- <= 0) continue;
      one.sequence->acceptance = one.acceptance;
    }
    one.sequence->num_wished = lengths[i];
  }
}

bool Speculation::propose(std::span<const std::unique_ptr<Sequence>> running, StepPlan& plan,
                          std::string& failure) {
  drafting_.clear();
  bool all_were_read = true;
  for (const PlannedSlice& slice : plan.slices) {
    if (slice.num_drafted == 0) continue;
    Sequence& sequence = *running[static_cast<size_t>(slice.sequence)];
    sequence.num_wished = slice.num_drafted;
    sequence.draft_begin = sequence.num_tokens();
    if (sequence.draft_is_forced) {
      const auto forced = sequence.constraint->forced();
      sequence.draft.tokens.assign(forced.begin(), forced.begin() + slice.num_drafted);
      continue;
    }
    all_were_read =
        all_were_read && sequence.draft_state != nullptr && sequence.stats.drafted_tokens > 0;
    drafting_.push_back(&sequence);
  }
  if (drafting_.empty()) return false;
  const auto begin = Clock::now();
  for (Drafter* drafter : {drafter_, static_cast<Drafter*>(&predictions_)}) {
    asking_.clear();
    for (Sequence* sequence : drafting_) {
      if (drafter_of(*sequence) == drafter && drafter != nullptr) asking_.push_back(sequence);
    }
    if (!asking_.empty()) propose_all(*drafter, failure);
  }
  int64_t num_drafted = 0;
  for (PlannedSlice& slice : plan.slices) {
    if (slice.num_drafted == 0) continue;
    Sequence& sequence = *running[static_cast<size_t>(slice.sequence)];
    if (sequence.draft_is_forced) continue;
    cut(sequence, slice.num_drafted);
    const int64_t count = std::ssize(sequence.draft.tokens);
    slice.count -= slice.num_drafted - count;
    slice.num_drafted = count;
    sequence.stats.drafted_tokens += count;
    num_drafted += count;
  }
  // A drafter may read a whole prompt before its first draft, which later drafts don't repeat.
  if (all_were_read) {
    cost_.record_draft(num_drafted, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return true;
}

// Drafts for all of asking_ together.
void Speculation::propose_all(Drafter& drafter, std::string& failure) {
  try {
    requests_.clear();
    std::vector<std::unique_ptr<DraftMask>> masks;
    for (Sequence* sequence : asking_) {
      if (sequence->draft_state == nullptr) {
        sequence->draft_state =
            drafter.begin(sequence->request().prompt, sequence->request().prediction);
      }
      masks.push_back(sequence->constraint == nullptr ? nullptr
                                                      : sequence->constraint->draft_mask());
      requests_.push_back({.state = sequence->draft_state.get(),
                           .tokens = sequence->tokens,
                           .most_tokens = sequence->prompt_length + sequence->request().max_tokens,
                           .sampling = &sequence->sampling,
                           .history = &sequence->history,
                           .most = sequence->num_wished,
                           .wants_distributions = limits_.accept == SpecAccept::rejection,
                           .mask = masks.back().get(),
                           .draft = &sequence->draft});
    }
    drafter.propose(requests_);
  } catch (const std::exception& error) {
    for (Sequence* sequence : asking_) give_up(*sequence, error.what(), failure);
    return;
  }
  for (Sequence* sequence : asking_) {
    if (sequence->draft.failed) give_up(*sequence, "its logits hold a NaN", failure);
  }
}

void Speculation::give_up(Sequence& sequence, std::string_view why, std::string& failure) {
  sequence.draft.clear();
  sequence.draft_state.reset();
  sequence.speculates = false;
  ++counters_.failures;
  if (failure.empty()) failure = fmt::format("drafter: {}", why);
}

// A drafter's mistakes cost its own tokens only. What the constraint forbids isn't computed.
void Speculation::cut(Sequence& sequence, int64_t most) const {
  Draft& draft = sequence.draft;
  const auto is_outside = [this](TokenId id) { return id < 0 || id >= vocab_size_; };
  const auto bad = std::find_if(draft.tokens.begin(), draft.tokens.end(), is_outside);
  auto count = std::min<int64_t>(most, bad - draft.tokens.begin());
  if (sequence.constraint != nullptr) {
    const std::span<const TokenId> known(draft.tokens.data(), static_cast<size_t>(count));
    count = static_cast<int64_t>(sequence.constraint->count_allowed(known));
  }
  draft.tokens.resize(static_cast<size_t>(count));
}

void Speculation::settle(Sequence& sequence, int64_t num_drafted) {
  const int64_t accepted = sequence.num_accepted;
  sequence.acceptance.record(num_drafted, accepted);
  if (drafter_of(sequence) == drafter_) acceptance_.record(num_drafted, accepted);
  ++counters_.drafts;
  counters_.drafted_tokens += num_drafted;
  counters_.accepted_tokens += accepted;
  for (int64_t i = 0; i < accepted; ++i) ++counters_.accepted_at[static_cast<size_t>(i)];
}

void Speculation::record_step(const StepRecord& record, int64_t num_decodes, double seconds) {
  int64_t drafted = 0;
  for (const StepRecord::Draft& draft : record.drafts) drafted += draft.drafted;
  if (num_decodes > 0 && record.num_rows == num_decodes + drafted + record.num_forced) {
    cost_.record(record.num_rows, seconds);
  }
}

}  // namespace paceline
