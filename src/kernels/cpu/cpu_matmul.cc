// Products, and feed-forward networks of three products.
#include <algorithm>
#include <optional>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/product_split.h"

namespace paceline {
namespace {

// Inner columns of a feed-forward network computed at a time: as many panels as a product of many
// rows takes at once, or the inputs of the last product that share a scale.
constexpr int64_t kInnerColumns = 128;
// The last product's input rows lie far apart: the row this many rows ahead is prefetched.
constexpr int64_t kPrefetchedRows = 8;
// The share of the second-level cache for a piece of gate and up.
constexpr int64_t kInnerBytes = 256 * 1024;

// The panels that hold some columns of a projection.
struct CoveringPanels {
  int64_t first;
  int64_t last;
  int64_t skipped;  // columns of the first panel before the first wanted one

  CoveringPanels(const PackedColumns& columns, int64_t from, int64_t count) {
    const int64_t column = columns.first + from;
    first = column / kPanelWidth;
    last = divide_up(column + count, kPanelWidth);
    skipped = column % kPanelWidth;
  }
};

const float* bias_of(const PackedColumns& columns) {
  return columns.bias ? columns.bias->elements<float>() : nullptr;
}

// The number of columns that a thread computes at a time, and the floats of a row of them.
struct InnerColumns {
  int64_t at_once;
  int64_t stride;
};

// Pieces of the split have `unit` columns.
InnerColumns inner_columns(const ProductSplit& split, int64_t unit) {
  const int64_t row_bytes = split.block_rows * unit * 2 * int64_t{sizeof(float)};
  const int64_t at_once =
      std::clamp<int64_t>(kInnerBytes / row_bytes, 1, split.piece_panels) * unit;
  // Projections may begin within a panel.
  const int64_t bytes = (at_once + 2 * kPanelWidth) * int64_t{sizeof(float)};
  return {at_once, input_stride_of(bytes) / int64_t{sizeof(float)}};
}

}  // namespace

size_t cpu_product_bytes(int64_t rows, int64_t widest, int64_t mlp_width, int num_threads) {
  const auto element = static_cast<int64_t>(dtype_bytes(DType::bf16));
  const int64_t inputs = input_stride_of(widest * element) + input_stride_of(mlp_width * element);
  const ProductSplit split(rows, divide_up(mlp_width, kInnerColumns), num_threads);
  const int64_t in_hand =
      2 * split.block_rows * inner_columns(split, kInnerColumns).stride * num_threads;
  return static_cast<size_t>(rows * inputs + in_hand * int64_t{sizeof(float)});
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
  const ProductSplit split(rows, w.num_panels(), threads_.num_threads());
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
  const CpuProduct gate(kernels_, *mlp.gate.matrix), up(kernels_, *mlp.up.matrix);
  const CpuProduct down(kernels_, *mlp.down.matrix);
  const std::byte* const gate_rows = prepare_rows(gate, x, input_rows_);
  const std::byte* const up_rows =
      up.takes_inputs_of(gate) ? gate_rows : prepare_rows(up, x, up_rows_);
  const int64_t rows = x.size(0), width = mlp.gate.count;
  auto* const inner_rows = inner_rows_.reserve_as<std::byte>(rows * down.input_stride());

  const int64_t num_threads = threads_.num_threads();
  const int64_t unit = std::max(kInnerColumns, down.input_length());
  const ProductSplit split(rows, divide_up(width, unit), num_threads);
  const InnerColumns inner = inner_columns(split, unit);
  const int64_t columns_at_once = inner.at_once, stride = inner.stride;
  const int64_t buffer = split.block_rows * stride;  // floats
  const int64_t scratch_bytes = std::max(gate.scratch_bytes(), up.scratch_bytes());
  const int64_t thread_bytes =
      divide_up(scratch_bytes + 2 * buffer * int64_t{sizeof(float)}, kInputLine) * kInputLine;
  auto* const scratch = thread_scratch_.reserve_as<std::byte>(num_threads * thread_bytes);
  const auto activate = kernels_.gated_activation[static_cast<size_t>(mlp.activation)];

  const PackedMatrix& gates_matrix = *mlp.gate.matrix;
  const int64_t weight_bytes =
      (mlp.gate.count + mlp.up.count) * gates_matrix.bytes() / gates_matrix.n;
  std::optional<StreamTuner::Product> timed(std::in_place, tuner_, gates_matrix, weight_bytes, rows,
                                            gate.stream_panels(rows));
  const auto run_piece = [&](const ProductSplit::Piece& piece, std::byte* mine) {
    auto* const gates = reinterpret_cast<float*>(mine);
    float* const ups = gates + buffer;
    auto* const kernel_scratch = reinterpret_cast<std::byte*>(ups + buffer);
    const auto multiply = [&](const CpuProduct& product, const PackedColumns& columns,
                              const std::byte* inputs, const CoveringPanels& panels, float* to) {
      product.multiply({.inputs = inputs + piece.first_row * product.input_stride(),
                        .num_rows = piece.num_rows,
                        .first_panel = panels.first,
                        .last_panel = panels.last,
                        .bias = bias_of(columns),
                        .out = {to, stride},
                        .scratch = kernel_scratch,
                        .streams = timed->streams()});
    };
    const int64_t end = std::min(piece.last_panel * unit, width);
    for (int64_t first = piece.first_panel * unit; first < end; first += columns_at_once) {
      const int64_t count = std::min(columns_at_once, end - first);
      const CoveringPanels gate_panels(mlp.gate, first, count), up_panels(mlp.up, first, count);
      multiply(gate, mlp.gate, gate_rows, gate_panels, gates);
      multiply(up, mlp.up, up_rows, up_panels, ups);
      for (int64_t r = 0; r < piece.num_rows; ++r) {
        std::byte* const row = inner_rows + (piece.first_row + r) * down.input_stride();
        if (r + kPrefetchedRows < piece.num_rows) {
          down.prefetch(first, count, row + kPrefetchedRows * down.input_stride());
        }
        float* const values = gates + r * stride + gate_panels.skipped;
        activate(values, ups + r * stride + up_panels.skipped, count, values);
        down.prepare(values, first, count, row);
      }
    }
  };
  threads_.parallel_for(split.num_pieces(), split.grain(rows * 2 * width * x.size(1)),
                        [&](int64_t begin, int64_t end, int thread_index) {
                          for (int64_t i = begin; i < end; ++i) {
                            run_piece(split.piece(i), scratch + thread_index * thread_bytes);
                          }
                        });
  timed.reset();
  multiply(down, *mlp.down.matrix, inner_rows, bias_of(mlp.down), out);
}

}  // namespace paceline
