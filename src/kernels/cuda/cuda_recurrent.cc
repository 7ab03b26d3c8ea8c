#include "kernels/cuda/cuda_recurrent.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/cuda/code/decay_gates.h"
#include "kernels/cuda/code/delta_rule.h"
#include "kernels/cuda/code/selective_scan.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {

CudaRecurrent::StagedStates CudaRecurrent::stage(const StateSlices& states,
                                                 const StateMemory& memory) {
  const auto blocks_of = [&](const StateRows* slices, const SavePoint* saves) {
    return StateBlocks{.slices = slices,
                       .saves = saves,
                       .first = memory.states.elements<float>(),
                       .stride = memory.states.stride(0),
                       .first_open = memory.open_rows.elements<float>(),
                       .open_stride = memory.open_rows.stride(0)};
  };
  if (states.slices.is_on_device()) {
    const DeviceStates placed = states.slices.device();
    return {.states = blocks_of(placed.slices, placed.saves),
            .num_slices = states.slices.size(),
            .pieces = nullptr,
            .num_pieces = states.slices.size(),
            .has_longer = false};
  }
  slices_.clear();
  saves_.clear();
  pieces_.clear();
  for (const StateSlice& slice : states.slices.host()) {
    for (int64_t first = 0; first < slice.num_rows; first += kConvolvedRows) {
      pieces_.push_back(
          {.slice = static_cast<int32_t>(slices_.size()), .first = static_cast<int32_t>(first)});
    }
    slices_.push_back({.first_row = slice.first_row,
                       .num_rows = slice.num_rows,
                       .first_position = slice.first_position,
                       .block = slice.block,
                       .open_block = slice.open_block,
                       .first_save = static_cast<int32_t>(slice.first_save),
                       .num_saves = static_cast<int32_t>(slice.num_saves)});
  }
  for (const StateSave& save : states.saves) {
    saves_.push_back({.position = save.position, .block = save.block});
  }
  const auto [slices, saves, pieces] = staging_.upload(slices_, saves_, pieces_);
  return {.states = blocks_of(slices, saves),
          .num_slices = std::ssize(slices_),
          .pieces = pieces,
          .num_pieces = std::ssize(pieces_),
          .has_longer = std::ranges::any_of(
              slices_, [](const StateRows& rows) { return rows.num_rows > 1; })};
}

void CudaRecurrent::do_short_convolution(const ConvolutionShape& shape, const Tensor& x,
                                         const ConvolutionWeights& weights,
                                         const StateSlices& slices, const StateMemory& memory,
                                         const Tensor& out) {
  const StagedStates staged = stage(slices, memory);
  const ConvolutionParams params{
      .x = const_rows_of(x),
      .states = staged.states,
      .channels = shape.channels,
      .num_taps = shape.taps,
      .padded_channels = shape.padded(),
      .pieces = staged.pieces,
      .taps = const_rows_of(weights.taps),
      .bias = weights.bias != nullptr ? weights.bias->elements<float>() : nullptr,
      .out = rows_of(out)};
  run<ConvolveRows>(element_grid(staged.num_pieces, shape.channels), params);
  if (!staged.has_longer) return;
  run<KeepInputs>(element_grid(staged.num_slices, shape.channels), params);
}

void CudaRecurrent::do_decay_gates(const Tensor& x, const Tensor& bias, const Tensor& rates,
                                   const GateRange& range, const Tensor& out) {
  run<DecayGates>(element_grid(out.size(0), out.size(1)), {.x = const_rows_of(x),
                                                           .out = rows_of(out),
                                                           .bias = bias.elements<float>(),
                                                           .rates = rates.elements<float>(),
                                                           .low = range.low,
                                                           .high = range.high,
                                                           .width = out.size(1)});
}

void CudaRecurrent::do_multiply(const Tensor& x, const Tensor& y, const Tensor& out) {
  run<Multiply>(
      element_grid(out.size(0), out.size(1)),
      {.x = const_rows_of(x), .y = const_rows_of(y), .out = rows_of(out), .width = out.size(1)});
}

void CudaRecurrent::do_delta_rule(const DeltaShape& shape, const DeltaInputs& inputs,
                                  const StateSlices& slices, const StateMemory& memory,
                                  const Tensor& out) {
  if (shape.key_dim > kMostDeltaKeys) {
    throw Error(ErrorCode::unsupported,
                fmt::format("a layer with a state has keys of {} elements, and kernels for GPUs "
                            "take at most {}; use --device cpu",
                            shape.key_dim, kMostDeltaKeys));
  }
  PL_CHECK(memory.states.dtype() == DType::f32, "kernels for GPUs keep states in float32");
  PL_CHECK(!shape.channel_decay, "kernels for GPUs have one decay of a head");
  const StagedStates staged = stage(slices, memory);
  const DeltaParams params{
      .states = staged.states,
      .q = heads_of(inputs.q),
      .k = heads_of(inputs.k),
      .v = heads_of(inputs.v),
      .out = heads_of(out),
      .log_decay = const_rows_of(inputs.log_decay),
      .beta = const_rows_of(inputs.beta),
      .skip = inputs.skip != nullptr ? inputs.skip->elements<float>() : nullptr,
      .key_heads = shape.key_heads,
      .value_heads = shape.value_heads,
      .key_dim = shape.key_dim,
      .value_dim = shape.value_dim,
      .padded_key = shape.padded_key(),
      .padded_value = shape.padded_value(),
      .updates_begin = shape.updates_begin(),
      .decays_begin = shape.decays_begin(),
      .corrects = shape.corrects};
  const auto num_slices = static_cast<uint32_t>(staged.num_slices);
  const int64_t parts = shape.value_heads * divide_up(shape.value_dim, int64_t{kDeltaColumns});
  const Grid grid{num_slices, static_cast<uint32_t>(parts)};
  if (shape.key_dim > kFewDeltaKeys) {
    run<DeltaRuleOfLongKeys>(grid, params);
  } else {
    run<DeltaRule>(grid, params);
  }
  if (!staged.has_longer) return;
  run<KeepDeltaRows>({num_slices, uint32_t{kChunkRows}}, params);
}

void CudaRecurrent::do_selective_scan(const ScanShape& shape, const ScanInputs& inputs,
                                      const StateSlices& slices, const StateMemory& memory,
                                      const Tensor& out) {
  if (shape.state_size > kMostScanStates) {
    throw Error(ErrorCode::unsupported,
                fmt::format("a layer has states of {} elements a channel, and kernels for GPUs "
                            "take at most {}; use --device cpu",
                            shape.state_size, kMostScanStates));
  }
  PL_CHECK(memory.states.dtype() == DType::f32, "kernels for GPUs keep states in float32");
  const StagedStates staged = stage(slices, memory);
  const ScanParams params{.states = staged.states,
                          .x = const_rows_of(inputs.x),
                          .steps = const_rows_of(inputs.steps),
                          .b = const_rows_of(inputs.b),
                          .c = const_rows_of(inputs.c),
                          .out = rows_of(out),
                          .rates = const_rows_of(inputs.rates),
                          .skip = inputs.skip.elements<float>(),
                          .channels = shape.channels,
                          .state_size = shape.state_size,
                          .padded_channels = shape.padded_channels(),
                          .padded_state = shape.padded_state(),
                          .inputs_begin = shape.inputs_begin(),
                          .b_begin = shape.b_begin()};
  const auto num_slices = static_cast<uint32_t>(staged.num_slices);
  const auto parts = static_cast<uint32_t>(divide_up(shape.channels, int64_t{kScanThreads}));
  run<SelectiveScan>({num_slices, parts}, params);
  run<KeepScanRows>({num_slices, uint32_t{kChunkRows}}, params);
}

void CudaRecurrent::do_copy_states(const Tensor& blocks, std::span<const BlockMove> moves) {
  const auto bytes = static_cast<size_t>(blocks.size(1)) * sizeof(float);
  for (const BlockMove& move : moves) {
    if (move.from == move.to) continue;
    device_.copy_within_device(blocks.row<float>(move.to), blocks.row<float>(move.from), bytes);
  }
}

}  // namespace paceline::cuda
