// ReferenceGradients defines every operation of a backward pass in plain loops that accumulate in
// double.
#pragma once

#include "kernels/gradients.h"

namespace paceline {

class ReferenceGradients final : public GradientOps {
 private:
  void do_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, const Tensor& dx) override;
  void do_matmul_weight_gradient(const Tensor& dy, const Tensor& x, OperandRounding rounding,
                                 const Tensor& dw) override;
  void do_attention_gradient(const AttentionGradientInputs& in,
                             std::span<const SequenceRows> sequences, const AttentionParams& params,
                             const AttentionGradients& out) override;
};

}  // namespace paceline
