// Batch is the input of one ragged forward: any mix of sequences as flat arrays, without padding.
// BatchView is what a decoder reads of it, or of decode slots.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/operands.h"
#include "layers/adapter_weights.h"
#include "layers/rope.h"

namespace paceline {

// Where the rows' keys and values, or states, are stored and read, for the layers of one cache
// group.
struct GroupBatch {
  std::vector<int64_t> slots;  // [rows] flat slot of each row's own key and value
  std::vector<AttentionSlice> slices;
  std::vector<StateSlice> states;  // in place of those two, in a group of states
  std::vector<StateSave> saves;    // what these refer to
  std::vector<BlockMove> copies;   // in this order, before anything is stored
};

struct BatchView {
  BatchArrays arrays;
  BatchAdapters adapters = {};
  std::span<const StretchedRows> stretched = {};
};

struct Batch {
  std::vector<int32_t> tokens;           // [rows]
  std::vector<int32_t> positions;        // [rows]
  std::vector<int32_t> token_types;      // [rows], or empty: all are of the first type
  std::vector<GroupBatch> groups;        // one per cache group
  std::vector<AdapterRows> adapters;     // in ascending order; other rows have no adapter
  std::vector<StretchedRows> stretched;  // in ascending order; other rows aren't
  std::vector<int32_t> output_rows;      // rows whose hidden states are outputs, in any order

  int64_t num_rows() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_outputs() const { return static_cast<int64_t>(output_rows.size()); }

  BatchView view(AdapterTable table) const {
    BatchView made{.arrays = {tokens, positions, output_rows, {}},
                   .adapters = AdaptedRows{adapters, table},
                   .stretched = stretched};
    made.arrays.token_types = token_types;
    for (const GroupBatch& group : groups) {
      made.arrays.groups.push_back({group.slots, group.slices, {group.states, group.saves}});
    }
    return made;
  }

  // Empties every array and keeps its memory.
  void clear() {
    tokens.clear();
    positions.clear();
    token_types.clear();
    adapters.clear();
    stretched.clear();
    output_rows.clear();
    for (GroupBatch& group : groups) {
      group.slots.clear();
      group.slices.clear();
      group.states.clear();
      group.saves.clear();
      group.copies.clear();
    }
  }
};

}  // namespace paceline
