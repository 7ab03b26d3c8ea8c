#include "engine/batch_builder.h"

namespace paceline {
namespace {

// Whether it needs some columns of its last row and nothing else.
bool wants_columns_only(const GenerateRequest& request) {
  return !request.columns.empty() && request.max_tokens == 0 && !request.want_row;
}

}  // namespace

void BatchBuilder::clear() {
  batch_.clear();
  batch_.groups.resize(static_cast<size_t>(cache_.num_groups()));
  slices_.clear();
  outputs_.clear();
  column_rows_.clear();
  num_whole_outputs_ = 0;
}

void BatchBuilder::add(Sequence& sequence, int64_t count) {
  const int64_t first_position = sequence.num_computed;
  const int64_t first_row = batch_.num_rows();
  PL_CHECK(count > 0 && first_position + count <= sequence.num_tokens(),
           "slice beyond the sequence");
  slices_.push_back({.sequence = &sequence, .first_row = first_row, .count = count});
  const bool wants_last_row = sequence.request().needs_last_row();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = first_position + i;
    const auto row = static_cast<int32_t>(first_row + i);
    batch_.tokens.push_back(sequence.tokens[static_cast<size_t>(position)]);
    batch_.positions.push_back(static_cast<int32_t>(position));
    const bool is_last = wants_last_row && position == sequence.num_tokens() - 1;
    if (!is_last && !sequence.is_scored(position + 1)) continue;
    const BatchOutput output{.sequence = &sequence, .position = position, .is_last = is_last};
    if (is_last && wants_columns_only(sequence.request())) {
      column_rows_.push_back({.output = output, .row = row});
      continue;
    }
    batch_.output_rows.push_back(row);
    outputs_.push_back(output);
  }
  for (int g = 0; g < cache_.num_groups(); ++g) {
    GroupBatch& group = batch_.groups[static_cast<size_t>(g)];
    for (int64_t i = 0; i < count; ++i) {
      group.slots.push_back(sequence.blocks.slot(g, first_position + i));
    }
    group.slices.push_back({.first_row = first_row,
                            .num_rows = count,
                            .first_position = first_position,
                            .block_table = sequence.blocks.table(g)});
  }
}

void BatchBuilder::finish() {
  for (const BlockCopy& copy : cache_.copies()) {
    batch_.groups[static_cast<size_t>(copy.group)].copies.push_back(
        {.from = copy.from, .to = copy.to});
  }
  num_whole_outputs_ = static_cast<int64_t>(outputs_.size());
  for (const Row& row : column_rows_) {
    batch_.output_rows.push_back(row.row);
    outputs_.push_back(row.output);
  }
}

}  // namespace paceline
