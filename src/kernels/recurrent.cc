#include "kernels/recurrent.h"

#include "base/error.h"
#include "kernels/shape_check.h"

namespace paceline {
namespace {

void check_slices(const StateSlices& slices, int64_t rows, const StateMemory& memory) {
  if (slices.slices.is_on_device()) {
    PL_CHECK(slices.slices.size() <= rows, "a slice on the device is a row of the batch");
    return;
  }
  const int64_t num_blocks = memory.states.size(0);
  for (const StateSlice& slice : slices.slices.host()) {
    PL_CHECK(slice.num_rows > 0 && slice.first_row >= 0 && slice.first_position >= 0 &&
                 slice.first_row + slice.num_rows <= rows,
             "a slice has rows of the batch");
    PL_CHECK(slice.block >= 0 && slice.block < num_blocks, "a slice's block exists");
    PL_CHECK(slice.open_block >= 0 && slice.open_block < memory.open_rows.size(0),
             "a slice's block of open rows exists");
    int64_t after = slice.first_position;
    for (const StateSave& save : slices.saves_of(slice)) {
      PL_CHECK(save.position > after && save.position % kStateChunk == 0 &&
                   save.position <= slice.first_position + slice.num_rows,
               "states are saved at ends of the slice's chunks");
      PL_CHECK(save.block >= 0 && save.block < num_blocks && save.block != slice.block,
               "a state is saved to another block");
      after = save.position;
    }
  }
}

// Matrices of states, which may be rounded.
void check_states(ShapeCheck& check, const Tensor& states) {
  const DType dtype = states.dtype() == DType::bf16 ? DType::bf16 : DType::f32;
  check.tensor("states", states, {"blocks", "state_elements"}, dtype);
}

}  // namespace

void RecurrentOps::short_convolution(const ConvolutionShape& shape, const Tensor& x,
                                     const ConvolutionWeights& weights, const StateSlices& slices,
                                     const StateMemory& memory, const Tensor& out) {
  ShapeCheck check("short_convolution");
  check.dimension("shape", "channels", shape.channels);
  check.dimension("shape", "taps", shape.taps);
  check.dimension("shape", "state_elements", shape.state_elements());
  check.dimension("shape", "open_elements", shape.open_elements());
  check.tensor("x", x, {"rows", "channels"});
  check.tensor("weights", weights.taps, {"taps", "channels"});
  if (weights.bias != nullptr) check.tensor("bias", *weights.bias, {"channels"});
  check.tensor("states", memory.states, {"blocks", "state_elements"});
  check.tensor("open_rows", memory.open_rows, {"open_blocks", "open_elements"});
  check.tensor("out", out, {"rows", "channels"});
  PL_CHECK(shape.taps > 1 && x.elements<float>() != out.elements<float>(),
           "a convolution has taps before its own, and isn't in place");
  check_slices(slices, x.size(0), memory);
  if (!out.empty()) do_short_convolution(shape, x, weights, slices, memory, out);
}

void RecurrentOps::decay_gates(const Tensor& x, const Tensor& bias, const Tensor& rates,
                               const GateRange& range, const Tensor& out) {
  ShapeCheck check("decay_gates");
  check.tensor("x", x, {"rows", "heads"});
  check.tensor("bias", bias, {"heads"});
  check.tensor("rates", rates, {"heads"});
  check.tensor("out", out, {"rows", "heads"});
  if (!out.empty()) do_decay_gates(x, bias, rates, range, out);
}

void RecurrentOps::multiply(const Tensor& x, const Tensor& y, const Tensor& out) {
  ShapeCheck check("multiply");
  check.tensor("x", x, {"rows", "width"});
  check.tensor("y", y, {"rows", "width"});
  check.tensor("out", out, {"rows", "width"});
  if (!out.empty()) do_multiply(x, y, out);
}

void RecurrentOps::delta_rule(const DeltaShape& shape, const DeltaInputs& inputs,
                              const StateSlices& slices, const StateMemory& memory,
                              const Tensor& out) {
  ShapeCheck check("delta_rule");
  check.dimension("shape", "key_heads", shape.key_heads);
  check.dimension("shape", "value_heads", shape.value_heads);
  check.dimension("shape", "key_dim", shape.key_dim);
  check.dimension("shape", "value_dim", shape.value_dim);
  check.dimension("shape", "state_elements", shape.state_elements());
  check.dimension("shape", "open_elements", shape.open_elements());
  check.tensor("q", inputs.q, {"rows", "key_heads", "key_dim"});
  check.tensor("k", inputs.k, {"rows", "key_heads", "key_dim"});
  check.tensor("v", inputs.v, {"rows", "value_heads", "value_dim"});
  check.dimension("shape", "decay_width", shape.decay_width());
  check.tensor("log_decay", inputs.log_decay, {"rows", "decay_width"});
  check.tensor("beta", inputs.beta, {"rows", "value_heads"});
  if (inputs.skip != nullptr) check.tensor("skip", *inputs.skip, {"value_heads"});
  check_states(check, memory.states);
  check.tensor("open_rows", memory.open_rows, {"open_blocks", "open_elements"});
  check.tensor("out", out, {"rows", "value_heads", "value_dim"});
  PL_CHECK(shape.value_heads % shape.key_heads == 0, "key heads serve value heads alike");
  check_slices(slices, out.size(0), memory);
  if (!out.empty()) do_delta_rule(shape, inputs, slices, memory, out);
}

void RecurrentOps::selective_scan(const ScanShape& shape, const ScanInputs& inputs,
                                  const StateSlices& slices, const StateMemory& memory,
                                  const Tensor& out) {
  ShapeCheck check("selective_scan");
  check.dimension("shape", "channels", shape.channels);
  check.dimension("shape", "state_size", shape.state_size);
  check.dimension("shape", "state_elements", shape.state_elements());
  check.dimension("shape", "open_elements", shape.open_elements());
  check.tensor("x", inputs.x, {"rows", "channels"});
  check.tensor("steps", inputs.steps, {"rows", "channels"});
  check.tensor("b", inputs.b, {"rows", "state_size"});
  check.tensor("c", inputs.c, {"rows", "state_size"});
  check.tensor("rates", inputs.rates, {"state_size", "channels"});
  check.tensor("skip", inputs.skip, {"channels"});
  check_states(check, memory.states);
  check.tensor("open_rows", memory.open_rows, {"open_blocks", "open_elements"});
  check.tensor("out", out, {"rows", "channels"});
  check_slices(slices, out.size(0), memory);
  if (!out.empty()) do_selective_scan(shape, inputs, slices, memory, out);
}

void RecurrentOps::copy_states(const Tensor& blocks, std::span<const BlockMove> moves) {
  for (const BlockMove& move : moves) {
    PL_CHECK(
        move.from >= 0 && move.from < blocks.size(0) && move.to >= 0 && move.to < blocks.size(0),
        "copy_states: the blocks exist");
  }
  if (!moves.empty() && !blocks.empty()) do_copy_states(blocks, moves);
}

}  // namespace paceline
