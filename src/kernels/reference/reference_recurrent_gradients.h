// ReferenceRecurrentGradients defines every operation of a backward pass of recurrent layers in
// plain loops in double, token by token.
#pragma once

#include "kernels/recurrent_gradients.h"

namespace paceline {

class ReferenceRecurrentGradients final : public RecurrentGradientOps {
 private:
  void do_short_convolution_gradient(const ConvolutionShape& shape, const Tensor& taps,
                                     const Tensor& dout, std::span<const SequenceRows> sequences,
                                     const Tensor& dx) override;
  void do_decay_gates_gradient(const DecayGatesInputs& in, const Tensor& dx) override;
  void do_delta_rule_gradient(const DeltaShape& shape, const DeltaGradientInputs& in,
                              std::span<const SequenceRows> sequences,
                              const DeltaGradients& out) override;
  void do_selective_scan_gradient(const ScanShape& shape, const ScanGradientInputs& in,
                                  std::span<const SequenceRows> sequences,
                                  const ScanGradients& out) override;
};

}  // namespace paceline
