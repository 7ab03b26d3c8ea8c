#include "kernels/cuda/cuda_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "kernels/cuda/code/drop_elements.h"
#include "kernels/cuda/code/element_gradients.h"
#include "kernels/cuda/code/loss_gradients.h"
#include "kernels/cuda/code/weight_gradient.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

static_assert(kSegmentRows == kGradientRows);

uint32_t tiles_of(int64_t count) {
  return static_cast<uint32_t>(divide_up(count, int64_t{WeightGradientShared::kTile}));
}

ElementParams gradient_params(const Tensor& x, const Tensor& dy, const Tensor& dx) {
  return {.x = const_rows_of(x), .y = const_rows_of(dy), .out = rows_of(dx), .width = dx.size(1)};
}

int64_t num_norm_rows(const Tensor& x) { return x.num_elements() / x.size(-1); }

NormGradientParams norm_params(const NormGradientInputs& in, float eps, const Tensor& dx) {
  return {.x = heads_of(in.x),
          .dy = heads_of(in.dy),
          .dx = heads_of(dx),
          .weight = in.weight.elements<float>(),
          .width = in.x.size(-1),
          .eps = eps};
}

// Calls body with the number of elements that a kernel has room for.
template <class Body>
void with_gradient_dims(int64_t head_dim, Body&& body) {
  if (head_dim <= 64) return body.template operator()<64>();
  if (head_dim <= 128) return body.template operator()<128>();
  body.template operator()<256>();
}

}  // namespace

void CudaGradients::do_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, Former former,
                                             const Tensor& dx) {
  if (former == Former::replaced) return backend_.multiply_transposed(dy, w, dx);
  const Tensor product(products_.reserve_as<float>(dx.num_elements()), DType::f32, dx.shape());
  backend_.multiply_transposed(dy, w, product);
  backend_.add(dx, product, dx);
}

void CudaGradients::do_matmul_weight_gradient(const Tensor& dy, const Tensor& x,
                                              OperandRounding rounding, const Tensor& dw) {
  run<MatmulWeightGradient>({tiles_of(dw.size(0)), tiles_of(dw.size(1))},
                            {.dy = const_rows_of(dy),
                             .x = const_rows_of(x),
                             .num_rows = dy.size(0),
                             .n = dw.size(0),
                             .k = dw.size(1),
                             .rounds = rounding == OperandRounding::bfloat16 ? 1u : 0u,
                             .dw = rows_of(dw)});
}

void CudaGradients::do_gated_matmul_gradients(Activation kind, const GatedGradientInputs& in,
                                              const PackedMatrix& w,
                                              const WeightGradient* of_weights, const Tensor& dx) {
  const int64_t rows = dx.size(0), width = w.n / 2;
  const Tensor dy(gated_.reserve_as<float>(rows * w.n), DType::f32, {rows, w.n});
  do_gated_activation_gradient(kind, in, dy.slice(1, 0, width), dy.slice(1, width, w.n));
  do_matmul_input_gradient(dy, w, Former::replaced, dx);
  if (of_weights == nullptr) return;
  do_matmul_weight_gradient(dy, of_weights->x, of_weights->rounding, of_weights->dw);
}

void CudaGradients::sum_rows(const NormGradientInputs& in, const NormNumbers* numbers,
                             const Tensor& to) {
  run<SumRows>({1, element_grid(1, to.size(0)).y}, {.dy = heads_of(in.dy),
                                                    .x = heads_of(in.x),
                                                    .numbers = numbers,
                                                    .num_rows = num_norm_rows(in.dy),
                                                    .width = to.size(0),
                                                    .to = to.elements<float>()});
}

void CudaGradients::do_bias_gradient(const Tensor& dy, const Tensor& dbias) {
  sum_rows({.x = dy, .weight = {}, .dy = dy}, nullptr, dbias);
}

// dx may overwrite what the sums read.
void CudaGradients::take_through_norm(NormGradientParams params, const NormGradientInputs& in,
                                      const Tensor& dx, const Tensor* dweight,
                                      const Tensor* dbias) {
  const Grid rows{static_cast<uint32_t>(num_norm_rows(dx))};
  if (dweight != nullptr) {
    params.numbers = numbers_.reserve_as<NormNumbers>(num_norm_rows(dx));
    run<RowNormNumbers>(rows, params);
    sum_rows(in, params.numbers, *dweight);
  }
  if (dbias != nullptr) sum_rows(in, nullptr, *dbias);
  run<NormInputGradient>(rows, params);
}

void CudaGradients::do_rms_norm_gradient(const NormGradientInputs& in, float eps, const Tensor& dx,
                                         const Tensor* dweight) {
  take_through_norm(norm_params(in, eps, dx), in, dx, dweight, nullptr);
}

void CudaGradients::do_layer_norm_gradient(const NormGradientInputs& in, float eps,
                                           const Tensor& dx, const Tensor* dweight,
                                           const Tensor* dbias) {
  NormGradientParams params = norm_params(in, eps, dx);
  params.is_layer_norm = 1;
  take_through_norm(params, in, dx, dweight, dbias);
}

void CudaGradients::do_activation_gradient(Activation kind, const Tensor& x, const Tensor& dout,
                                           const Tensor& dx) {
  ElementParams params = gradient_params(x, dout, dx);
  params.activation = static_cast<ActivationKind>(kind);
  run<ActivationGradient>(grid_of(dx), params);
}

void CudaGradients::do_gated_activation_gradient(Activation kind, const GatedGradientInputs& in,
                                                 const Tensor& dgate, const Tensor& dup) {
  run<GateGradient>(grid_of(dgate), {.gate = const_rows_of(in.gate),
                                     .up = const_rows_of(in.up),
                                     .dout = const_rows_of(in.dout),
                                     .dgate = rows_of(dgate),
                                     .dup = rows_of(dup),
                                     .width = dgate.size(1),
                                     .activation = static_cast<ActivationKind>(kind)});
}

void CudaGradients::do_soft_cap_gradient(const Tensor& x, float cap, const Tensor& dy,
                                         const Tensor& dx) {
  ElementParams params = gradient_params(x, dy, dx);
  params.number = cap;
  run<SoftCapGradient>(grid_of(dx), params);
}

void CudaGradients::do_embedding_gradient(std::span<const int32_t> ids, float scale,
                                          const Tensor& dout, const Tensor& dtable) {
  const auto [on_device] = staging_.upload(ids);
  run<EmbeddingGradient>({1, element_grid(1, dout.size(1)).y}, {.dout = const_rows_of(dout),
                                                                .ids = on_device,
                                                                .num_rows = dout.size(0),
                                                                .width = dout.size(1),
                                                                .scale = scale,
                                                                .dtable = rows_of(dtable)});
}

void CudaGradients::do_cross_entropy_gradient(std::span<const int32_t> targets,
                                              std::span<const float> weights, const Tensor& logits,
                                              std::span<float> losses) {
  const auto [targets_there, weights_there] = staging_.upload(targets, weights);
  auto* const results = results_.reserve_as<float>(std::ssize(losses));
  run<CrossEntropyGradient>({static_cast<uint32_t>(logits.size(0))}, {.logits = rows_of(logits),
                                                                      .width = logits.size(1),
                                                                      .targets = targets_there,
                                                                      .weights = weights_there,
                                                                      .losses = results});
  device_.copy_from_device(losses.data(), results, losses.size_bytes());
}

void CudaGradients::do_copy_rounded(const Tensor& x, DType dtype, const Tensor& out) {
  with_stored(dtype, [&]<class Stored>() {
    if constexpr (!kHasScales<Stored>) {
      run<CopyRounded<Stored>>(element_grid(x.size(0), x.num_elements() / x.size(0)),
                               {heads_of(x), heads_of(out), x.size(-1)});
    }
  });
}

void CudaGradients::do_drop_elements(const DroppedElements& dropped, const Tensor& x,
                                     const Tensor& out) {
  const auto [rows] = staging_.upload(dropped.rows);
  run<DropElements>(element_grid(x.size(0), divide_up(x.size(1), DropElements::kDraws)),
                    {.x = const_rows_of(x),
                     .out = rows_of(out),
                     .width = x.size(1),
                     .threshold = dropped.threshold,
                     .factor = dropped.factor,
                     .seed = dropped.seed,
                     .stream = dropped.stream,
                     .first_row = dropped.first_row,
                     .rows = dropped.rows.empty() ? nullptr : rows});
}

void CudaGradients::do_attention_gradient(const AttentionGradientInputs& in,
                                          std::span<const SequenceRows> sequences,
                                          const AttentionParams& params,
                                          const AttentionGradients& out) {
  const int64_t rows = in.q.size(0), heads = in.q.size(1), head_dim = in.q.size(2);
  if (head_dim > kMostGradientDims) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: gradients of attention with heads of {} elements; expected at "
                            "most {}",
                            backend_.name(), head_dim, kMostGradientDims));
  }
  tiles_.clear();
  for (const SequenceRows& sequence : sequences) {
    for (int64_t first = 0; first < sequence.num_rows; first += kGradientTile) {
      tiles_.push_back({sequence.first_row, sequence.num_rows, first});
    }
  }
  if (tiles_.empty()) return;
  const auto [tiles_there] = staging_.upload(tiles_);
  const AttentionGradientParams all{.q = heads_of(in.q),
                                    .k = heads_of(in.k),
                                    .v = heads_of(in.v),
                                    .dout = heads_of(in.dout),
                                    .out = heads_of(in.out),
                                    .log_sum_exp = const_rows_of(in.log_sum_exp),
                                    .means = {numbers_.reserve_as<float>(rows * heads), heads},
                                    .tiles = tiles_there,
                                    .group = heads / in.k.size(1),
                                    .head_dim = head_dim,
                                    .window = params.window,
                                    .scale = params.scale,
                                    .soft_cap = params.soft_cap,
                                    .dq = heads_of(out.dq),
                                    .dk = heads_of(out.dk),
                                    .dv = heads_of(out.dv)};
  const auto num_tiles = static_cast<uint32_t>(tiles_.size());
  run<AttentionOutputMeans>(element_grid(rows, heads), all);
  with_gradient_dims(head_dim, [&]<int kDims>() {
    run<QueryGradient<kDims>>({num_tiles, static_cast<uint32_t>(heads)}, all);
    run<KeyGradient<kDims>>({num_tiles, static_cast<uint32_t>(in.k.size(1))}, all);
  });
}

}  // namespace paceline::cuda
