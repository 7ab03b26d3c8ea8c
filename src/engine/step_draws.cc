#include "engine/step_draws.h"

#include "base/error.h"
#include "base/time_source.h"
#include "spec/rejection.h"

namespace paceline {

StepDraws::StepDraws(Runner& runner, Memory& memory, const EngineLimits& limits, StepLog& log)
    : runner_(runner), limits_(limits), log_(log), sampler_(memory, runner.vocab_size()) {}

void StepDraws::begin(const StepBatch& batch) {
  for (const StepSlice& slice : batch.slices()) {
    Sequence& sequence = *slice.sequence;
    const int64_t end = sequence.num_computed + slice.count - slice.num_drafted;
    if (sequence.constraint != nullptr && end == sequence.num_tokens()) {
      constraint_worker_.begin(*sequence.constraint, sequence.draft.tokens);
    }
  }
}

void StepDraws::draw_rows(const StepBatch& batch) {
  finite_rows_ = runner_.finite_rows();
  row_draws_.clear();
  drawn_outputs_.clear();
  if (!limits_.draws_rows || !runner_.draws_rows()) return;
  for (int64_t i = 0; i < batch.num_whole_outputs(); ++i) {
    const StepOutput& output = batch.outputs()[static_cast<size_t>(i)];
    if (!may_draw(output)) continue;
    add_draw(output);
    drawn_outputs_.push_back(i);
  }
  samples_.assign(drawn_outputs_.size(), {});
  if (!samples_.empty()) runner_.draw_rows(drawn_outputs_, row_draws_.draws(), samples_);
}

void StepDraws::take(const StepBatch& batch, std::span<const DecodedToken> tokens) {
  drawn_outputs_.clear();
  samples_.clear();
  finite_tokens_.clear();
  for (const DecodedToken& token : tokens) {
    finite_tokens_.push_back(token.status != DecodedToken::Status::bad_state ? 1 : 0);
  }
  finite_rows_ = finite_tokens_;
  for (const StepOutput& output : batch.outputs()) {
    const DecodedToken& token = tokens[static_cast<size_t>(output.row)];
    PL_CHECK(token.status != DecodedToken::Status::empty, "a running sequence has a slot");
    drawn_outputs_.push_back(std::ssize(samples_));
    // A row with a bad state fails before its token is read.
    samples_.push_back({.status = static_cast<SampleStatus>(token.status),
                        .id = token.id,
                        .logprob = token.logprob,
                        .top_logprobs = token.top_logprobs});
  }
}

void StepDraws::finish() {
  constraint_worker_.finish_all();
  log_.counters.constraints.masked_steps = constraint_worker_.num_found();
  log_.counters.constraints.mask_seconds = constraint_worker_.seconds();
}

// Not where something else reads the logits, and not behind a drafted token where the draw depends
// on more than its row.
bool StepDraws::may_draw(const StepOutput& output) {
  Sequence& sequence = *output.sequence;
  const GenerateRequest& request = sequence.request();
  if (!output.is_drawn || request.max_tokens == 0 || sequence.num_unforked > 0) return false;
  if (sequence.is_scored(output.position + 1)) return false;
  const bool reads_row = request.want_row || !request.columns.empty();
  if (reads_row && sequence.num_output() == 0) return false;
  const bool is_rejecting = limits_.speculation.accept != SpecAccept::coupled;
  if (is_rejecting && sequence.drafted_at(output.position + 1) != nullptr) return false;
  if (output.position < sequence.num_tokens()) {
    return sequence.constraint == nullptr || rule_of(sequence) != nullptr;
  }
  return sequence.constraint == nullptr && !sequence.keeps_history &&
         sequence.stats.output_tokens >= request.min_tokens;
}

void StepDraws::add_draw(const StepOutput& output) {
  Sequence& sequence = *output.sequence;
  TokenDraw draw{.options = sequence.sampling,
                 .history = sequence.history,
                 .position = output.position + 1,
                 .wants_logprob = sequence.request().want_logprobs};
  if (sequence.constraint != nullptr) {
    const TokenRule& rule = *sequence.constraint->rule();
    draw.chosen = rule.forced;
    draw.allowed = rule.allowed;
  }
  row_draws_.add(draw, runner_.vocab_size());
}

// What the constraint says about the next token; null: it can't be followed.
const TokenRule* StepDraws::rule_of(const Sequence& sequence) {
  const auto begin = Clock::now();
  constraint_worker_.finish(*sequence.constraint);
  log_.counters.constraints.wait_seconds += seconds_of(Clock::now() - begin);
  return sequence.constraint->rule();
}

// Under a constraint it is the forced token if there is one; else one that the constraint allows.
Sample StepDraws::draw(Sequence& sequence, const LogitsRow& row) {
  if (sequence.constraint == nullptr) return next_sample(sequence, row);
  const TokenRule* const rule = rule_of(sequence);
  if (rule == nullptr) return {.status = SampleStatus::all_forbidden};
  if (rule->forced) return sampler_.chosen(row, sequence.sampling, *rule->forced);
  LogitsRow allowed = row;
  allowed.allowed = rule->allowed;
  return next_sample(sequence, allowed);
}

// The model's own draw decides, but for speculative sampling, which asks how likely the drafter and
// the model were to draw the drafted token.
Sample StepDraws::next_sample(const Sequence& sequence, const LogitsRow& row) {
  const int64_t position = sequence.num_tokens();
  const TokenId* drafted = sequence.drafted_at(position);
  if (limits_.speculation.accept == SpecAccept::coupled || drafted == nullptr) {
    return sampler_.draw(row, sequence.sampling, sequence.history, position);
  }
  Sample failed;
  failed.status = sampler_.distribution(row, sequence.sampling, sequence.history, distribution_);
  if (failed.status != SampleStatus::ok) return failed;
  const auto index = static_cast<size_t>(position - sequence.draft_begin);
  const auto& proposed = sequence.draft.distributions;
  const RejectionOutcome outcome =
      accept_or_resample(distribution_, index < proposed.size() ? &proposed[index] : nullptr,
                         *drafted, sequence.sampling.seed, position);
  return sampler_.chosen(row, sequence.sampling, outcome.token);
}

Sample StepDraws::score(const Sequence& sequence, int64_t position, const LogitsRow& row) {
  return sampler_.score(row, sequence.tokens[static_cast<size_t>(position)],
                        sequence.sampling.num_top_logprobs);
}

}  // namespace paceline
