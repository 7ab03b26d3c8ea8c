// Products with quantised matrices: in integers, or with panels taken apart into bfloat16.
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/group_panels.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/product_split.h"

namespace paceline {

void CpuBackend::multiply_int8(const Tensor& x, const PackedMatrix& w, const Tensor* bias,
                               const Tensor& out) {
  const GroupPanels weights = group_panels(w);
  const int64_t stride = input_stride_of(kernels_.quantized_row_bytes(weights));
  auto* const rows = input_rows_.reserve_as<std::byte>(x.size(0) * stride);
  for_each_row(x.size(0), w.k, [&](int64_t row) {
    kernels_.quantize_row(x.row<float>(row), weights, rows + row * stride);
  });
  const int64_t scratch_bytes = kernels_.group_scratch_bytes;
  auto* const scratch =
      thread_scratch_.reserve_as<std::byte>(threads_.num_threads() * scratch_bytes);
  const ProductSplit split(x.size(0), w.num_panels(), threads_.num_threads());
  threads_.parallel_for(
      split.num_pieces(), split.grain(x.size(0) * w.n * w.k),
      [&](int64_t begin, int64_t end, int thread_index) {
        for (int64_t i = begin; i < end; ++i) {
          const ProductSplit::Piece piece = split.piece(i);
          kernels_.matmul_groups({.inputs = rows + piece.first_row * stride,
                                  .input_stride = stride,
                                  .num_rows = piece.num_rows,
                                  .weights = weights,
                                  .n = w.n,
                                  .first_panel = piece.first_panel,
                                  .last_panel = piece.last_panel,
                                  .bias = bias != nullptr ? bias->elements<float>() : nullptr,
                                  .out = out.row<float>(piece.first_row),
                                  .out_stride = out.stride(0),
                                  .scratch = scratch + thread_index * scratch_bytes,
                                  .unpacks_freely = unpacks_freely()});
        }
      });
}

void CpuBackend::multiply_expanded(const Tensor& x, const PackedMatrix& w, const Tensor* bias,
                                   const Tensor& out) {
  const GroupPanels weights = group_panels(w);
  const PreparedRows inputs = prepare_rows(x, w);
  const auto kernel = kernels_.matmul[static_cast<size_t>(DType::bf16)];
  const int64_t elements = w.k * kPanelWidth;
  const int64_t panel_bytes = elements * static_cast<int64_t>(dtype_bytes(DType::bf16));
  auto* const scratch = thread_scratch_.reserve_as<std::byte>(threads_.num_threads() * panel_bytes);
  // All rows with one panel at a time, which is taken apart once.
  const int64_t grain = x.size(0) * w.n * w.k < kPieceElements ? w.num_panels() : 1;
  threads_.parallel_for(w.num_panels(), grain, [&](int64_t begin, int64_t end, int thread_index) {
    std::byte* const panel = scratch + thread_index * panel_bytes;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i * kPanelWidth;
      kernels_.expand_panel(weights, i, panel);
      kernel({.inputs = inputs.rows,
              .input_stride = inputs.stride,
              .num_rows = x.size(0),
              .panels = panel,
              .panel_elements = elements,
              .n = std::min(kPanelWidth, w.n - column),
              .padded_k = w.k,
              .first_panel = 0,
              .last_panel = 1,
              .bias = bias != nullptr ? bias->elements<float>() + column : nullptr,
              .out = out.elements<float>() + column,
              .out_stride = out.stride(0)});
    }
  });
}

}  // namespace paceline
