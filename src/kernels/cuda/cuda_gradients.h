// CudaGradients runs the operations of a backward pass by the kernels of code/.
#pragma once

#include <vector>

#include "kernels/cuda/call_staging.h"
#include "kernels/cuda/code/attention_gradient.h"
#include "kernels/cuda/code/norm_gradients.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/normed_rows.h"
#include "kernels/gradients.h"

namespace paceline::cuda {

class CudaBackend;

class CudaGradients final : public GradientOps {
 public:
  // `normed` are the backend's, which a kernel may overwrite.
  CudaGradients(CudaBackend& backend, CudaDevice& device, ScratchMemory& memory, NormedRows& normed)
      : backend_(backend),
        device_(device),
        normed_(normed),
        staging_(device, memory),
        numbers_(memory),
        results_(memory),
        products_(memory),
        gated_(memory) {}

 private:
  void do_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, Former former,
                                const Tensor& dx) override;
  void do_matmul_weight_gradient(const Tensor& dy, const Tensor& x, OperandRounding rounding,
                                 const Tensor& dw) override;
  void do_gated_matmul_gradients(Activation kind, const GatedGradientInputs& in,
                                 const PackedMatrix& w, const WeightGradient* of_weights,
                                 const Tensor& dx) override;
  void do_bias_gradient(const Tensor& dy, const Tensor& dbias) override;
  // Throws Error unsupported if heads have more than 256 elements.
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
  void do_drop_elements(const DroppedElements& dropped, const Tensor& x,
                        const Tensor& out) override;

  template <class Kernel>
  void run(Grid grid, const typename Kernel::Params& params) {
    normed_ = {};
    launch<Kernel>(device_, grid, params);
  }
  // to += the sum of dy over rows, times the normalised x where there are numbers of its rows.
  void sum_rows(const NormGradientInputs& in, const NormNumbers* numbers, const Tensor& to);
  // Writes dx, and adds to the gradients of weights.
  void take_through_norm(NormGradientParams params, const NormGradientInputs& in, const Tensor& dx,
                         const Tensor* dweight, const Tensor* dbias);

  CudaBackend& backend_;
  CudaDevice& device_;
  NormedRows& normed_;
  CallStaging staging_;
  ScratchBuffer numbers_;                     // of rows
  ScratchBuffer results_;                     // that are copied back
  ScratchBuffer products_;                    // that are added to what is there
  ScratchBuffer gated_;                       // gradients of gate and up
  std::vector<AttentionGradientTile> tiles_;  // of the current call
};

}  // namespace paceline::cuda
