#include "runner/batch_builder.h"

#include <algorithm>

#include "base/error.h"

namespace paceline {

void BatchBuilder::clear() {
  batch_.clear();
  batch_.groups.resize(static_cast<size_t>(cache_.num_groups()));
}

int64_t BatchBuilder::add(const BatchRows& rows) {
  const int64_t first_row = batch_.num_rows();
  const int64_t count = std::ssize(rows.tokens) + std::ssize(rows.drafted);
  PL_CHECK(count > 0, "a slice has a row");
  batch_.tokens.insert(batch_.tokens.end(), rows.tokens.begin(), rows.tokens.end());
  batch_.tokens.insert(batch_.tokens.end(), rows.drafted.begin(), rows.drafted.end());
  for (int64_t i = 0; i < count; ++i) {
    batch_.positions.push_back(static_cast<int32_t>(rows.first_position + i));
  }
  if (rows.second_text || !batch_.token_types.empty()) add_types(rows, count);
  if (rows.adapter != 0) add_adapter(rows.adapter, first_row, count);
  if (rows.stretched > 0) batch_.stretched.push_back({first_row, count, rows.stretched});
  for (int g = 0; g < cache_.num_groups(); ++g) {
    GroupBatch& group = batch_.groups[static_cast<size_t>(g)];
    if (cache_.group(g).is_recurrent) {
      if (cache_.holds_states(g)) add_state(rows, g, first_row, count, group);
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      group.slots.push_back(rows.blocks.slot(g, rows.first_position + i));
    }
    group.slices.push_back({.first_row = first_row,
                            .num_rows = count,
                            .first_position = rows.first_position,
                            .block_table = rows.blocks.table(g)});
  }
  return first_row;
}

// Rows before the first that asks for types are of the first one.
void BatchBuilder::add_types(const BatchRows& rows, int64_t count) {
  auto& types = batch_.token_types;
  types.resize(batch_.positions.size() - static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    types.push_back(rows.second_text && rows.first_position + i >= *rows.second_text ? 1 : 0);
  }
}

void BatchBuilder::add_state(const BatchRows& rows, int index, int64_t first_row, int64_t count,
                             GroupBatch& group) {
  group.states.push_back({.first_row = first_row,
                          .num_rows = count,
                          .first_position = rows.first_position,
                          .block = rows.blocks.table(index).front(),
                          .open_block = rows.blocks.table(*cache_.open_group()).front(),
                          .first_save = std::ssize(group.saves)});
  for (const SavedState& save : rows.blocks.saves()) {
    if (save.group != index) continue;
    group.saves.push_back({.position = save.position, .block = save.block});
    ++group.states.back().num_saves;
  }
}

void BatchBuilder::add_adapter(int32_t adapter, int64_t first_row, int64_t count) {
  auto& all = batch_.adapters;
  const bool goes_on = !all.empty() && all.back().adapter == adapter &&
                       all.back().first_row + all.back().num_rows == first_row;
  if (!goes_on) all.push_back({.first_row = first_row, .adapter = adapter});
  all.back().num_rows += count;
}

void BatchBuilder::add_output(int64_t row) {
  batch_.output_rows.push_back(static_cast<int32_t>(row));
}

void BatchBuilder::add_copies() {
  for (const BlockCopy& copy : cache_.copies()) {
    batch_.groups[static_cast<size_t>(copy.group)].copies.push_back(
        {.from = copy.from, .to = copy.to});
  }
}

}  // namespace paceline
