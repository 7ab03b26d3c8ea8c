// ReferenceGradients defines every operation of a backward pass in plain loops that accumulate in
// double.
#pragma once

#include "kernels/gradients.h"

namespace paceline {

class ReferenceGradients final : public GradientOps {
 private:
  void do_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, Former former,
                                const Tensor& dx) override;
  void do_matmul_weight_gradient(const Tensor& dy, const Tensor& x, OperandRounding rounding,
                                 const Tensor& dw) override;
  void do_bias_gradient(const Tensor& dy, const Tensor& dbias) override;
  void do_attention_gradient(const AttentionGradientInputs& in,
                             std::span<const SequenceRows> sequences, const AttentionParams& params,
                             const AttentionGradients& out) override;
  void do_rms_norm_gradient(const NormGradientInputs& in, float eps, const Tensor& dx,
                            const Tensor* dweight) override;
  void do_layer_norm_gradient(const NormGradientInputs& in, float eps, const Tensor& dx,
                              const Tensor* dweight, const Tensor* dbias) override;
  void do_activation_gradient(Activation kind, const Tensor& x, const Tensor& dout,
                              const Tensor& dx) override;
  void do_gated_activation_gradient(Activation kind, const GatedGradientInputs& in,
                                    const Tensor& dgate, const Tensor& dup) override;
  void do_soft_cap_gradient(const Tensor& x, float cap, const Tensor& dy,
                            const Tensor& dx) override;
  void do_embedding_gradient(std::span<const int32_t> ids, float scale, const Tensor& dout,
                             const Tensor& dtable) override;
  void do_cross_entropy_gradient(std::span<const int32_t> targets, std::span<const float> weights,
                                 const Tensor& logits, std::span<float> losses) override;
  void do_copy_rounded(const Tensor& x, DType dtype, const Tensor& out) override;
};

}  // namespace paceline
