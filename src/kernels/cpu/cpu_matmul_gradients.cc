// Gradients of products: by their inputs and by their weights.
#include <algorithm>

#include "kernels/cpu/cpu_gradients.h"
#include "kernels/cpu/product_split.h"
#include "kernels/cpu/row_split.h"
#include "kernels/cpu/transposed_product.h"

namespace paceline {
namespace {

// Rows and outputs whose operands are packed at a time, which bounds the scratch.
constexpr int64_t kPackedRows = 8 * kGradientRows;
constexpr int64_t kPackedOutputs = 4096;
// Outputs that meet some panels in all segments before the next ones: the second-level cache holds
// their sums and a segment's operands.
constexpr int64_t kBlockOutputs = 512;
// Columns of a segment of rows that a thread makes inputs at a time.
constexpr int64_t kColumnsAtOnce = 128;
// Weights up to this size are transposed at once: they stay in the second-level cache.
constexpr int64_t kMostWholeBytes = 2 << 20;
static_assert(kMostWholeBytes <= kPackedAttentionBytes);  // which cpu_gradient_bytes counts
// Rows whose columns a thread packs, all of them, before the next rows.
constexpr int64_t kRowsAtOnce = 64;
// Columns of x that are few: one row of tile registers.
constexpr int64_t kNarrowColumns = 16;

// The attention's tiles of a thread, in floats per element of a head, and beside them.
constexpr int64_t kTileFloatsPerElement = 6 * kGradientTile;
constexpr int64_t kScoreFloats = 4 * kGradientTile * kGradientTile;

Outputs outputs_of_weight_gradients(DType dtype) {
  return dtype == DType::bf16 ? Outputs::continued : Outputs::added_to;
}

}  // namespace

size_t cpu_gradient_bytes(int64_t rows, int64_t widest, int64_t head_dim, int num_threads) {
  const auto element = static_cast<int64_t>(dtype_bytes(DType::bf16));
  const int64_t packed_rows = std::min(rows, kPackedRows);
  const int64_t inputs = rows * input_stride_of(widest * element) +
                         std::min(widest, kPackedOutputs) * input_stride_of(packed_rows * element);
  const int64_t panels =
      std::max(divide_up(widest, kPanelWidth) * panel_stride(packed_rows * kPanelWidth * element),
               kPackedAttentionBytes);
  const int64_t key_tiles = std::min(divide_up(rows, kGradientTile), kMostWholeSums / head_dim);
  const int64_t key_sums = 2 * kGradientTile * head_dim * key_tiles;
  const int64_t tiles =
      (kTileFloatsPerElement * head_dim + kScoreFloats + key_sums) * int64_t{sizeof(float)};
  const int64_t of_thread = std::max(tiles, TransposedProduct::usual_scratch_bytes());
  return static_cast<size_t>(inputs + panels + of_thread * num_threads);
}

void CpuGradients::multiply_whole(const TransposedProduct& product, const PackedMatrix& w,
                                  const std::byte* inputs, Former former, const Tensor& dx) {
  const int64_t rows = dx.size(0);
  auto* const whole = panels_.reserve_as<std::byte>(product.whole_bytes());
  split_rows(threads_, product.num_whole_panels(), w.k * kPanelWidth,
             [&](int64_t panel) { product.transpose_panel(panel, whole); });
  const ProductSplit split = product.whole_split(rows, threads_.num_threads());
  threads_.parallel_for(
      split.num_pieces(), split.grain(rows * w.n * w.k), [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          product.multiply_whole(split.piece(i), inputs, whole, dx, former == Former::added_to);
        }
      });
}

void CpuGradients::multiply_blocks(const TransposedProduct& product, const PackedMatrix& w,
                                   const std::byte* inputs, Former former, const Tensor& dx) {
  const int64_t rows = dx.size(0), stride = product.input_stride();
  const int64_t scratch_bytes = product.scratch_bytes();
  auto* const scratch =
      thread_scratch_.reserve_as<std::byte>(threads_.num_threads() * scratch_bytes);
  const ProductSplit split(rows, product.num_blocks(), threads_.num_threads());
  threads_.parallel_for(split.num_pieces(), split.grain(rows * w.n * w.k),
                        [&](int64_t begin, int64_t end, int thread_index) {
                          for (int64_t i = begin; i < end; ++i) {
                            const ProductSplit::Piece piece = split.piece(i);
                            for (int64_t block = piece.first_panel; block < piece.last_panel;
                                 ++block) {
                              product.multiply({.inputs = inputs + piece.first_row * stride,
                                                .num_rows = piece.num_rows,
                                                .block = block,
                                                .out = dx.row<float>(piece.first_row),
                                                .out_stride = dx.stride(0),
                                                .scratch = scratch + thread_index * scratch_bytes,
                                                .adds = former == Former::added_to});
                            }
                          }
                        });
}

void CpuGradients::multiply_transposed(const TransposedProduct& product, const PackedMatrix& w,
                                       const std::byte* inputs, Former former, const Tensor& dx) {
  if (product.is_transposed_whole(dx.size(0), threads_.num_threads(), kMostWholeBytes)) {
    return multiply_whole(product, w, inputs, former, dx);
  }
  multiply_blocks(product, w, inputs, former, dx);
}

void CpuGradients::do_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, Former former,
                                            const Tensor& dx) {
  const TransposedProduct product(kernels_, w);
  const std::byte* const inputs = prepare_rows(product, dy);
  if (!w.has_input_order()) return multiply_transposed(product, w, inputs, former, dx);
  const int64_t rows = dx.size(0);
  const Tensor ordered(ordered_.reserve_as<float>(rows * w.k), DType::f32, {rows, w.k});
  multiply_transposed(product, w, inputs, Former::replaced, ordered);
  const std::span<const int32_t> order = w.input_order();
  split_rows(threads_, rows, w.k, [&](int64_t row) {
    const float* const from = ordered.row<float>(row);
    float* const to = dx.row<float>(row);
    for (size_t i = 0; i < order.size(); ++i) {
      to[order[i]] = former == Former::added_to ? to[order[i]] + from[i] : from[i];
    }
  });
}

const std::byte* CpuGradients::prepare_rows(const TransposedProduct& product, const Tensor& dy) {
  const int64_t rows = dy.size(0), stride = product.input_stride();
  auto* const inputs = input_rows_.reserve_as<std::byte>(rows * stride);
  split_rows(threads_, rows, dy.size(1),
             [&](int64_t row) { product.prepare(dy.row<float>(row), inputs + row * stride); });
  return inputs;
}

// Some rows of all panels at a time: reading whole rows, one after another, is faster than reading
// 32 columns of all rows.
void CpuGradients::pack_panels(const Tensor& rows, DType dtype, int64_t panel_bytes,
                               std::byte* panels) {
  const int64_t num_rows = rows.size(0), columns = rows.size(1);
  const int64_t row_bytes = kPanelWidth * static_cast<int64_t>(dtype_bytes(dtype));
  split_rows(threads_, divide_up(num_rows, kRowsAtOnce), kRowsAtOnce * columns, [&](int64_t unit) {
    const int64_t row = unit * kRowsAtOnce;
    for (int64_t first = 0; first < columns; first += kPanelWidth) {
      kernels_.pack_columns[static_cast<size_t>(dtype)](
          {.rows = rows.row<float>(row) + first,
           .row_stride = rows.stride(0),
           .num_rows = std::min(kRowsAtOnce, num_rows - row),
           .num_columns = std::min(kPanelWidth, columns - first),
           .to = panels + first / kPanelWidth * panel_bytes + row * row_bytes});
    }
  });
}

void CpuGradients::prepare_columns(const Tensor& rows, DType dtype, int64_t input_stride,
                                   std::byte* inputs) {
  const int64_t num_rows = rows.size(0), columns = rows.size(1);
  const int64_t input_bytes = kernels_.input_bytes[static_cast<size_t>(dtype)];
  const int64_t units = divide_up(columns, kColumnsAtOnce);
  const int64_t segments = divide_up(num_rows, kGradientRows);
  split_rows(threads_, units * segments, kColumnsAtOnce * kGradientRows, [&](int64_t index) {
    const int64_t first = index % units * kColumnsAtOnce, row = index / units * kGradientRows;
    kernels_.prepare_columns[static_cast<size_t>(dtype)](
        {.rows = rows.row<float>(row) + first,
         .row_stride = rows.stride(0),
         .num_rows = std::min(kGradientRows, num_rows - row),
         .num_columns = std::min(kColumnsAtOnce, columns - first),
         .to = inputs + first * input_stride + row * input_bytes,
         .to_stride = input_stride});
  });
}

void CpuGradients::add_narrow_weight_gradient(const Tensor& dy, const Tensor& x, DType dtype,
                                              const Tensor& dw) {
  const int64_t interleave = interleave_of(dtype), element = int64_t(dtype_bytes(dtype));
  const int64_t rows = dy.size(0), n = dy.size(1), k = x.size(1);
  const int64_t most_rows = divide_up(std::min(rows, kPackedRows), interleave) * interleave;
  const int64_t stride = input_stride_of(most_rows * kernels_.input_bytes[int(dtype)]);
  const int64_t panel_bytes = panel_stride(most_rows * kPanelWidth * element);
  auto* const inputs = input_rows_.reserve_as<std::byte>(k * stride);
  auto* const scratch = thread_scratch_.reserve_as<std::byte>(threads_.num_threads() * panel_bytes);
  for (int64_t row = 0; row < rows; row += kPackedRows) {
    const int64_t num_rows = std::min(kPackedRows, rows - row);
    prepare_columns(x.slice(0, row, row + num_rows), dtype, stride, inputs);
    const auto add_panel = [&](int64_t first, std::byte* panel) {
      const int64_t columns = std::min(kPanelWidth, n - first);
      kernels_.pack_columns[static_cast<size_t>(dtype)]({.rows = dy.row<float>(row) + first,
                                                         .row_stride = dy.stride(0),
                                                         .num_rows = num_rows,
                                                         .num_columns = columns,
                                                         .to = panel});
      float sums[kNarrowColumns * kPanelWidth];
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t i = 0; i < k; ++i) sums[i * kPanelWidth + j] = dw.row<float>(first + j)[i];
      }
      kernels_.matmul[static_cast<size_t>(dtype)](
          {.inputs = inputs,
           .input_stride = stride,
           .num_rows = k,
           .panels = panel,
           .panel_elements = panel_bytes / element,
           .n = columns,
           .padded_k = divide_up(num_rows, interleave) * interleave,
           .last_panel = 1,
           .out = sums,
           .out_stride = kPanelWidth,
           .segment_length = kGradientRows,
           .outputs = outputs_of_weight_gradients(dtype)});
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t i = 0; i < k; ++i) dw.row<float>(first + j)[i] = sums[i * kPanelWidth + j];
      }
    };
    const int64_t panels = divide_up(n, kPanelWidth);
    threads_.parallel_for(panels, grain_of(panels, num_rows * n * k),
                          [&](int64_t begin, int64_t end, int thread_index) {
                            for (int64_t panel = begin; panel < end; ++panel) {
                              add_panel(panel * kPanelWidth, scratch + thread_index * panel_bytes);
                            }
                          });
  }
}

// prepare(rows, outputs, stride, inputs) makes some rows' gradients of some outputs the inputs of a
// product whose K are the rows.
template <class Prepare>
void CpuGradients::add_weight_gradient(int64_t n, const Tensor& x, DType dtype,
                                       GrowingBuffer& columns, Prepare&& prepare,
                                       const Tensor& dw) {
  const int64_t interleave = interleave_of(dtype), element = int64_t(dtype_bytes(dtype));
  const int64_t rows = x.size(0), k = x.size(1);
  const int64_t most_rows = divide_up(std::min(rows, kPackedRows), interleave) * interleave;
  const int64_t stride = input_stride_of(most_rows * kernels_.input_bytes[int(dtype)]);
  const int64_t panel_bytes = panel_stride(most_rows * kPanelWidth * element);
  const int64_t num_panels = divide_up(k, kPanelWidth);
  auto* const panels = panels_.reserve_as<std::byte>(num_panels * panel_bytes);
  auto* const inputs = columns.reserve_as<std::byte>(std::min(n, kPackedOutputs) * stride);

  const auto multiply = [&](const ProductSplit::Piece& piece, int64_t num_rows, int64_t output) {
    kernels_.matmul[static_cast<size_t>(dtype)](
        {.inputs = inputs + piece.first_row * stride,
         .input_stride = stride,
         .num_rows = piece.num_rows,
         .panels = panels,
         .panel_elements = panel_bytes / element,
         .n = k,
         .padded_k = divide_up(num_rows, interleave) * interleave,
         .first_panel = piece.first_panel,
         .last_panel = piece.last_panel,
         .out = dw.row<float>(output + piece.first_row),
         .out_stride = dw.stride(0),
         .segment_length = dtype == DType::bf16 ? kSegmentLength : kGradientRows,
         .outputs = outputs_of_weight_gradients(dtype)});
  };
  for (int64_t row = 0; row < rows; row += kPackedRows) {
    const int64_t num_rows = std::min(kPackedRows, rows - row);
    pack_panels(x.slice(0, row, row + num_rows), dtype, panel_bytes, panels);
    for (int64_t output = 0; output < n; output += kPackedOutputs) {
      const int64_t outputs = std::min(kPackedOutputs, n - output);
      prepare(GradientBlock{row, num_rows, output, outputs}, stride, inputs);
      ProductSplit split =
          ProductSplit::of_tiles(outputs, num_panels, threads_.num_threads(),
                                 kernels_.tile_rows[static_cast<size_t>(dtype)],
                                 std::min(panel_bytes, kSegmentLength * kPanelWidth * element));
      split.block_rows = std::min(split.block_rows, kBlockOutputs);
      threads_.parallel_for(split.num_pieces(), split.grain(num_rows * outputs * k),
                            [&](int64_t begin, int64_t end, int) {
                              for (int64_t i = begin; i < end; ++i) {
                                multiply(split.piece(i), num_rows, output);
                              }
                            });
    }
  }
}

void CpuGradients::do_matmul_weight_gradient(const Tensor& dy, const Tensor& x,
                                             OperandRounding rounding, const Tensor& dw) {
  const DType dtype = rounding == OperandRounding::bfloat16 ? DType::bf16 : DType::f32;
  if (x.size(1) <= kNarrowColumns && dy.size(1) > x.size(1)) {
    return add_narrow_weight_gradient(dy, x, dtype, dw);
  }
  add_weight_gradient(
      dy.size(1), x, dtype, input_rows_,
      [&](const GradientBlock& block, int64_t stride, std::byte* inputs) {
        const Tensor rows = dy.slice(0, block.first_row, block.first_row + block.num_rows);
        prepare_columns(rows.slice(1, block.first_output, block.first_output + block.num_outputs),
                        dtype, stride, inputs);
      },
      dw);
}

bool CpuGradients::shares_inputs(const PackedMatrix& w, const WeightGradient* of_weights) const {
  const bool is_bf16 = !w.groups && w.dtype == DType::bf16;
  if (!is_bf16 || kernels_.transpose_inputs == nullptr) return false;
  return of_weights == nullptr ||
         (of_weights->rounding == OperandRounding::bfloat16 && w.k > kNarrowColumns);
}

void CpuGradients::transpose_inputs(const TransposedProduct& product, const std::byte* rows,
                                    const GradientBlock& block, int64_t stride,
                                    std::byte* columns) {
  constexpr auto kElement = static_cast<int64_t>(dtype_bytes(DType::bf16));
  const int64_t units = divide_up(block.num_outputs, kColumnsAtOnce);
  const int64_t segments = divide_up(block.num_rows, kGradientRows);
  split_rows(threads_, units * segments, kColumnsAtOnce * kGradientRows, [&](int64_t index) {
    const int64_t first = index % units * kColumnsAtOnce, row = index / units * kGradientRows;
    kernels_.transpose_inputs({.rows = rows + (block.first_row + row) * product.input_stride() +
                                       (block.first_output + first) * kElement,
                               .row_stride = product.input_stride(),
                               .num_rows = std::min(kGradientRows, block.num_rows - row),
                               .num_columns = std::min(kColumnsAtOnce, block.num_outputs - first),
                               .to = columns + first * stride + row * kElement,
                               .to_stride = stride});
  });
}

void CpuGradients::multiply_prepared(const TransposedProduct& product, const PackedMatrix& w,
                                     const std::byte* rows, const WeightGradient* of_weights,
                                     const Tensor& dx) {
  multiply_transposed(product, w, rows, Former::replaced, dx);
  if (of_weights == nullptr) return;
  add_weight_gradient(
      w.n, of_weights->x, DType::bf16, columns_,
      [&](const GradientBlock& block, int64_t stride, std::byte* columns) {
        transpose_inputs(product, rows, block, stride, columns);
      },
      of_weights->dw);
}

// The rows of dy are rounded once for both products.
void CpuGradients::do_matmul_gradients(const Tensor& dy, const PackedMatrix& w,
                                       const WeightGradient& of_weights, const Tensor& dx) {
  if (!shares_inputs(w, &of_weights)) {
    return GradientOps::do_matmul_gradients(dy, w, of_weights, dx);
  }
  const TransposedProduct product(kernels_, w);
  multiply_prepared(product, w, prepare_rows(product, dy), &of_weights, dx);
}

void CpuGradients::gated_matmul_one_by_one(Activation kind, const GatedGradientInputs& in,
                                           const PackedMatrix& w, const WeightGradient* of_weights,
                                           const Tensor& dx) {
  const int64_t rows = dx.size(0), width = w.n / 2;
  const Tensor dy(columns_.reserve_as<float>(rows * w.n), DType::f32, {rows, w.n});
  do_gated_activation_gradient(kind, in, dy.slice(1, 0, width), dy.slice(1, width, w.n));
  do_matmul_input_gradient(dy, w, Former::replaced, dx);
  if (of_weights == nullptr) return;
  do_matmul_weight_gradient(dy, of_weights->x, of_weights->rounding, of_weights->dw);
}

// The gradients of gate and up exist as float32 for one row at a time.
void CpuGradients::do_gated_matmul_gradients(Activation kind, const GatedGradientInputs& in,
                                             const PackedMatrix& w,
                                             const WeightGradient* of_weights, const Tensor& dx) {
  if (!shares_inputs(w, of_weights)) {
    return gated_matmul_one_by_one(kind, in, w, of_weights, dx);
  }
  const TransposedProduct product(kernels_, w);
  const int64_t rows = dx.size(0), width = w.n / 2, stride = product.input_stride();
  auto* const inputs = input_rows_.reserve_as<std::byte>(rows * stride);
  auto* const scratch = thread_scratch_.reserve_as<float>(threads_.num_threads() * w.n);
  const auto kernel = kernels_.gated_gradient[static_cast<size_t>(kind)];
  threads_.parallel_for(rows, std::max<int64_t>(1, kPieceElements / w.n),
                        [&](int64_t begin, int64_t end, int thread_index) {
                          float* const row_gradient = scratch + thread_index * w.n;
                          for (int64_t row = begin; row < end; ++row) {
                            kernel({.gate = in.gate.row<float>(row),
                                    .up = in.up.row<float>(row),
                                    .dout = in.dout.row<float>(row),
                                    .width = width,
                                    .dgate = row_gradient,
                                    .dup = row_gradient + width});
                            product.prepare(row_gradient, inputs + row * stride);
                          }
                        });
  multiply_prepared(product, w, inputs, of_weights, dx);
}

}  // namespace paceline
