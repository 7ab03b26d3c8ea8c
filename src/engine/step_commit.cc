#include "engine/step_commit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/time_source.h"

namespace paceline {
namespace {

bool contains(std::span<const TokenId> ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// Why a sequence has no next token.
ErrorInfo draw_error(const Sequence& sequence, SampleStatus status) {
  const int64_t position = sequence.num_tokens();
  const auto& constraint = sequence.constraint;
  if (constraint != nullptr && constraint->failure()) {
    const std::string& field = sequence.request().constraint_name;
    return {ErrorCode::invalid,
            fmt::format("{}: at position {}: {}", field, position, constraint->failure()->what()),
            field};
  }
  if (status == SampleStatus::all_forbidden) {
    return {
        ErrorCode::invalid,
        fmt::format("position {}: {} that logit_bias, allowed_token_ids, bad_words, min_tokens "
                    "and the model's generation_config.json allow",
                    position,
                    constraint != nullptr ? "the constraint leaves no token" : "no token is left")};
  }
  return {ErrorCode::numerical,
          fmt::format("position {}: {}", position,
                      status == SampleStatus::nan_logits ? "the logits hold a NaN"
                                                         : "nothing is left to draw from")};
}

}  // namespace

StepCommit::StepCommit(const Parts& parts, TokenTexts token_texts)
    : parts_(parts), token_texts_(std::move(token_texts)) {}

void StepCommit::commit(const StepBatch& batch) {
  computed_at_ = Clock::now();
  for (const StepSlice& slice : batch.slices()) {
    Sequence& sequence = *slice.sequence;
    keep_rows(sequence, slice.first_row, slice.count - slice.num_drafted);
    if (sequence.finished || slice.num_drafted > 0) continue;  // drafts move windows when settled
    parts_.cache.release_outside_window(sequence.blocks, sequence.num_computed);
  }
  commit_rows(batch);
  commit_columns(batch);
  const auto began = Clock::now();
  pooling_.run(parts_.runner, batch);
  parts_.log.record.forward_us += microseconds_of(Clock::now() - began);
  settle_drafts(batch);
  end_prompts(batch);
}

// Fails a sequence with a row that isn't finite before its blocks are published. Drafted rows are
// kept as their tokens are drawn.
void StepCommit::keep_rows(Sequence& sequence, int64_t first_row, int64_t count) {
  const auto finite = parts_.draws.finite_rows().subspan(static_cast<size_t>(first_row),
                                                         static_cast<size_t>(count));
  const auto bad = std::find(finite.begin(), finite.end(), 0);
  if (bad != finite.end()) {
    parts_.requests.fail(sequence, {ErrorCode::numerical,
                                    fmt::format("position {}: the state holds a NaN or an infinity",
                                                sequence.num_computed + (bad - finite.begin()))});
    return;
  }
  sequence.num_computed += count;
  const PrefixUse& prefix = sequence.request().prefix;
  if (!parts_.limits.prefix_cache || prefix.write == PrefixUse::Write::none) return;
  StateCache& cache = parts_.cache;
  sequence.extend_hashes(cache.prefixes(), cache.block_size(), sequence.num_computed);
  cache.publish(sequence.blocks, sequence.hashes, sequence.tokens, sequence.num_computed,
                prefix.write == PrefixUse::Write::keep);
}

void StepCommit::commit_rows(const StepBatch& batch) {
  const auto outputs = batch.outputs();
  const auto drawn = parts_.draws.drawn_outputs();
  const auto samples = parts_.draws.samples();
  int64_t begin = 0;
  for (size_t i = 0; i <= drawn.size(); ++i) {
    const int64_t end = i < drawn.size() ? drawn[i] : batch.num_whole_outputs();
    for (; begin < end; begin += parts_.runner.max_logits_rows()) {
      const int64_t count = std::min(parts_.runner.max_logits_rows(), end - begin);
      commit_logits(outputs.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)), begin);
    }
    if (i == drawn.size()) return;
    const StepOutput& output = outputs[static_cast<size_t>(end)];
    if (takes_row(output)) commit_sample(*output.sequence, std::move(samples[i]));
    begin = end + 1;
  }
}

// Outputs whose logits are read; `first` is the first one's index.
void StepCommit::commit_logits(std::span<const StepOutput> outputs, int64_t first) {
  const auto began = Clock::now();
  const auto logits = parts_.runner.logits(first, std::ssize(outputs));
  parts_.log.record.forward_us += microseconds_of(Clock::now() - began);
  const size_t width = logits.size() / outputs.size();
  for (size_t i = 0; i < outputs.size(); ++i) {
    LogitsRow row{.logits = logits.subspan(i * width, width)};
    if (takes_row(outputs[i])) commit_row(outputs[i], row, static_cast<int64_t>(i));
  }
}

// False for a row of a sequence that failed or ended, and for one behind a drafted token that was
// not drawn. A drafted token that was drawn makes its row one of the sequence's.
bool StepCommit::takes_row(const StepOutput& output) {
  Sequence& sequence = *output.sequence;
  if (sequence.finished) return false;
  if (output.position < sequence.num_computed) return true;
  if (output.position > sequence.num_computed || !sequence.drew_draft(output.position)) {
    return false;
  }
  keep_rows(sequence, output.row, 1);
  return !sequence.finished;
}

void StepCommit::commit_row(const StepOutput& output, LogitsRow& row, int64_t row_index) {
  Sequence& sequence = *output.sequence;
  const bool is_scored = sequence.is_scored(output.position + 1);
  if (is_scored || sequence.request().want_logprobs) {
    row.log_sum_exp = parts_.runner.log_sum_exp(row_index);
  }
  if (is_scored) score(sequence, output.position + 1, row);
  if (output.is_drawn && !sequence.finished) commit_last_row(sequence, row);
}

void StepCommit::score(Sequence& sequence, int64_t position, const LogitsRow& row) {
  Sample sample = parts_.draws.score(sequence, position, row);
  if (sample.status != SampleStatus::ok) {
    parts_.requests.fail(sequence, {ErrorCode::numerical,
                                    fmt::format("logits for position {} hold a NaN", position)});
    return;
  }
  sequence.prompt_outputs->scored.push_back(
      {.id = sample.id, .logprob = sample.logprob, .top_logprobs = std::move(sample.top_logprobs)});
  sequence.next_scored = position + 1;
}

void StepCommit::commit_last_row(Sequence& sequence, const LogitsRow& row) {
  if (sequence.num_output() == 0 && sequence.prompt_outputs) {
    const GenerateRequest& request = sequence.request();
    if (request.want_row) sequence.prompt_outputs->row.assign(row.logits.begin(), row.logits.end());
    for (const TokenId column : request.columns) {
      sequence.prompt_outputs->column_logits.push_back(row.logits[static_cast<size_t>(column)]);
    }
  }
  if (sequence.request().max_tokens == 0) return;
  const size_t first_forked = parts_.requests.running().size();
  parts_.requests.fork_choices(sequence);
  commit_sample(sequence, parts_.draws.draw(sequence, row));
  for (const auto& forked : parts_.requests.running().subspan(first_forked)) {
    commit_sample(*forked, parts_.draws.draw(*forked, row));
  }
}

// The one way of a token into its sequence, whatever drew it.
void StepCommit::commit_sample(Sequence& sequence, Sample sample) {
  const GenerateRequest& request = sequence.request();
  if (sample.status != SampleStatus::ok) {
    return parts_.requests.fail(sequence, draw_error(sequence, sample.status));
  }
  const auto now = computed_at_;
  GenerationStats& stats = sequence.stats;
  stats.logprob += double{sample.logprob};
  if (stats.output_tokens++ == 0) {
    sequence.first_token = now;
    stats.queue_seconds = seconds_of(sequence.started - sequence.shared->submitted);
    stats.prefill_seconds = seconds_of(now - sequence.started);
    stats.time_to_first_token_seconds = seconds_of(now - sequence.shared->submitted);
  }
  stats.decode_seconds = seconds_of(now - sequence.first_token);
  const bool was_first = stats.output_tokens == 1 && !request.not_first.empty();
  if (was_first || stats.output_tokens == request.min_tokens) sequence.update_bias();
  parts_.log.record.tokens.push_back({.id = sequence.arrival_id, .token = sample.id});
  const bool was_drafted = sequence.count_draft(sample.id);
  if (!request.ignore_eos && contains(request.eos_tokens, sample.id)) {
    return parts_.requests.retire(sequence, {.reason = FinishReason::stop});
  }
  if (contains(request.stop_token_ids, sample.id)) {
    return parts_.requests.retire(sequence,
                                  {.reason = FinishReason::stop, .stop_token = sample.id});
  }
  TokenEvent event;
  event.token = TokenLogprob{.id = sample.id, .logprob = sample.logprob};
  event.top_logprobs = std::move(sample.top_logprobs);
  event.was_drafted = was_drafted;
  accept(sequence, event);
}

void StepCommit::accept(Sequence& sequence, TokenEvent& event) {
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
    return parts_.requests.end(sequence, std::move(event),
                               {.reason = FinishReason::stop, .stop_string = match->string_index});
  }
  event.releasable_bytes = sequence.text_bytes;
  if (sequence.constraint != nullptr) {
    sequence.constraint->accept(id);
    if (sequence.constraint->only_ends()) return end_constrained(sequence, event);
  }
  if (sequence.stats.output_tokens >= sequence.request().max_tokens) {
    return parts_.requests.end(sequence, std::move(event), {.reason = FinishReason::length});
  }
  event.releasable_bytes = sequence.matcher.releasable_bytes();
  parts_.requests.post(sequence, std::move(event));
}

// Nothing may follow the output's last token.
void StepCommit::end_constrained(Sequence& sequence, TokenEvent& event) {
  const int64_t min_tokens = sequence.request().min_tokens;
  if (sequence.stats.output_tokens >= min_tokens) {
    return parts_.requests.end(sequence, std::move(event), {.reason = FinishReason::stop});
  }
  parts_.requests.fail(
      sequence,
      {ErrorCode::invalid,
       fmt::format("position {}: the constraint allows nothing further, but min_tokens is {}",
                   sequence.num_tokens(), min_tokens)});
}

// Rows that need some columns only; neighbours with the same columns share a product.
void StepCommit::commit_columns(const StepBatch& batch) {
  const auto outputs = batch.outputs();
  auto begin = static_cast<size_t>(batch.num_whole_outputs());
  while (begin < outputs.size()) {
    const auto& columns = outputs[begin].sequence->request().columns;
    size_t end = begin + 1;
    while (end < outputs.size() &&
           static_cast<int64_t>(end - begin) < parts_.runner.max_logits_rows() &&
           outputs[end].sequence->request().columns == columns) {
      ++end;
    }
    const auto logits = parts_.runner.column_logits(static_cast<int64_t>(begin),
                                                    static_cast<int64_t>(end - begin), columns);
    for (size_t i = begin; i < end; ++i) {
      if (outputs[i].sequence->finished) continue;
      const auto row = logits.subspan((i - begin) * columns.size(), columns.size());
      outputs[i].sequence->prompt_outputs->column_logits.assign(row.begin(), row.end());
    }
    begin = end;
  }
}

// Gives back the slots of drafted tokens that were not drawn.
void StepCommit::settle_drafts(const StepBatch& batch) {
  for (const StepSlice& slice : batch.slices()) {
    if (slice.num_drafted == 0) continue;
    Sequence& sequence = *slice.sequence;
    if (sequence.draft_is_forced) {
      parts_.log.record.num_forced += slice.num_drafted;
    } else {
      parts_.log.record.drafts.push_back({.id = sequence.arrival_id,
                                          .drafted = slice.num_drafted,
                                          .accepted = sequence.num_accepted});
      parts_.speculation.settle(sequence, slice.num_drafted);
    }
    if (!sequence.finished) sequence.give_back_slots(parts_.cache);
  }
}

// A request without tokens to draw ends with its prompt.
void StepCommit::end_prompts(const StepBatch& batch) {
  for (const StepSlice& slice : batch.slices()) {
    Sequence& sequence = *slice.sequence;
    if (sequence.finished || sequence.num_computed < sequence.num_wanted()) continue;
    if (sequence.request().max_tokens > 0) continue;
    sequence.stats.queue_seconds = seconds_of(sequence.started - sequence.shared->submitted);
    sequence.stats.prefill_seconds = seconds_of(computed_at_ - sequence.started);
    parts_.requests.retire(sequence, {.reason = FinishReason::length});
  }
}

std::string_view StepCommit::token_bytes(TokenId id, SpecialTokens specials) const {
  if (!token_texts_) return {};
  const TokenText text = token_texts_(id);
  return text.is_special && specials == SpecialTokens::hidden ? std::string_view() : text.bytes;
}

}  // namespace paceline
