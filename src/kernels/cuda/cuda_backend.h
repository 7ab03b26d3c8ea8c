// CudaBackend runs every operation of serving and of training with LoRA on a CudaDevice, by the
// kernels of code/.
#pragma once

#include <string>

#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/call_staging.h"
#include "kernels/cuda/code/attention_chunk.h"
#include "kernels/cuda/code/matmul_codes.h"
#include "kernels/cuda/code/matmul_few.h"
#include "kernels/cuda/code/matmul_tiles.h"
#include "kernels/cuda/code/product_params.h"
#include "kernels/cuda/cuda_gradients.h"
#include "kernels/cuda/cuda_lora.h"
#include "kernels/cuda/cuda_recurrent.h"
#include "kernels/cuda/cuda_row_sampler.h"
#include "kernels/cuda/device_memory_source.h"
#include "kernels/cuda/expert_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/normed_rows.h"
#include "kernels/cuda/scratch_buffer.h"
#include "kernels/cuda/tile_choice.h"

namespace paceline::cuda {

// Products of more rows with quantised weights unpack those first.
constexpr int64_t kMostCodeRows = 256;

class CudaBackend final : public Backend {
 public:
  // With memory of its own, or in that of another backend on the same device.
  CudaBackend(CudaDevice& device, ThreadPool& threads, Memory* memory = nullptr);

  std::string_view name() const override { return name_; }
  BackendLimits limits() const override;
  Memory& memory() override { return memory_; }
  Memory& host_memory() override { return host_memory_; }
  GradientOps& gradients() override { return gradients_; }
  std::unique_ptr<DecodeSlots> make_decode_slots(const DecodeShape& shape) override;
  RecurrentOps* recurrent() override { return &recurrent_; }
  RowSampler* row_sampler() override { return &row_sampler_; }

  // out = x * w, which is a product with w's inputs as columns: for CudaGradients.
  //                                       x [rows, w.n], out [rows, w.k]
  void multiply_transposed(const Tensor& x, const PackedMatrix& w, const Tensor& out);

 private:
  std::span<const float> do_read(const Tensor& x, std::vector<float>& staging) override;
  void do_write(std::span<const float> elements, const Tensor& out) override;
  PackedMatrix do_pack_matrix(std::span<const Tensor> parts, DType dtype) override;
  PackedMatrix do_pack_groups(std::span<const GroupedRows* const> parts,
                              ActivationType activations) override;
  PackedMatrix pack_expanded(std::span<const GroupedRows* const> parts);
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
  void do_add_rms_norm(const Tensor& residual, const Tensor& branch,
                       const RmsNormWeights* branch_norm, const RmsNormWeights& norm,
                       const Tensor& out) override;
  void do_layer_norm(const Tensor& x, const Tensor& weight, const Tensor* bias, float eps,
                     const Tensor& out) override;
  void do_rope_table(Indices<int32_t> positions, const Tensor& inv_freq, float scale,
                     const Tensor& table) override;
  void do_rope(const Tensor& table, RopePairs pairs, const Tensor& x) override;
  void do_store_kv(const Tensor& k, const Tensor& v, Indices<int64_t> slots,
                   const KvStore& store) override;
  void do_place_heads(const HeadPlacement& placement, const Tensor& q, const Tensor& k,
                      const Tensor& v, Indices<int64_t> slots, const KvStore& store) override;
  void do_attention(const Tensor& q, const KvStore& store, const AttentionSlices& slices,
                    const AttentionParams& params, const Tensor& out,
                    const Tensor* log_sum_exp) override;
  void do_apply_sinks(const Tensor& log_sum_exp, const Tensor& sinks, const Tensor& out) override;
  void do_gated_activation(Activation kind, const Tensor& gate, const Tensor& up,
                           const Tensor& out) override;
  void do_activation(Activation kind, const Tensor& x, const Tensor& out) override;
  void do_scale(const Tensor& x, std::span<const float> factors, const Tensor& out) override;
  void do_add(const Tensor& x, const Tensor& y, const Tensor& out) override;
  void do_soft_cap(const Tensor& x, float cap, const Tensor& out) override;
  void do_log_sum_exp(const Tensor& x, std::span<float> out) override;

  template <class Kernel>
  void run(Grid grid, const typename Kernel::Params& params) {
    normed_ = {};
    launch<Kernel>(device_, grid, params);
  }
  // The same matrix, in the device's memory.
  PackedMatrix move_to_device(PackedMatrix matrix);
  Buffer as_core_matrices(const PackedMatrix& matrix);
  // out = x * columns^T + bias
  void multiply(const Tensor& x, const PackedColumns& columns, const Tensor& out);
  // The same with float32 and float16 weights; of up to kFewRows rows, with bfloat16 weights; of
  // rows that pack_inputs() has rounded.
  void multiply_floats(const Tensor& x, const PackedColumns& columns, const Tensor& out);
  void multiply_few_rows(const Tensor& x, const PackedColumns& columns, const Tensor& out);
  void multiply_many_rows(const Tensor& x, const PackedColumns& columns, const Tensor& out);
  void transpose_columns(const PackedMatrix& w, int64_t first_k);
  template <class Kernel>
  void run_few_rows(const Tensor& x, typename Kernel::Params params, const Tensor& out);
  void multiply_packed(const InputPanels& x, int64_t rows, const PackedColumns& columns,
                       const Tensor& out);
  // Returns false where no kernel of gated products fits the device.
  template <bool kGated>
  bool multiply_in_tiles(const TileParams& params);
  NormedRows rounded_rows(const Tensor& out);
  static InputPanels input_panels(ScratchBuffer& buffer, int64_t rows, int64_t width);
  // Of up to kMostCodeRows rows with quantised weights; of up to kFewCodeRows.
  void multiply_codes(const Tensor& x, const PackedColumns& columns, const Tensor& out);
  void multiply_few_codes(const Tensor& x, const PackedColumns& columns, const Tensor& out);
  // Each of `segments` has a block, where they are more than one.
  template <class Kernel>
  void run_few_codes(const Tensor& x, typename Kernel::Params params, const Tensor& out,
                     int64_t segments);
  template <bool kGated>
  void multiply_code_tiles(CodesParams params);
  // Valid until the next call.
  CodeInputs pack_code_inputs(const Tensor& x);
  static CodeInputs reserve_code_inputs(ScratchBuffer& buffer, int64_t rows, int64_t width);
  // multiply_gated() with quantised weights.
  bool multiply_gated_codes(const GatedMlpWeights& mlp, const Tensor& x, const Tensor& out);
  // Valid until the next call.
  InputPanels pack_inputs(const Tensor& x);
  // do_gated_mlp with two kernels. Returns false where it has none for the weights.
  bool multiply_gated(const GatedMlpWeights& mlp, const Tensor& x, const Tensor& out);
  // For a block of each segment of `tiles`, whose sums are `pieces` in a segment.
  SplitSums split_sums(int64_t tiles, int64_t segments, int64_t pieces);
  // mix_experts for few rows, whose choice stays on the device. Returns false where it has no
  // kernels for the experts together.
  bool mix_slots(std::span<const GatedMlpWeights> experts, const Routing& routing, const Tensor& x,
                 const Tensor& out);
  // A product of each slot's row with columns of its expert; `part` numbers those of a mixture.
  struct SlotProduct;
  void multiply_slots(const SlotProduct& product);
  template <class Kernel, class Make>
  void run_slot_kernel(const SlotProduct& product, int kernel, Make&& make);
  // mix_experts for rows whose choice stands in `chosen`, `num_slots` a row.
  void mix_rows(std::span<const GatedMlpWeights> experts, std::span<const int32_t> chosen,
                const Tensor& weights, const Tensor& x, const Tensor& out);
  // The rows of slices, on the device. Without tiles each row has tiles of its own.
  struct PlacedRows {
    const AttentionRow* rows = nullptr;
    const int32_t* tables = nullptr;
    const AttentionTile* tiles = nullptr;
    AttentionParts parts;
  };
  PlacedRows place_rows(const AttentionSlices& slices, const AttentionParams& params,
                        const AttentionSizes& sizes);
  // The queries in memory of their own.
  Tensor copy_queries(const Tensor& q);
  // Attention over stores that attention_tiles.h doesn't read.
  void attend_by_rows(const KvStore& store, AttentionKernelParams params, int64_t num_rows,
                      int64_t most_chunks);
  // Room for the results of chunks. Returns how many blocks along z compute them.
  uint32_t reserve_partials(AttentionKernelParams& params, int64_t num_rows, int64_t heads);
  void merge_chunks(const AttentionKernelParams& params, int64_t num_rows);
  void add_lora_segment(const Tensor& x, const LoraSegment& segment, const Tensor& out);
  // add_lora for the segments in the tables, whose rows begin at `first_row`; then clears them.
  void add_lora_tables(const Tensor& x, int64_t first_row, const Tensor& out);
  // A contiguous float32 tensor [rows, width] in `buffer`.
  static Tensor scratch(ScratchBuffer& buffer, int64_t rows, int64_t width);

  CudaDevice& device_;
  ThreadPool& threads_;  // which pack weights
  int64_t multiprocessors_;
  size_t shared_bytes_;  // of a block, at most
  TileDevice tile_device_;
  int64_t device_bytes_;
  int64_t enough_warps_;  // that keep the device busy
  std::string name_;
  DeviceMemorySource source_{device_};
  Memory own_memory_{source_};
  Memory& memory_;
  Memory host_memory_;  // of weights while they are packed
  ScratchMemory scratch_memory_{memory_};
  CallStaging staging_{device_, scratch_memory_};
  ScratchBuffer results_{scratch_memory_};  // that are copied back
  ScratchBuffer segment_sums_{scratch_memory_};
  Buffer arrivals_;  // zeros between kernels
  ScratchBuffer packed_inputs_{scratch_memory_};
  ScratchBuffer normed_inputs_{scratch_memory_};
  NormedRows normed_;  // every kernel but products and rounding forgets them
  bool has_bf16_products_ = false;
  bool has_rounded_products_ = false;  // weights of bfloat16, or quantised ones
  ScratchBuffer packed_inner_{scratch_memory_};
  ScratchBuffer unpacked_weights_{scratch_memory_};
  ScratchBuffer attention_partials_{scratch_memory_};
  ScratchBuffer attention_queries_{scratch_memory_};
  ScratchBuffer gate_rows_{scratch_memory_};
  ScratchBuffer up_rows_{scratch_memory_};
  ScratchBuffer expert_inputs_{scratch_memory_};
  ScratchBuffer expert_products_{scratch_memory_};
  ScratchBuffer lora_inner_{scratch_memory_};
  ScratchBuffer lora_delta_{scratch_memory_};
  LoraTables lora_tables_;  // reused
  ExpertTables expert_tables_{memory_};
  CudaRecurrent recurrent_{device_, scratch_memory_, normed_};
  CudaRowSampler row_sampler_{device_, scratch_memory_};
  PackedMatrix transposed_;  // of multiply_transposed()
  CudaGradients gradients_{*this, device_, scratch_memory_, normed_};
};

}  // namespace paceline::cuda
