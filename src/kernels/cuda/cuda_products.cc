// Products with packed weights, and what is made of them.
#include <algorithm>

#include "kernels/cuda/code/matmul_float.h"
#include "kernels/cuda/code/matmul_mma.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

constexpr int64_t kMostBlocksY = 65535;
// The rows of a feed-forward network whose inner columns are in memory at once.
constexpr int64_t kMlpRows = 256;

template <class Panels>
ProductParams<Panels> product_params(const Panels& weights, const Tensor& x,
                                     const PackedColumns& columns, const Tensor& out) {
  return {.weights = weights,
          .x = const_rows_of(x),
          .num_rows = x.size(0),
          .bias = columns.bias ? columns.bias->elements<float>() : nullptr,
          .first_column = columns.first,
          .num_columns = columns.count,
          .out = rows_of(out)};
}

// Tiles of `width` columns, which begin at multiples of it, and of `height` rows.
Grid tile_grid(const PackedColumns& columns, int64_t width, int64_t num_rows, int64_t height) {
  const int64_t first = columns.first / width;
  const int64_t end = divide_up(columns.first + columns.count, width);
  return {static_cast<uint32_t>(end - first),
          static_cast<uint32_t>(std::min(divide_up(num_rows, height), kMostBlocksY))};
}

}  // namespace

Tensor CudaBackend::scratch(GrowingBuffer& buffer, int64_t rows, int64_t width) {
  return {buffer.reserve_as<float>(rows * width), DType::f32, {rows, width}};
}

void CudaBackend::multiply(const Tensor& x, const PackedColumns& columns, const Tensor& out) {
  const PackedMatrix& w = *columns.matrix;
  const Grid mma_grid = tile_grid(columns, kMmaColumns, x.size(0), kMmaRows);
  if (w.groups) {
    return run<MatmulGroups>(mma_grid, product_params(grouped_panels(w), x, columns, out));
  }
  const ProductParams<PlainPanels> params = product_params(plain_panels(w), x, columns, out);
  if (w.dtype == DType::bf16) return run<MatmulBf16>(mma_grid, params);
  const Grid grid = tile_grid(columns, kPanelWidth, x.size(0), int64_t{kFloatProductRows});
  if (w.dtype == DType::f16) return run<MatmulFloat<F16>>(grid, params);
  run<MatmulFloat<float>>(grid, params);
}

void CudaBackend::do_matmul(const Tensor& x, const PackedMatrix& w, const Tensor* bias,
                            const Tensor& out) {
  PackedColumns columns{.matrix = &w, .first = 0, .count = w.n};
  if (bias != nullptr) columns.bias = *bias;
  multiply(x, columns, out);
}

void CudaBackend::do_gated_mlp(const GatedMlpWeights& mlp, const Tensor& x, const Tensor& out) {
  const int64_t width = mlp.gate.count;
  for (int64_t first = 0; first < x.size(0); first += kMlpRows) {
    const int64_t end = std::min(first + kMlpRows, x.size(0));
    const Tensor inputs = x.slice(0, first, end);
    const Tensor gate = scratch(gate_rows_, end - first, width);
    const Tensor up = scratch(up_rows_, end - first, width);
    multiply(inputs, mlp.gate, gate);
    multiply(inputs, mlp.up, up);
    do_gated_activation(mlp.activation, gate, up, gate);
    multiply(gate, mlp.down, out.slice(0, first, end));
  }
}

void CudaBackend::add_lora_segment(const Tensor& x, const LoraSegment& segment, const Tensor& out) {
  const int64_t rows = segment.num_rows, last_row = segment.first_row + rows;
  const int64_t ranks = segment.b->k, columns = segment.b->n;
  const Tensor inner = scratch(lora_inner_, rows, ranks);
  const Tensor delta = scratch(lora_delta_, rows, columns);
  multiply(x.slice(0, segment.first_row, last_row),
           {.matrix = segment.a, .first = segment.first_rank, .count = ranks}, inner);
  multiply(inner, {.matrix = segment.b, .first = 0, .count = columns}, delta);
  const Tensor sums = out.slice(0, segment.first_row, last_row)
                          .slice(1, segment.first_column, segment.first_column + columns);
  do_add(sums, delta, sums);
}

void CudaBackend::do_add_lora(const Tensor& x, std::span<const LoraSegment> segments,
                              const Tensor& out) {
  for (const LoraSegment& segment : segments) add_lora_segment(x, segment, out);
}

}  // namespace paceline::cuda
