#include "tests/kernels/recurrent_inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

OwnedTensor blocks_of_nan(Memory& memory, int64_t num_blocks, int64_t elements) {
  OwnedTensor blocks = allocate_tensor(memory, DType::f32, {num_blocks, elements});
  std::fill_n(blocks.view.elements<float>(), num_blocks * elements,
              std::numeric_limits<float>::quiet_NaN());
  return blocks;
}

StateSlice slice_of(int64_t begin, int64_t end, int32_t block, std::span<const StateSave> saves) {
  return {.num_rows = end - begin,
          .first_position = begin,
          .block = block,
          .num_saves = std::ssize(saves)};
}

}  // namespace

DeltaRowInputs::DeltaRowInputs(Memory& memory, const DeltaShape& delta, int64_t num_rows,
                               int64_t num_blocks, uint64_t seed)
    : shape(delta),
      q(random_tensor(memory, DType::f32, {num_rows, delta.key_heads, delta.key_dim}, seed, 0.1f)),
      k(random_tensor(memory, DType::f32, {num_rows, delta.key_heads, delta.key_dim}, seed + 1,
                      0.1f)),
      v(random_tensor(memory, DType::f32, {num_rows, delta.value_heads, delta.value_dim},
                      seed + 2)),
      out(allocate_tensor(memory, DType::f32, {num_rows, delta.value_heads, delta.value_dim})),
      log_decay(random_tensor(memory, DType::f32, {num_rows, delta.decay_width()}, seed + 3, 0.2f)),
      beta(random_tensor(memory, DType::f32, {num_rows, delta.value_heads}, seed + 4, 0.5f)),
      skip(random_tensor(memory, DType::f32, {delta.value_heads}, seed + 5)),
      states(blocks_of_nan(memory, num_blocks, delta.state_elements())),
      open_rows(blocks_of_nan(memory, 1, delta.open_elements())) {
  for (int64_t row = 0; row < num_rows; ++row) {
    for (int64_t i = 0; i < delta.decay_width(); ++i) {
      float& decay = log_decay.view.row<float>(row)[i];
      decay = -std::abs(decay);
    }
  }
}

void DeltaRowInputs::run(RecurrentOps& ops, int64_t begin, int64_t end, int32_t block,
                         std::span<const StateSave> saves) const {
  const StateSlice slice = slice_of(begin, end, block, saves);
  const auto part = [begin, end](const OwnedTensor& all) { return all.view.slice(0, begin, end); };
  ops.delta_rule(shape,
                 {.q = part(q),
                  .k = part(k),
                  .v = part(v),
                  .log_decay = part(log_decay),
                  .beta = part(beta),
                  .skip = shape.corrects ? nullptr : &skip.view},
                 {std::span(&slice, 1), saves},
                 {.states = states.view, .open_rows = open_rows.view}, part(out));
}

ConvolutionRowInputs::ConvolutionRowInputs(Memory& memory, const ConvolutionShape& convolution,
                                           int64_t num_rows, int64_t num_blocks, uint64_t seed)
    : shape(convolution),
      x(random_tensor(memory, DType::f32, {num_rows, convolution.channels}, seed)),
      out(allocate_tensor(memory, DType::f32, {num_rows, convolution.channels})),
      taps(random_tensor(memory, DType::f32, {convolution.taps, convolution.channels}, seed + 1)),
      bias(random_tensor(memory, DType::f32, {convolution.channels}, seed + 2)),
      states(blocks_of_nan(memory, num_blocks, convolution.state_elements())),
      open_rows(blocks_of_nan(memory, 1, convolution.open_elements())) {}

void ConvolutionRowInputs::run(RecurrentOps& ops, int64_t begin, int64_t end, int32_t block,
                               std::span<const StateSave> saves) const {
  const StateSlice slice = slice_of(begin, end, block, saves);
  ops.short_convolution(shape, x.view.slice(0, begin, end), {.taps = taps.view, .bias = &bias.view},
                        {std::span(&slice, 1), saves},
                        {.states = states.view, .open_rows = open_rows.view},
                        out.view.slice(0, begin, end));
}

}  // namespace paceline
