// Products, and feed-forward networks of three products.
#include <optional>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/product_split.h"

namespace paceline {
namespace {

const float* bias_of(const PackedColumns& columns) {
  return columns.bias ? columns.bias->elements<float>() : nullptr;
}

}  // namespace

size_t cpu_product_bytes(int64_t rows, int64_t widest, int64_t mlp_width, int num_threads) {
  const auto element = static_cast<int64_t>(dtype_bytes(DType::bf16));
  const int64_t inputs = input_stride_of(widest * element) + input_stride_of(mlp_width * element);
  const ProductSplit split(rows, divide_up(mlp_width, kInnerColumns), num_threads);
  const InnerColumns columns(split.block_rows, kInnerColumns, split.piece_panels);
  return static_cast<size_t>(rows * inputs + columns.bytes(split.block_rows) * num_threads);
}

const std::byte* CpuBackend::prepare_rows(const CpuProduct& product, const Tensor& x,
                                          GrowingBuffer& scratch) {
  const int64_t stride = product.input_stride(), k = x.size(1);
  auto* const rows = scratch.reserve_as<std::byte>(x.size(0) * stride);
  for_each_row(x.size(0), k,
               [&](int64_t row) { product.prepare(x.row<float>(row), 0, k, rows + row * stride); });
  return rows;
}

void CpuBackend::multiply(const CpuProduct& product, const PackedMatrix& w, const std::byte* inputs,
                          const float* bias, const Tensor& out) {
  const int64_t scratch_bytes = product.scratch_bytes(), rows = out.size(0);
  auto* const scratch =
      thread_scratch_.reserve_as<std::byte>(threads_.num_threads() * scratch_bytes);
  const ProductSplit split = product.split(rows, threads_.num_threads());
  const StreamTuner::Product timed(tuner_, w, w.bytes(), rows, product.stream_panels(rows));
  threads_.parallel_for(
      split.num_pieces(), split.grain(rows * w.n * w.k),
      [&](int64_t begin, int64_t end, int thread_index) {
        for (int64_t i = begin; i < end; ++i) {
          const ProductSplit::Piece piece = split.piece(i);
          float* const row = out.row<float>(piece.first_row);
          product.multiply({.inputs = inputs + piece.first_row * product.input_stride(),
                            .num_rows = piece.num_rows,
                            .first_panel = piece.first_panel,
                            .last_panel = piece.last_panel,
                            .bias = bias,
                            .out = {row + piece.first_panel * kPanelWidth, out.stride(0)},
                            .scratch = scratch + thread_index * scratch_bytes,
                            .streams = timed.streams()});
        }
      });
}

void CpuBackend::do_matmul(const Tensor& x, const PackedMatrix& w, const Tensor* bias,
                           const Tensor& out) {
  const CpuProduct product(kernels_, w);
  multiply(product, w, prepare_rows(product, x, input_rows_),
           bias != nullptr ? bias->elements<float>() : nullptr, out);
}

// The inner columns never exist all at once: a thread computes some of gate and up, applies the
// activation and stores the results as inputs of the last product.
void CpuBackend::do_gated_mlp(const GatedMlpWeights& mlp, const Tensor& x, const Tensor& out) {
  const GatedProduct inner(kernels_, mlp);
  const CpuProduct &gate = inner.gate(), &up = inner.up(), &down = inner.down();
  const std::byte* const gate_rows = prepare_rows(gate, x, input_rows_);
  const std::byte* const up_rows =
      up.takes_inputs_of(gate) ? gate_rows : prepare_rows(up, x, up_rows_);
  const int64_t rows = x.size(0), width = inner.width();
  auto* const inner_rows = inner_rows_.reserve_as<std::byte>(rows * inner.inner_stride());

  const int64_t num_threads = threads_.num_threads();
  const ProductSplit split(rows, divide_up(width, inner.unit()), num_threads);
  const InnerColumns columns(split.block_rows, inner.unit(), split.piece_panels);
  const int64_t thread_bytes =
      divide_up(columns.bytes(split.block_rows) + inner.scratch_bytes(), kInputLine) * kInputLine;
  auto* const scratch = thread_scratch_.reserve_as<std::byte>(num_threads * thread_bytes);
  std::optional<StreamTuner::Product> timed(std::in_place, tuner_, *mlp.gate.matrix,
                                            inner.weight_bytes(), rows, gate.stream_panels(rows));
  threads_.parallel_for(
      split.num_pieces(), split.grain(rows * 2 * width * x.size(1)),
      [&](int64_t begin, int64_t end, int thread_index) {
        for (int64_t i = begin; i < end; ++i) {
          const ProductSplit::Piece piece = split.piece(i);
          inner.run({.gate_rows = gate_rows + piece.first_row * gate.input_stride(),
                     .up_rows = up_rows + piece.first_row * up.input_stride(),
                     .num_rows = piece.num_rows,
                     .first_unit = piece.first_panel,
                     .last_unit = piece.last_panel,
                     .inner_rows = inner_rows + piece.first_row * inner.inner_stride(),
                     .columns = columns,
                     .scratch = scratch + thread_index * thread_bytes,
                     .streams = timed->streams()});
        }
      });
  timed.reset();
  const std::byte* down_rows = inner_rows;
  if (inner.has_plain_inner_rows()) {
    const Tensor numbers(inner_rows, DType::f32, {rows, width});
    down_rows = prepare_rows(down, numbers, input_rows_);
  }
  multiply(down, *mlp.down.matrix, down_rows, bias_of(mlp.down), out);
}

}  // namespace paceline
