// EngineCore after the runner: publishes blocks, scores, draws, forks and ends sequences.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/time_source.h"
#include "engine/engine_core.h"
#include "spec/rejection.h"

namespace paceline {
namespace {

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

SampleStatus status_of(const DecodedToken& token) {
  switch (token.status) {
    case DecodedToken::Status::ok:
      return SampleStatus::ok;
    case DecodedToken::Status::nan_logits:
      return SampleStatus::nan_logits;
    case DecodedToken::Status::all_forbidden:
      return SampleStatus::all_forbidden;
    default:
      return SampleStatus::nothing_to_draw;
  }
}

bool contains(std::span<const TokenId> ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

void EngineCore::commit() {
  draw_rows();
  computed_at_ = Clock::now();
  for (const StepSlice& slice : batch_.slices()) commit_slice(slice);
  commit_rows();
  commit_columns();
  commit_pooled();
  settle_drafts();
  // A request without tokens to draw ends with its prompt.
  for (const StepSlice& slice : batch_.slices()) {
    Sequence& sequence = *slice.sequence;
    if (sequence.finished || sequence.num_computed < sequence.num_wanted()) continue;
    if (sequence.request().max_tokens > 0) continue;
    sequence.stats.queue_seconds = seconds_between(sequence.shared->submitted, sequence.started);
    sequence.stats.prefill_seconds = seconds_between(sequence.started, computed_at_);
    retire(sequence, {.reason = FinishReason::length, .stop_token = {}, .stop_string = {}});
  }
}

// The tokens of one step of a run, whose rows were computed and drawn from where the run goes on.
void EngineCore::commit_run(std::span<const DecodedToken> tokens) {
  computed_at_ = Clock::now();
  const auto sequences = run_.sequences();
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i] == nullptr) continue;
    Sequence& sequence = *sequences[i];
    const DecodedToken& token = tokens[i];
    PL_CHECK(token.status != DecodedToken::Status::empty, "a running sequence has a slot");
    const uint8_t is_finite = token.status != DecodedToken::Status::bad_state ? 1 : 0;
    keep_rows(sequence, std::span(&is_finite, 1));
    if (sequence.finished) continue;
    cache_.release_outside_window(sequence.blocks, sequence.num_computed);
    commit_sample(sequence, {.status = status_of(token),
                             .id = token.id,
                             .logprob = token.logprob,
                             .top_logprobs = token.top_logprobs});
  }
}

// Drafted rows are kept as their tokens are drawn.
void EngineCore::commit_slice(const StepSlice& slice) {
  Sequence& sequence = *slice.sequence;
  keep_rows(sequence, slice.first_row, slice.count - slice.num_drafted);
  if (sequence.finished || slice.num_drafted > 0) return;
  cache_.release_outside_window(sequence.blocks, sequence.num_computed);
}

// Fails a sequence with a row that isn't finite before its blocks are published.
void EngineCore::keep_rows(Sequence& sequence, int64_t first_row, int64_t count) {
  keep_rows(sequence, runner_.finite_rows().subspan(static_cast<size_t>(first_row),
                                                    static_cast<size_t>(count)));
}

void EngineCore::keep_rows(Sequence& sequence, std::span<const uint8_t> finite) {
  const auto bad = std::find(finite.begin(), finite.end(), 0);
  if (bad != finite.end()) {
    fail(sequence,
         {ErrorCode::numerical, fmt::format("position {}: the state holds a NaN or an infinity",
                                            sequence.num_computed + (bad - finite.begin()))});
    return;
  }
  sequence.num_computed += std::ssize(finite);
  const PrefixUse& prefix = sequence.request().prefix;
  if (!limits_.prefix_cache || prefix.write == PrefixUse::Write::none) return;
  sequence.extend_hashes(cache_.prefixes(), cache_.block_size(), sequence.num_computed);
  cache_.publish(sequence.blocks, sequence.hashes, sequence.tokens, sequence.num_computed,
                 prefix.write == PrefixUse::Write::keep);
}

// Lets the runner draw from all rows that it may, at once.
void EngineCore::draw_rows() {
  row_draws_.clear();
  drawn_outputs_.clear();
  if (!limits_.draws_rows || !runner_.draws_rows()) return;
  for (int64_t i = 0; i < batch_.num_whole_outputs(); ++i) {
    const StepOutput& output = batch_.outputs()[static_cast<size_t>(i)];
    if (!may_draw(output)) continue;
    add_draw(output);
    drawn_outputs_.push_back(i);
  }
  if (drawn_outputs_.empty()) return;
  samples_.assign(drawn_outputs_.size(), {});
  const auto began = Clock::now();
  runner_.draw_rows(drawn_outputs_, row_draws_.draws(), samples_);
  record_.forward_us += microseconds_of(Clock::now() - began);
}

// Not where something else reads the logits, and not behind a drafted token where the draw depends
// on more than its row.
bool EngineCore::may_draw(const StepOutput& output) {
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

void EngineCore::add_draw(const StepOutput& output) {
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
  row_draws_.add(draw, vocab_size());
}

void EngineCore::commit_rows() {
  const int64_t num_outputs = batch_.num_whole_outputs();
  size_t num_drawn = 0;
  for (int64_t begin = 0; begin < num_outputs;) {
    const int64_t next_drawn =
        num_drawn < drawn_outputs_.size() ? drawn_outputs_[num_drawn] : num_outputs;
    if (begin < next_drawn) {
      const int64_t count = std::min(runner_.max_logits_rows(), next_drawn - begin);
      commit_logits(begin, count);
      begin += count;
      continue;
    }
    const StepOutput& output = batch_.outputs()[static_cast<size_t>(begin)];
    if (takes_row(output)) commit_sample(*output.sequence, std::move(samples_[num_drawn]));
    ++num_drawn;
    ++begin;
  }
}

void EngineCore::commit_logits(int64_t first, int64_t count) {
  const auto began = Clock::now();
  const std::span<const float> logits = runner_.logits(first, count);
  record_.forward_us += microseconds_of(Clock::now() - began);
  for (int64_t i = 0; i < count; ++i) {
    const StepOutput& output = batch_.outputs()[static_cast<size_t>(first + i)];
    const auto width = static_cast<size_t>(vocab_size());
    LogitsRow row{.logits = logits.subspan(static_cast<size_t>(i) * width, width)};
    if (takes_row(output)) commit_row(output, row, i);
  }
}

// False for a row of a sequence that failed or ended, and for one behind a drafted token that was
// not drawn. A drafted token that was drawn makes its row one of the sequence's.
bool EngineCore::takes_row(const StepOutput& output) {
  Sequence& sequence = *output.sequence;
  if (sequence.finished) return false;
  if (output.position < sequence.num_computed) return true;
  if (output.position > sequence.num_computed || !sequence.drew_draft(output.position)) {
    return false;
  }
  keep_rows(sequence, output.row, 1);
  return !sequence.finished;
}

void EngineCore::commit_row(const StepOutput& output, LogitsRow& row, int64_t row_index) {
  Sequence& sequence = *output.sequence;
  const bool is_scored = sequence.is_scored(output.position + 1);
  if (is_scored || sequence.request().want_logprobs) {
    row.log_sum_exp = runner_.log_sum_exp(row_index);
  }
  if (is_scored) score(output, row);
  if (output.is_drawn && !sequence.finished) commit_last_row(sequence, row);
}

// Gives back the slots of drafted tokens that were not drawn.
void EngineCore::settle_drafts() {
  for (const StepSlice& slice : batch_.slices()) {
    if (slice.num_drafted == 0) continue;
    Sequence& sequence = *slice.sequence;
    if (sequence.draft_is_forced) {
      record_.num_forced += slice.num_drafted;
    } else {
      record_.drafts.push_back({.id = sequence.arrival_id,
                                .drafted = slice.num_drafted,
                                .accepted = sequence.num_accepted});
      speculation_.settle(sequence, slice.num_drafted);
    }
    if (sequence.finished) continue;
    cache_.truncate(sequence.blocks, sequence.num_computed);
    cache_.release_outside_window(sequence.blocks, sequence.num_computed);
  }
}

void EngineCore::score(const StepOutput& output, const LogitsRow& row) {
  Sequence& sequence = *output.sequence;
  const int64_t position = output.position + 1;
  Sample sample = sampler_.score(row, sequence.tokens[static_cast<size_t>(position)],
                                 sequence.sampling.num_top_logprobs);
  if (sample.status != SampleStatus::ok) {
    fail(sequence,
         {ErrorCode::numerical, fmt::format("logits for position {} hold a NaN", position)});
    return;
  }
  sequence.prompt_outputs->scored.push_back(
      {.id = sample.id, .logprob = sample.logprob, .top_logprobs = std::move(sample.top_logprobs)});
  sequence.next_scored = position + 1;
}

// Rows that need some columns only; neighbours with the same columns share a product.
void EngineCore::commit_columns() {
  const auto outputs = batch_.outputs();
  auto begin = static_cast<size_t>(batch_.num_whole_outputs());
  while (begin < outputs.size()) {
    const auto& columns = outputs[begin].sequence->request().columns;
    size_t end = begin + 1;
    while (end < outputs.size() && static_cast<int64_t>(end - begin) < runner_.max_logits_rows() &&
           outputs[end].sequence->request().columns == columns) {
      ++end;
    }
    const auto logits = runner_.column_logits(static_cast<int64_t>(begin),
                                              static_cast<int64_t>(end - begin), columns);
    for (size_t i = begin; i < end; ++i) {
      if (outputs[i].sequence->finished) continue;
      const auto row = logits.subspan((i - begin) * columns.size(), columns.size());
      outputs[i].sequence->prompt_outputs->column_logits.assign(row.begin(), row.end());
    }
    begin = end;
  }
}

void EngineCore::commit_pooled() {
  const auto began = Clock::now();
  pooling_.run(runner_, batch_);
  record_.forward_us += microseconds_of(Clock::now() - began);
}

void EngineCore::commit_last_row(Sequence& sequence, const LogitsRow& row) {
  if (sequence.num_output() == 0 && sequence.prompt_outputs) {
    const GenerateRequest& request = sequence.request();
    if (request.want_row) sequence.prompt_outputs->row.assign(row.logits.begin(), row.logits.end());
    for (const TokenId column : request.columns) {
      sequence.prompt_outputs->column_logits.push_back(row.logits[static_cast<size_t>(column)]);
    }
  }
  if (sequence.request().max_tokens == 0) return;
  const size_t first_forked = forked_.size();
  if (sequence.num_unforked > 0) fork_choices(sequence);
  draw(sequence, row);
  for (size_t i = first_forked; i < forked_.size(); ++i) draw(*forked_[i], row);
}

// The other choices share the prompt's blocks and its last row. Those beyond max_num_seqs wait, and
// find the prompt in the prefix cache.
void EngineCore::fork_choices(Sequence& sequence) {
  auto num_running = static_cast<int64_t>(running_.size() + admitted_.size() + forked_.size());
  const int32_t num_choices = sequence.num_unforked;
  sequence.num_unforked = 0;
  for (int32_t choice = 1; choice <= num_choices; ++choice) {
    auto forked = std::make_unique<Sequence>(sequence.shared, choice, cache_);
    forked->hashes = sequence.hashes;
    forked->started = sequence.started;
    forked->has_started = true;
    forked->is_deferred = sequence.is_deferred;
    if (num_running >= plan_limits_.max_sequences) {
      forked->waiting_since = counters_.steps;
      enqueue(std::move(forked));
      continue;
    }
    ++num_running;
    forked->blocks = cache_.fork(sequence.blocks);
    forked->num_computed = sequence.num_computed;
    forked->stats.cached_tokens = sequence.num_computed;
    forked_.push_back(std::move(forked));
  }
}

// The model's own draw decides, but for speculative sampling, which asks how likely the drafter and
// the model were to draw the drafted token.
Sample EngineCore::next_sample(Sequence& sequence, const LogitsRow& row) {
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

// What the constraint says about the next token; null: it can't be followed.
const TokenRule* EngineCore::rule_of(Sequence& sequence) {
  const auto begin = Clock::now();
  constraint_worker_.finish(*sequence.constraint);
  counters_.constraints.wait_seconds += seconds_between(begin, Clock::now());
  return sequence.constraint->rule();
}

// Takes the forced token if there is one; else draws among the tokens that the constraint allows.
Sample EngineCore::constrained_sample(Sequence& sequence, const LogitsRow& row) {
  const TokenRule* const rule = rule_of(sequence);
  if (rule == nullptr) return {.status = SampleStatus::all_forbidden};
  if (rule->forced) return sampler_.chosen(row, sequence.sampling, *rule->forced);
  LogitsRow allowed = row;
  allowed.allowed = rule->allowed;
  return next_sample(sequence, allowed);
}

void EngineCore::fail_draw(Sequence& sequence, SampleStatus status) {
  const int64_t position = sequence.num_tokens();
  const auto& constraint = sequence.constraint;
  if (constraint != nullptr && constraint->failure()) {
    fail(sequence, {ErrorCode::invalid,
                    fmt::format("{}: at position {}: {}", sequence.request().constraint_name,
                                position, constraint->failure()->what()),
                    sequence.request().constraint_name});
  } else if (status == SampleStatus::all_forbidden) {
    fail(sequence,
         {ErrorCode::invalid,
          fmt::format(
              "position {}: {} that logit_bias, allowed_token_ids, bad_words, min_tokens "
              "and the model's generation_config.json allow",
              position,
              constraint != nullptr ? "the constraint leaves no token" : "no token is left")});
  } else {
    fail(sequence, {ErrorCode::numerical, fmt::format("position {}: {}", position,
                                                      status == SampleStatus::nan_logits
                                                          ? "the logits hold a NaN"
                                                          : "nothing is left to draw from")});
  }
}

void EngineCore::draw(Sequence& sequence, const LogitsRow& row) {
  commit_sample(sequence, sequence.constraint != nullptr ? constrained_sample(sequence, row)
                                                         : next_sample(sequence, row));
}

// The one way of a token into its sequence, whatever drew it.
void EngineCore::commit_sample(Sequence& sequence, Sample sample) {
  const GenerateRequest& request = sequence.request();
  if (sample.status != SampleStatus::ok) {
    fail_draw(sequence, sample.status);
    return;
  }
  const auto now = computed_at_;
  GenerationStats& stats = sequence.stats;
  stats.logprob += double{sample.logprob};
  if (stats.output_tokens++ == 0) {
    sequence.first_token = now;
    stats.queue_seconds = seconds_between(sequence.shared->submitted, sequence.started);
    stats.prefill_seconds = seconds_between(sequence.started, now);
    stats.time_to_first_token_seconds = seconds_between(sequence.shared->submitted, now);
  }
  stats.decode_seconds = seconds_between(sequence.first_token, now);
  const bool was_first = stats.output_tokens == 1 && !request.not_first.empty();
  if (was_first || stats.output_tokens == request.min_tokens) sequence.update_bias();
  record_.tokens.push_back({.id = sequence.arrival_id, .token = sample.id});
  const bool was_drafted = sequence.count_draft(sample.id);
  if (!request.ignore_eos && contains(request.eos_tokens, sample.id)) {
    retire(sequence, {.reason = FinishReason::stop, .stop_token = {}, .stop_string = {}});
    return;
  }
  if (contains(request.stop_token_ids, sample.id)) {
    retire(sequence, {.reason = FinishReason::stop, .stop_token = sample.id, .stop_string = {}});
    return;
  }
  TokenEvent event;
  event.token = TokenLogprob{.id = sample.id, .logprob = sample.logprob};
  event.top_logprobs = std::move(sample.top_logprobs);
  event.was_drafted = was_drafted;
  accept(sequence, event);
}

void EngineCore::accept(Sequence& sequence, TokenEvent& event) {
  const TokenId id = event.token->id;
  sequence.tokens.push_back(id);
  if (sequence.keeps_history) sequence.history.add_output(id);
  const std::string_view bytes = token_bytes(id, sequence.request().specials);
  const auto match = sequence.matcher.push(bytes);
  sequence.text_bytes += static_cast<int64_t>(bytes.size());
  if (sequence.prompt_outputs) event.prompt = std::move(sequence.prompt_outputs);
  event.choice = sequence.choice;
  if (match) {
    const std::string& stop =
        sequence.request().stop_strings[static_cast<size_t>(match->string_index)];
    const bool includes_stop = sequence.request().includes_stop;
    event.releasable_bytes = match->begin + (includes_stop ? std::ssize(stop) : 0);
    end(sequence, std::move(event),
        {.reason = FinishReason::stop, .stop_token = {}, .stop_string = match->string_index});
    return;
  }
  if (sequence.constraint != nullptr && follow_constraint(sequence, event)) return;
  if (sequence.stats.output_tokens >= sequence.request().max_tokens) {
    event.releasable_bytes = sequence.text_bytes;
    end(sequence, std::move(event),
        {.reason = FinishReason::length, .stop_token = {}, .stop_string = {}});
    return;
  }
  event.releasable_bytes = sequence.matcher.releasable_bytes();
  post(sequence, std::move(event));
}

// True when the output ends here, as nothing may follow it.
bool EngineCore::follow_constraint(Sequence& sequence, TokenEvent& event) {
  sequence.constraint->accept(event.token->id);
  if (!sequence.constraint->only_ends()) return false;
  event.releasable_bytes = sequence.text_bytes;
  const int64_t min_tokens = sequence.request().min_tokens;
  if (sequence.stats.output_tokens < min_tokens) {
    fail(sequence,
         {ErrorCode::invalid,
          fmt::format("position {}: the constraint allows nothing further, but min_tokens is {}",
                      sequence.num_tokens(), min_tokens)});
    return true;
  }
  end(sequence, std::move(event),
      {.reason = FinishReason::stop, .stop_token = {}, .stop_string = {}});
  return true;
}

}  // namespace paceline
