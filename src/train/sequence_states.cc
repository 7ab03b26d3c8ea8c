#include "train/sequence_states.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr int64_t kGroupSequences = 16;

}  // namespace

SequenceStates::SequenceStates(std::span<const SequenceRows> sequences, int64_t most_elements,
                               Memory& memory)
    : sequences_(sequences),
      blocks_(allocate_tensor(memory, DType::f32,
                              {std::min(kGroupSequences, std::ssize(sequences)), most_elements},
                              Contents::undefined)) {
  for (const SequenceRows& one : sequences) {
    if (groups_.empty() || std::ssize(groups_.back().slices) == kGroupSequences) {
      groups_.push_back({.first_row = one.first_row});
    }
    StateGroup& group = groups_.back();
    const int64_t first_row = one.first_row - group.first_row;
    group.slices.push_back({.first_row = first_row,
                            .num_rows = one.num_rows,
                            .block = static_cast<int32_t>(group.slices.size()),
                            .open_block = static_cast<int32_t>(group.slices.size())});
    group.num_rows = first_row + one.num_rows;
  }
}

StateStore SequenceStates::states_of(const LayerStateElements& elements) const {
  int64_t first = 0;
  const auto take = [&](int64_t count) {
    first += count;
    return blocks_.view.slice(1, first - count, first);
  };
  const auto memory = [&](const StateElements& of) {
    const Tensor states = take(of.state);
    return StateMemory{.states = states, .open_rows = take(of.open_rows)};
  };
  const StateMemory convolution = memory(elements.convolution);
  return {.convolution = convolution, .matrices = memory(elements.matrices)};
}

}  // namespace paceline
