// ReferenceRecurrent defines every operation of recurrent layers in plain loops that accumulate in
// double; the states between steps are float32.
#pragma once

#include "kernels/recurrent.h"

namespace paceline {

class ReferenceRecurrent final : public RecurrentOps {
 private:
  void do_short_convolution(const ConvolutionShape& shape, const Tensor& x,
                            const ConvolutionWeights& weights, const StateSlices& slices,
                            const StateMemory& memory, const Tensor& out) override;
  void do_decay_gates(const Tensor& x, const Tensor& bias, const Tensor& rates,
                      const GateRange& range, const Tensor& out) override;
  void do_multiply(const Tensor& x, const Tensor& y, const Tensor& out) override;
  void do_delta_rule(const DeltaShape& shape, const DeltaInputs& inputs, const StateSlices& slices,
                     const StateMemory& memory, const Tensor& out) override;
  void do_selective_scan(const ScanShape& shape, const ScanInputs& inputs,
                         const StateSlices& slices, const StateMemory& memory,
                         const Tensor& out) override;
  void do_copy_states(const Tensor& blocks, std::span<const BlockMove> moves) override;
};

}  // namespace paceline
