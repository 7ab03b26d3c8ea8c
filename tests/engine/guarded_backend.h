// A backend whose memory is accessible only inside its operations, like a device's.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/backend.h"

namespace paceline::testing {

// Pages that can be read and written only while they are open.
class GuardedPages : public MemorySource {
 public:
  GuardedPages();
  ~GuardedPages() override;

  void* take(size_t capacity) override;
  void give_back(void* /*block*/, size_t /*capacity*/) noexcept override {}  // kept to the end
  void clear(void* block, size_t capacity) override;

  class Opened {
   public:
    explicit Opened(GuardedPages& pages) : pages_(pages) { pages_.open(); }
    ~Opened() { pages_.close(); }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    GuardedPages& pages_;
  };

 private:
  void open();
  void close();

  std::byte* pages_ = nullptr;
  size_t used_bytes_ = 0;
  int num_open_ = 0;
};

// Forwards every operation to a CPU backend in guarded memory; results that the CPU reads are
// copied.
class GuardedBackend final : public Backend {
 public:
  explicit GuardedBackend(ThreadPool& threads);

  std::string_view name() const override { return inner_->name(); }
  Memory& memory() override { return memory_; }
  RecurrentOps* recurrent() override { return inner_->recurrent(); }

  int64_t num_copied_blocks() const { return num_copied_blocks_; }

 private:
  std::span<const float> do_read(const Tensor& x, std::vector<float>& staging) override;
  void do_write(std::span<const float> elements, const Tensor& out) override;
  PackedMatrix do_pack_matrix(std::span<const Tensor> parts, DType dtype) override;
  PackedMatrix do_pack_groups(std::span<const GroupedRows* const> parts,
                              ActivationType activations) override;
  PackedMatrix do_gather_columns(const PackedMatrix& matrix,
                                 std::span<const int32_t> columns) override;
  void do_clear(const Tensor& out) override;
  void do_add_scaled_rows(const Tensor& x, std::span<const int32_t> rows,
                          std::span<const float> weights, const Tensor& out) override;
  void do_gather_rows(const Tensor& x, Indices<int32_t> rows, const Tensor& out) override;
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

  GuardedPages pages_;
  Memory memory_{pages_};
  std::unique_ptr<Backend> inner_;
  int64_t num_copied_blocks_ = 0;
};

}  // namespace paceline::testing
