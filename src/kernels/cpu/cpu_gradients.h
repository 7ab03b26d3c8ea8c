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
#include "kernels/cpu/transposed_product.h"
#include "kernels/gradients.h"

namespace paceline {

// Operands of attention that are packed at a time, or those of one sequence and kv head: they stay
// in the caches.
constexpr int64_t kPackedAttentionBytes = 4 << 20;
// Tiles of keys, times the elements of a head, whose gradients one thread sums at a time: 1 MiB.
constexpr int64_t kMostWholeSums = 2048;

class CpuGradients final : public GradientOps {
 public:
  CpuGradients(const KernelTable& kernels, ThreadPool& threads, Memory& memory)
      : kernels_(kernels),
        threads_(threads),
        input_rows_(memory),
        columns_(memory),
        ordered_(memory),
        panels_(memory),
        row_numbers_(memory),
        thread_scratch_(memory) {}

 private:
  void do_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, Former former,
                                const Tensor& dx) override;
  void do_matmul_weight_gradient(const Tensor& dy, const Tensor& x, OperandRounding rounding,
                                 const Tensor& dw) override;
  void do_matmul_gradients(const Tensor& dy, const PackedMatrix& w,
                           const WeightGradient& of_weights, const Tensor& dx) override;
  void do_gated_matmul_gradients(Activation kind, const GatedGradientInputs& in,
                                 const PackedMatrix& w, const WeightGradient* of_weights,
                                 const Tensor& dx) override;
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

  // dw += dy^T x for few columns of x: they become the inputs, and each panel of dy is packed where
  // it is multiplied.
  void add_narrow_weight_gradient(const Tensor& dy, const Tensor& x, DType dtype, const Tensor& dw);
  // dx = dy w, or is added to, from prepared rows of dy: a small w is transposed whole, and a large
  // one block by block in each thread.
  void multiply_transposed(const TransposedProduct& product, const PackedMatrix& w,
                           const std::byte* inputs, Former former, const Tensor& dx);
  void multiply_whole(const TransposedProduct& product, const PackedMatrix& w,
                      const std::byte* inputs, Former former, const Tensor& dx);
  void multiply_blocks(const TransposedProduct& product, const PackedMatrix& w,
                       const std::byte* inputs, Former former, const Tensor& dx);
  // Valid until the next call.
  const std::byte* prepare_rows(const TransposedProduct& product, const Tensor& dy);

  // Some rows' gradients of some outputs.
  struct GradientBlock {
    int64_t first_row;
    int64_t num_rows;
    int64_t first_output;
    int64_t num_outputs;
  };
  // dw += dy^T x, where prepare(block, stride, inputs) makes columns of dy inputs of the product.
  template <class Prepare>
  void add_weight_gradient(int64_t n, const Tensor& x, DType dtype, GrowingBuffer& columns,
                           Prepare&& prepare, const Tensor& dw);
  // Whether dy is rounded once for the gradients of x and w.
  bool shares_inputs(const PackedMatrix& w, const WeightGradient* of_weights) const;
  void gated_matmul_one_by_one(Activation kind, const GatedGradientInputs& in,
                               const PackedMatrix& w, const WeightGradient* of_weights,
                               const Tensor& dx);
  // Makes columns of prepared rows the inputs of a product whose K are the rows.
  void transpose_inputs(const TransposedProduct& product, const std::byte* rows,
                        const GradientBlock& block, int64_t stride, std::byte* columns);
  // The gradients of x and, if asked for, of w from prepared rows of dy.
  void multiply_prepared(const TransposedProduct& product, const PackedMatrix& w,
                         const std::byte* rows, const WeightGradient* of_weights, const Tensor& dx);
  // Makes the columns of rows the panels of that product.
  void pack_panels(const Tensor& rows, DType dtype, int64_t panel_bytes, std::byte* panels);
  // Makes the columns of rows prepared inputs of that product.
  void prepare_columns(const Tensor& rows, DType dtype, int64_t input_stride, std::byte* inputs);

  // One sequence on one kv head.
  struct AttentionUnit {
    AttentionGradientTask task;
    int64_t num_tiles;
  };
  // A tile of a unit's keys, or of the rows of one of its query heads.
  struct AttentionPiece {
    enum class Of : uint8_t { keys, rows };

    const AttentionUnit* unit;
    Of of;
    int64_t head;  // of the group
    int64_t tile;
  };
  // The sums of out * dout, [rows][heads]; valid until the next call.
  const float* output_means(const AttentionGradientKernels& kernels,
                            const AttentionGradientInputs& in);
  void plan_attention_units(const AttentionGradientInputs& in, const float* means,
                            std::span<const SequenceRows> sequences, const AttentionParams& params,
                            const AttentionGradients& out);
  int64_t tiles_of_whole_units(const AttentionGradientKernels& kernels,
                               std::span<const AttentionUnit> units) const;
  void run_attention_units(const AttentionGradientKernels& kernels, std::span<AttentionUnit> units);
  template <class Body>
  void for_each_piece(std::span<const AttentionUnit> units, Body&& body);
  // to += the sum over rows of what add_row(row, first column, number of columns, sums) adds.
  template <class AddRow>
  void add_row_sums(int64_t rows, int64_t width, AddRow&& add_row, float* to);
  // Writes dx of a segment's rows, and adds what they contribute to the weights' gradient.
  void rms_norm_segment(const NormGradientInputs& in, float eps, const Tensor& dx, int64_t segment,
                        float* weight_sums);
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
  GrowingBuffer columns_;
  GrowingBuffer ordered_;  // gradients by inputs in the order of the weights
  GrowingBuffer panels_;
  GrowingBuffer row_numbers_;
  GrowingBuffer thread_scratch_;
  // Of the current call of attention_gradient.
  std::vector<AttentionUnit> units_;
  std::vector<AttentionPiece> pieces_;
};

}  // namespace paceline
