#include "engine/step_batch.h"

#include <algorithm>

#include "base/error.h"
#include "runner/loaded_adapter.h"

namespace paceline {
namespace {

// Whether it needs some columns of its last row and nothing else.
bool wants_columns_only(const GenerateRequest& request) {
  return !request.columns.empty() && request.max_tokens == 0 && !request.want_row;
}

const AdapterWeights* adapter_of(const GenerateRequest& request) {
  return request.adapter != nullptr ? &request.adapter->weights : nullptr;
}

}  // namespace

void StepBatch::clear() {
  builder_.clear();
  slices_.clear();
  outputs_.clear();
  column_outputs_.clear();
  pooled_.clear();
  pooled_rows_.clear();
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
       .adapter = adapter_of(sequence.request()),
       .stretched = sequence.request().prefix.scope.stretched});
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
  pooled_.push_back({.sequence = &sequence, .count = count, .first_position = begin});
  pooled_rows_.push_back(slice.first_row + begin - first);
}

void StepBatch::add_outputs(const StepSlice& slice) {
  Sequence& sequence = *slice.sequence;
  const bool wants_last_row = sequence.request().needs_last_row();
  for (int64_t i = 0; i < slice.count; ++i) {
    const int64_t position = sequence.num_computed + i;
    const bool is_drawn = wants_last_row && position >= sequence.num_tokens() - 1;
    if (!is_drawn && !sequence.is_scored(position + 1)) continue;
    const StepOutput output{.sequence = &sequence,
                            .row = slice.first_row + i,
                            .position = position,
                            .is_drawn = is_drawn};
    if (is_drawn && wants_columns_only(sequence.request())) {
      column_outputs_.push_back(output);
      continue;
    }
    builder_.add_output(output.row);
    outputs_.push_back(output);
  }
}

void StepBatch::finish() {
  builder_.add_copies();
  num_whole_outputs_ = static_cast<int64_t>(outputs_.size());
  for (const StepOutput& output : column_outputs_) {
    builder_.add_output(output.row);
    outputs_.push_back(output);
  }
  finish_pooled();
}

void StepBatch::forget_finished() {
  std::erase_if(slices_, [](const StepSlice& slice) { return slice.sequence->finished; });
}

void StepBatch::advance() {
  forget_finished();
  outputs_.clear();
  for (const StepSlice& slice : slices_) {
    outputs_.push_back({.sequence = slice.sequence,
                        .row = slice.first_row,
                        .position = slice.sequence->num_computed,
                        .is_drawn = true});
  }
  num_whole_outputs_ = std::ssize(outputs_);
}

void StepBatch::finish_pooled() {
  int64_t next = std::ssize(outputs_);
  for (size_t i = 0; i < pooled_.size(); ++i) {
    pooled_[i].first_output = next;
    next += pooled_[i].count;
    for (int64_t row = 0; row < pooled_[i].count; ++row) builder_.add_output(pooled_rows_[i] + row);
  }
}

}  // namespace paceline
