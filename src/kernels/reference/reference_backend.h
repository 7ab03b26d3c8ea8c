// ReferenceBackend defines every op in plain loops that accumulate in double, on memory of its own.
#pragma once

#include "kernels/backend.h"
#include "kernels/reference/reference_gradients.h"
#include "kernels/reference/reference_recurrent.h"
#include "kernels/reference/reference_recurrent_gradients.h"

namespace paceline {

class ReferenceBackend final : public Backend {
 public:
  // How products with quantised weights round their inputs; by default as the weights say.
  explicit ReferenceBackend(std::optional<ActivationType> activations = {})
      : activations_(activations) {}

  std::string_view name() const override { return "reference"; }
  Memory& memory() override { return memory_; }
  GradientOps& gradients() override { return gradients_; }
  RecurrentOps* recurrent() override { return &recurrent_; }
  RecurrentGradientOps* recurrent_gradients() override { return &recurrent_gradients_; }

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

  std::optional<ActivationType> activations_;
  ReferenceGradients gradients_;
  ReferenceRecurrent recurrent_;
  ReferenceRecurrentGradients recurrent_gradients_;
  Memory memory_;
  ThreadPool threads_{1};
};

}  // namespace paceline
