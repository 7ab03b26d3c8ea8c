// CpuGradients splits every operation of a backward pass over the threads by output and calls the
// kernels of one instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/growing_buffer.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/gradients.h"

namespace paceline {

class CpuGradients final : public GradientOps {
 public:
  CpuGradients(const KernelTable& kernels, ThreadPool& threads, Memory& memory)
      : kernels_(kernels),
        threads_(threads),
        input_rows_(memory),
        panels_(memory),
        row_numbers_(memory),
        thread_scratch_(memory) {}

 private:
  void do_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, const Tensor& dx) override;
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

  // Makes the columns of rows the panels of a product whose K are the rows.
  void pack_panels(const Tensor& rows, DType dtype, int64_t panel_bytes, std::byte* panels);
  // Makes the columns of rows prepared inputs of that product.
  void prepare_columns(const Tensor& rows, DType dtype, int64_t input_stride, std::byte* inputs);

  // A tile of keys of one kv head, or of rows of one query head.
  struct AttentionPiece {
    enum class Of : uint8_t { keys, queries };

    size_t sequence;
    Of of;
    int64_t head;
    int64_t tile;
  };
  // The sums of out * dout, [rows][heads]; valid until the next call.
  const float* output_means(const AttentionGradientInputs& in);
  void plan_attention_gradient(const AttentionGradientInputs& in,
                               std::span<const SequenceRows> sequences);
  // to += the sum over rows of what add_row(row, first column, number of columns, sums) adds.
  template <class AddRow>
  void add_row_sums(int64_t rows, int64_t width, AddRow&& add_row, float* to);
  // dweight += the rows' dy * (x - mean) * scale
  void add_norm_weights(const NormGradientInputs& in, const NormRow* norms, float* dweight);
  // row_norm(x) of every row; valid until the next call.
  template <class RowNorm>
  const NormRow* norm_rows(const Tensor& x, RowNorm&& row_norm);
  void write_norm_gradients(void (*kernel)(const NormGradientTask& task),
                            const NormGradientInputs& in, const NormRow* norms, const Tensor& dx);

  const KernelTable& kernels_;
  ThreadPool& threads_;
  GrowingBuffer input_rows_;
  GrowingBuffer panels_;
  GrowingBuffer row_numbers_;
  GrowingBuffer thread_scratch_;
  std::vector<AttentionPiece> pieces_;  // of the current call of attention_gradient
};

}  // namespace paceline
