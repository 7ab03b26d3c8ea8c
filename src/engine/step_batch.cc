#include "engine/step_batch.h"

#include <algorithm>

#include "base/error.h"

namespace paceline {
namespace {

// Whether it needs some columns of its last row and nothing else.
bool wants_columns_only(const GenerateRequest& request) {
  return !request.columns.empty() && request.max_tokens == 0 && !request.want_row;
}

}  // namespace

void StepBatch::clear() {
  builder_.clear();
  slices_.clear();
  outputs_.clear();
  column_outputs_.clear();
  pooled_.clear();
  num_whole_outputs_ = 0;
}

void StepBatch::add(Sequence& sequence, int64_t count, int64_t num_drafted) {
  const int64_t first = sequence.num_computed;
  const int64_t num_known = count - num_drafted;
  PL_CHECK(num_known > 0 && first + num_known <= sequence.num_tokens(),
           "slice beyond the sequence");
  PL_CHECK(num_drafted == 0 || first + num_known == sequence.num_tokens(),
           "a draft follows the last token");
  const int64_t first_row = builder_.add(
      {.tokens = std::span(sequence.tokens)
                     .subspan(static_cast<size_t>(first), static_cast<size_t>(num_known)),
       .drafted = std::span(sequence.draft.tokens).first(static_cast<size_t>(num_drafted)),
       .first_position = first,
       .blocks = sequence.blocks,
       .adapter = sequence.adapter,
       .stretched = sequence.request().prefix.scope.stretched,
       .second_text = sequence.request().second_text});
  slices_.push_back(
      {.sequence = &sequence, .first_row = first_row, .count = count, .num_drafted = num_drafted});
  if (sequence.request().pooling) {
    add_pooled(slices_.back());
  } else {
    add_outputs(slices_.back());
  }
}

// The rows of the slice that are pooled: one, or all.
void StepBatch::add_pooled(const StepSlice& slice) {
  Sequence& sequence = *slice.sequence;
  const int64_t first = sequence.num_computed, end = first + slice.count;
  const Pooling how = *sequence.request().pooling;
  const int64_t wanted =
      how == Pooling::last ? sequence.num_tokens() - 1 : sequence.request().pool_from;
  const int64_t begin = std::max(first, wanted);
  int64_t count = end - begin;
  if (how == Pooling::first) count = begin == wanted ? std::min<int64_t>(count, 1) : 0;
  if (count <= 0) return;
  pooled_.push_back({.sequence = &sequence,
                     .first_row = slice.first_row + begin - first,
                     .count = count,
                     .first_position = begin});
}

void StepBatch::add_outputs(const StepSlice& slice) {
  Sequence& sequence = *slice.sequence;
  const bool wants_last_row = sequence.request().needs_last_row();
  for (int64_t i = 0; i < slice.count; ++i) {
    const int64_t position = sequence.num_computed + i;
    const bool is_drawn = wants_last_row && position >= sequence.num_tokens() - 1;
    if (!is_drawn && !sequence.is_scored(position + 1)) continue;
    const bool needs_columns = is_drawn && wants_columns_only(sequence.request());
    (needs_columns ? column_outputs_ : outputs_)
        .push_back({.sequence = &sequence,
                    .row = slice.first_row + i,
                    .position = position,
                    .is_drawn = is_drawn});
  }
}

void StepBatch::finish() {
  builder_.add_copies();
  num_whole_outputs_ = std::ssize(outputs_);
  outputs_.insert(outputs_.end(), column_outputs_.begin(), column_outputs_.end());
  for (const StepOutput& output : outputs_) builder_.add_output(output.row);
  int64_t next = std::ssize(outputs_);
  for (PooledSlice& slice : pooled_) {
    slice.first_output = next;
    next += slice.count;
    for (int64_t i = 0; i < slice.count; ++i) builder_.add_output(slice.first_row + i);
  }
}

bool StepBatch::forget_finished() {
  bool is_ahead = false;
  std::erase_if(slices_, [&](const StepSlice& slice) {
    is_ahead |= slice.sequence->finished && slice.sequence->is_ahead;
    return slice.sequence->finished;
  });
  return is_ahead;
}

bool StepBatch::advance() {
  const bool is_ahead = forget_finished();
  outputs_.clear();
  for (const StepSlice& slice : slices_) {
    outputs_.push_back({.sequence = slice.sequence,
                        .row = slice.first_row,
                        .position = slice.sequence->num_computed,
                        .is_drawn = true});
  }
  num_whole_outputs_ = std::ssize(outputs_);
  return is_ahead;
}

}  // namespace paceline
