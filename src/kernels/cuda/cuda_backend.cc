#include "kernels/cuda/cuda_backend.h"

#include <fmt/format.h>

#include "kernels/cuda/code/add_norm.h"
#include "kernels/cuda/code/attention_chunk.h"
#include "kernels/cuda/code/delta_rule.h"
#include "kernels/cuda/code/embedding.h"
#include "kernels/cuda/code/norms.h"
#include "kernels/cuda/code/rope.h"
#include "kernels/cuda/code/route.h"
#include "kernels/cuda/code/row_results.h"
#include "kernels/cuda/code/selective_scan.h"
#include "kernels/cuda/cuda_decode_slots.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

static_assert(static_cast<int>(ActivationKind::clamped_swiglu) ==
              static_cast<int>(Activation::clamped_swiglu));
static_assert(static_cast<int>(RopePairKind::neighbours) ==
              static_cast<int>(RopePairs::neighbours));

NormParams norm_params(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) {
  return {.x = heads_of(x),
          .out = heads_of(out),
          .weight = weight.elements<float>(),
          .width = x.size(-1),
          .eps = eps};
}

ElementParams element_params(const Tensor& x, const Tensor& out) {
  return {.x = const_rows_of(x), .out = rows_of(out), .width = out.size(1)};
}

}  // namespace

CudaBackend::CudaBackend(CudaDevice& device, ThreadPool& threads, Memory* memory)
    : device_(device), threads_(threads), memory_(memory != nullptr ? *memory : own_memory_) {
  constexpr int64_t kWarpsEach = 16;
  constexpr int kCapabilityOfHopper = 90;
  const CudaDeviceInfo info = device.info();
  multiprocessors_ = info.multiprocessors;
  shared_bytes_ = info.shared_bytes;
  tile_device_ = {.multiprocessors = info.multiprocessors,
                  .shared_bytes = int64_t{info.shared_bytes},
                  .can_take_registers = info.capability >= kCapabilityOfHopper};
  device_bytes_ = static_cast<int64_t>(info.total_bytes);
  enough_warps_ = kWarpsEach * multiprocessors_;
  name_ = fmt::format("cuda/{}", info.name);
}

BackendLimits CudaBackend::limits() const {
  return {.head_dim = kMostHeadDim,
          .values_in_keys = false,
          .position_scores = false,
          .chunks = false,
          .mixed_layers = false,
          .state_keys = kMostDeltaKeys,
          .channel_decay = false,
          .scan_states = kMostScanStates,
          .num_experts = kMostExperts,
          .xielu = false,
          .clamp = false,
          .sparse_mixer = false,
          .all_training = false,
          .gradient_head_dim = kMostGradientDims};
}

void CudaBackend::do_embedding(const PackedMatrix& table, Indices<int32_t> ids, float scale,
                               const Tensor& out) {
  const auto [on_device] = staging_.upload(ids);
  if (table.groups) {
    return run<EmbeddingGroups>(grid_of(out),
                                {grouped_panels(table), on_device, scale, rows_of(out)});
  }
  const EmbeddingParams<PlainPanels> params{plain_panels(table), on_device, scale, rows_of(out)};
  with_stored(table.dtype, [&]<class Stored>() {
    if constexpr (!kHasScales<Stored>) run<EmbeddingRows<Stored>>(grid_of(out), params);
  });
}

void CudaBackend::do_rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) {
  NormParams params = norm_params(x, weight, eps, out);
  const NormedRows normed = rounded_rows(out);
  params.packed = normed.packed();
  run<RmsNorm>({static_cast<uint32_t>(normed.num_blocks(x.num_elements() / x.size(-1)))}, params);
  normed_ = normed;
}

void CudaBackend::do_add_rms_norm(const Tensor& residual, const Tensor& branch,
                                  const RmsNormWeights* branch_norm, const RmsNormWeights& norm,
                                  const Tensor& out) {
  const NormedRows normed = rounded_rows(out);
  AddRmsNorm::Params params{.residual = rows_of(residual),
                            .branch = const_rows_of(branch),
                            .out = rows_of(out),
                            .weight = norm.weight.elements<float>(),
                            .eps = norm.eps,
                            .width = out.size(1),
                            .packed = normed.packed()};
  if (branch_norm != nullptr) {
    params.branch_weight = branch_norm->weight.elements<float>();
    params.branch_eps = branch_norm->eps;
  }
  run<AddRmsNorm>({static_cast<uint32_t>(normed.num_blocks(out.size(0)))}, params);
  normed_ = normed;
}

// Where a norm of these rows writes them rounded; nowhere if no product of many rows will read
// them.
NormedRows CudaBackend::rounded_rows(const Tensor& out) {
  const int64_t few = has_bf16_products_ ? kFewRows : kMostCodeRows;
  if (!has_rounded_products_ || out.rank() != 2 || out.size(0) <= few) return {};
  NormedRows normed{.first = out.elements<float>(),
                    .num_rows = out.size(0),
                    .width = out.size(1),
                    .stride = out.stride(0)};
  normed.panels = input_panels(normed_inputs_, normed.num_rows, normed.width);
  return normed;
}

void CudaBackend::do_layer_norm(const Tensor& x, const Tensor& weight, const Tensor* bias,
                                float eps, const Tensor& out) {
  const int64_t rows = x.num_elements() / x.size(-1);
  NormParams params = norm_params(x, weight, eps, out);
  if (bias != nullptr) params.bias = bias->elements<float>();
  run<LayerNorm>({static_cast<uint32_t>(rows)}, params);
}

void CudaBackend::do_rope_table(Indices<int32_t> positions, const Tensor& inv_freq, float scale,
                                const Tensor& table) {
  const auto [on_device] = staging_.upload(positions);
  run<RopeTable>(element_grid(table.size(0), table.size(1)),
                 {on_device, inv_freq.elements<float>(), table.size(1), scale, rows_of(table)});
}

void CudaBackend::do_rope(const Tensor& table, RopePairs pairs, const Tensor& x) {
  const int64_t half = table.size(1);
  run<RopeHeads>(element_grid(x.size(0), x.size(1) * half),
                 {const_rows_of(table), half, static_cast<RopePairKind>(pairs), heads_of(x)});
}

void CudaBackend::do_gated_activation(Activation kind, const Tensor& gate, const Tensor& up,
                                      const Tensor& out) {
  ElementParams params = element_params(gate, out);
  params.y = const_rows_of(up);
  params.activation = static_cast<ActivationKind>(kind);
  run<ActivateGate>(grid_of(out), params);
}

void CudaBackend::do_activation(Activation kind, const Tensor& x, const Tensor& out) {
  ElementParams params = element_params(x, out);
  params.activation = static_cast<ActivationKind>(kind);
  run<Activate>(grid_of(out), params);
}

void CudaBackend::do_scale(const Tensor& x, std::span<const float> factors, const Tensor& out) {
  ElementParams params = element_params(x, out);
  if (factors.size() == 1) {
    params.number = factors[0];
  } else {
    std::tie(params.factors) = staging_.upload(factors);
  }
  run<Scale>(grid_of(out), params);
}

void CudaBackend::do_add(const Tensor& x, const Tensor& y, const Tensor& out) {
  ElementParams params = element_params(x, out);
  params.y = const_rows_of(y);
  run<Add>(grid_of(out), params);
}

void CudaBackend::do_soft_cap(const Tensor& x, float cap, const Tensor& out) {
  ElementParams params = element_params(x, out);
  params.number = cap;
  run<SoftCap>(grid_of(out), params);
}

void CudaBackend::do_finite_rows(const Tensor& x, RowFlags out) {
  auto* const results =
      out.is_on_device() ? out.device() : results_.reserve_as<uint8_t>(out.size());
  run<FiniteRows>({static_cast<uint32_t>(x.size(0))}, {const_rows_of(x), x.size(1), results});
  if (out.is_on_device()) return;
  device_.copy_from_device(out.host().data(), results, out.host().size_bytes());
}

void CudaBackend::do_log_sum_exp(const Tensor& x, std::span<float> out) {
  auto* const results = results_.reserve_as<float>(std::ssize(out));
  run<LogSumExp>({static_cast<uint32_t>(x.size(0))}, {const_rows_of(x), x.size(1), results});
  device_.copy_from_device(out.data(), results, out.size_bytes());
}

std::unique_ptr<DecodeSlots> CudaBackend::make_decode_slots(const DecodeShape& shape) {
  if (std::ssize(shape.groups) > kMostSlotGroups) return nullptr;
  return std::make_unique<CudaDecodeSlots>(device_, scratch_memory_, shape);
}

std::unique_ptr<Backend> make_cuda_backend(CudaDevice& device, ThreadPool& threads) {
  return std::make_unique<CudaBackend>(device, threads);
}

std::unique_ptr<Backend> make_cuda_backend(CudaDevice& device, ThreadPool& threads,
                                           Memory& memory) {
  return std::make_unique<CudaBackend>(device, threads, &memory);
}

}  // namespace paceline::cuda
