// CpuBackend splits every op over the threads by output and calls the kernels of one instruction
// set.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/cpu_gradients.h"
#include "kernels/cpu/cpu_product.h"
#include "kernels/cpu/cpu_recurrent.h"
#include "kernels/cpu/cpu_recurrent_gradients.h"
#include "kernels/cpu/expert_mixer.h"
#include "kernels/cpu/gated_product.h"
#include "kernels/cpu/growing_buffer.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/row_split.h"
#include "kernels/cpu/stream_tuner.h"

namespace paceline {

// Some rows of a segment of add_lora times some panels of one of its matrices.
struct LoraPiece {
  const PackedMatrix* matrix = nullptr;
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t first_panel = 0;
  int64_t last_panel = 0;
  int64_t inner = 0;         // where the first row's inner product begins, in floats
  int64_t inner_stride = 0;  // floats
  int64_t first_column = 0;  // of `out`, of the matrix's first column
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(Isa isa, ThreadPool& threads, Memory& memory);

  std::string_view name() const override { return name_; }
  Memory& memory() override { return memory_; }
  GradientOps& gradients() override { return gradients_; }
  RecurrentOps* recurrent() override { return &recurrent_; }
  RecurrentGradientOps* recurrent_gradients() override { return &recurrent_gradients_; }
  std::vector<std::string> measured_choices() const override { return tuner_.describe(); }

 private:
  std::span<const float> do_read(const Tensor& x, std::vector<float>& staging) override;
  void do_write(std::span<const float> elements, const Tensor& out) override;
  PackedMatrix do_pack_matrix(std::span<const Tensor> parts, DType dtype) override;
  PackedMatrix do_pack_groups(std::span<const GroupedRows* const> parts,
                              ActivationType activations) override;
  PackedMatrix do_gather_columns(const PackedMatrix& matrix,
                                 std::span<const int32_t> columns) override;
  void do_gather_rows(const Tensor& x, Indices<int32_t> rows, const Tensor& out) override;
  void do_clear(const Tensor& out) override;
  void do_add_scaled_rows(const Tensor& x, std::span<const int32_t> rows,
                          std::span<const float> weights, const Tensor& out) override;
  void do_finite_rows(const Tensor& x, RowFlags out) override;
  void do_pool_rows(RowPooling how, const Tensor& x, int64_t first_position,
                    std::span<double> pooled) override;
  void do_copy_blocks(const KvStore& store, std::span<const BlockMove> moves) override;
  void do_embedding(const PackedMatrix& table, Indices<int32_t> ids, float scale,
                    const Tensor& out) override;
  void do_matmul(const Tensor& x, const PackedMatrix& w, const Tensor* bias,
                 const Tensor& out) override;
  void do_gated_mlp(const GatedMlpWeights& mlp, const Tensor& x, const Tensor& out) override;
  void do_route(const Tensor& logits, const RoutingParams& params, const Tensor* choice_bias,
                const Routing& out) override;
  HostRouting do_read_routing(const Routing& routing) override;
  void do_mix_experts(std::span<const GatedMlpWeights> experts, const Routing& routing,
                      const Tensor& x, const Tensor& out) override;
  void do_add_lora(const Tensor& x, std::span<const LoraSegment> segments,
                   const Tensor& out) override;
  void do_rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) override;
  void do_layer_norm(const Tensor& x, const Tensor& weight, const Tensor* bias, float eps,
                     const Tensor& out) override;
  void do_rope_table(Indices<int32_t> positions, const Tensor& inv_freq, float scale,
                     const Tensor& table) override;
  void do_rope(const Tensor& table, RopePairs pairs, const Tensor& x) override;
  void do_store_kv(const Tensor& k, const Tensor& v, Indices<int64_t> slots,
                   const KvStore& store) override;
  void do_attention(const Tensor& q, const KvStore& store, const AttentionSlices& slices,
                    const AttentionParams& params, const Tensor& out,
                    const Tensor* log_sum_exp) override;
  void do_apply_sinks(const Tensor& log_sum_exp, const Tensor& sinks, const Tensor& out) override;
  void do_gated_activation(Activation kind, const Tensor& gate, const Tensor& up,
                           const Tensor& out) override;
  void do_activation(Activation kind, const Tensor& x, const Tensor& out) override;
  void do_scale(const Tensor& x, std::span<const float> factors, const Tensor& out) override;
  void do_add(const Tensor& x, const Tensor& y, const Tensor& out) override;
  void do_scale_columns(const Tensor& x, const Tensor& factors, const Tensor& out) override;
  void do_gaussian_top_k(const Tensor& x, float deviations, const Tensor& out) override;
  void do_xielu(const Tensor& x, const XieluWeights& weights, const Tensor& out) override;
  void do_clamp(const Tensor& x, float limit, const Tensor& out) override;
  void do_soft_cap(const Tensor& x, float cap, const Tensor& out) override;
  void do_log_sum_exp(const Tensor& x, std::span<float> out) override;

  template <class Body>
  void for_each_row(int64_t rows, int64_t row_elements, Body&& body) {
    split_rows(threads_, rows, row_elements, body);
  }
  template <class Body>
  void for_each_block(int64_t rows, int64_t width, Body&& body) {
    split_row_blocks(threads_, rows, width, body);
  }

  // The inputs of a product in the form that its weights need, in `scratch`.
  const std::byte* prepare_rows(const CpuProduct& product, const Tensor& x, GrowingBuffer& scratch);
  // out = prepared inputs * w^T + bias
  void multiply(const CpuProduct& product, const PackedMatrix& w, const std::byte* inputs,
                const float* bias, const Tensor& out);

  // Appends the pieces of rows times a matrix, like `whole` but for their rows and panels.
  void cut_lora_product(const LoraPiece& whole, std::vector<LoraPiece>& pieces) const;
  // Calls body(piece, scratch of the thread) for all pieces.
  template <class Body>
  void run_lora_pieces(const std::vector<LoraPiece>& pieces, Body&& body);

  // The maximum and the sum of exponentials of every row; valid until the next call.
  const ExpSum* exp_sums(const Tensor& x);

  void plan_attention(const Tensor& q, const KvStore& store, std::span<const AttentionSlice> slices,
                      const AttentionParams& params, const Tensor& out, const Tensor* log_sum_exp);
  // The needs of the planned tasks, summed; for scratch the largest.
  struct AttentionNeed {
    int64_t scratch = 0;   // floats
    int64_t partials = 0;  // floats
    int64_t chunks = 0;
    int64_t work = 0;  // multiply-adds
  };
  void attend_by_tiles(const KvStore& store, const AttentionNeed& need);
  // For few tiles: threads take chunks, whose partial results are combined at the end.
  void attend_by_chunks(const KvStore& store, const AttentionNeed& need);

  const KernelTable& kernels_;
  ThreadPool& threads_;
  Memory& memory_;
  std::string name_;
  CpuGradients gradients_;
  CpuRecurrent recurrent_;
  CpuRecurrentGradients recurrent_gradients_;
  StreamTuner tuner_;
  GrowingBuffer input_rows_;
  GrowingBuffer up_rows_;     // when gate and up of a feed-forward network need different forms
  GrowingBuffer inner_rows_;  // of its last product
  GrowingBuffer row_partials_;
  GrowingBuffer row_totals_;
  GrowingBuffer thread_scratch_;
  GrowingBuffer chunk_partials_;
  std::vector<AttentionTask> tasks_;  // of the current call of attention
  ExpertMixer mixer_;
  GrowingBuffer lora_inner_;
  std::vector<LoraPiece> shrink_pieces_, expand_pieces_;  // of the current call of add_lora
};

}  // namespace paceline
