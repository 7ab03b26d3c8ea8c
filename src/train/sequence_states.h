// SequenceStates is scratch for the states of one layer of a batch, for some of its sequences at a
// time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/gradients.h"
#include "layers/kv_storage.h"
#include "layers/mix_gradient.h"
#include "tensor/memory.h"
#include "tensor/tensor.h"

namespace paceline {

class SequenceStates {
 public:
  // `sequences` are all rows of a batch, and must outlive it; `most_elements` are those of a
  // layer's state and its open rows.
  SequenceStates(std::span<const SequenceRows> sequences, int64_t most_elements, Memory& memory);

  std::span<const SequenceRows> sequences() const { return sequences_; }
  std::span<const StateGroup> groups() const { return groups_; }
  // For a layer whose states have `elements`.
  StateStore states_of(const LayerStateElements& elements) const;

 private:
  std::span<const SequenceRows> sequences_;
  std::vector<StateGroup> groups_;
  OwnedTensor blocks_;
};

}  // namespace paceline
