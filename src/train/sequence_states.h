// SequenceStates is scratch for the states of one layer of a batch, for some of its sequences at a
// time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/gradients.h"
#include "kernels/operands.h"
#include "layers/kv_storage.h"
#include "tensor/memory.h"
#include "tensor/tensor.h"

namespace paceline {

class SequenceStates {
 public:
  // Neighbouring sequences, each with a block; their rows are counted from the group's first.
  struct Group {
    int64_t first_row = 0;
    int64_t num_rows = 0;
    std::vector<SequenceRows> sequences;
    std::vector<StateSlice> slices;

    Tensor rows_of(const Tensor& x) const { return x.slice(0, first_row, first_row + num_rows); }
  };

  // `sequences` are all rows of a batch; `most_elements` are those of a layer's state and its open
  // rows.
  SequenceStates(std::span<const SequenceRows> sequences, int64_t most_elements, Memory& memory);

  std::span<const Group> groups() const { return groups_; }
  // For a layer whose states have `elements`.
  StateStore states_of(const LayerStateElements& elements) const;

 private:
  std::vector<Group> groups_;
  OwnedTensor blocks_;
};

}  // namespace paceline
