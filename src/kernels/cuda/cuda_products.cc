// Products with packed weights, and what is made of them.
#include <algorithm>

#include "kernels/cuda/code/matmul_float.h"
#include "kernels/cuda/code/matmul_mma.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

constexpr int64_t kMostBlocksY = 65535;
constexpr int kRowTiles = 4;  // of products of more than 8 rows
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
Grid tile_grid(int64_t first_column, int64_t num_columns, int64_t width, int64_t num_rows,
               int64_t height) {
  const int64_t end = divide_up(first_column + num_columns, width);
  return {static_cast<uint32_t>(end - first_column / width),
          static_cast<uint32_t>(std::min(divide_up(num_rows, height), kMostBlocksY))};
}

}  // namespace

Tensor CudaBackend::scratch(GrowingBuffer& buffer, int64_t rows, int64_t width) {
  return {buffer.reserve_as<float>(rows * width), DType::f32, {rows, width}};
}

// Where whole inputs would give too few warps, each computes one segment, and the segments' sums
// are added by another kernel: the same bits.
template <class FewRows, class ManyRows>
void CudaBackend::multiply_tiles(typename FewRows::Params params) {
  const bool has_few_rows = params.num_rows <= kMmaRows;
  const int64_t height = has_few_rows ? kMmaRows : kRowTiles * kMmaRows;
  Grid grid =
      tile_grid(params.first_column, params.num_columns, kMmaColumns, params.num_rows, height);
  const auto run_tiles = [&] {
    has_few_rows ? run<FewRows>(grid, params) : run<ManyRows>(grid, params);
  };
  const int64_t segments = divide_up(int64_t{params.weights.k}, kSegmentLength);
  if (segments == 1 || int64_t{grid.x} * grid.y >= enough_warps_) return run_tiles();
  const int64_t rows = params.num_rows, width = params.num_columns;
  params.segment_sums = segment_sums_.reserve_as<float>(segments * rows * width);
  grid.z = static_cast<uint32_t>(segments);
  run_tiles();
  run<AddSegments>(element_grid(rows, width),
                   {.segment_sums = params.segment_sums,
                    .num_segments = segments,
                    .num_rows = rows,
                    .bias = params.bias != nullptr ? params.bias + params.first_column : nullptr,
                    .out = params.out,
                    .width = width});
}

void CudaBackend::multiply(const Tensor& x, const PackedColumns& columns, const Tensor& out) {
  const PackedMatrix& w = *columns.matrix;
  if (w.groups) {
    return multiply_tiles<MatmulGroups<1>, MatmulGroups<kRowTiles>>(
        product_params(grouped_panels(w), x, columns, out));
  }
  const ProductParams<PlainPanels> params = product_params(plain_panels(w), x, columns, out);
  if (w.dtype == DType::bf16) {
    return multiply_tiles<MatmulBf16<1>, MatmulBf16<kRowTiles>>(params);
  }
  const Grid grid =
      tile_grid(columns.first, columns.count, kPanelWidth, x.size(0), int64_t{kFloatProductRows});
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
