#include "kernels/cpu/transposed_product.h"

#include <algorithm>

#include "base/divide_up.h"
#include "kernels/cpu/group_panels.h"

namespace paceline {
namespace {

// As many panels as a product of many rows takes at once: a segment of them stays in the
// second-level cache.
constexpr int64_t kBlockColumns = 128;
constexpr int64_t kSegmentPanels = kSegmentLength / kPanelWidth;

}  // namespace

TransposedProduct::TransposedProduct(const KernelTable& kernels, const PackedMatrix& matrix)
    : kernels_(kernels), matrix_(matrix) {
  const bool is_bf16 = matrix.groups || matrix.dtype == DType::bf16;
  dtype_ = is_bf16 ? DType::bf16 : DType::f32;
  // Quantised weights are expanded record by record.
  const int64_t unit = matrix.groups ? matrix.groups->grouping.factor_length() : kBlockColumns;
  block_columns_ = std::max(unit, kBlockColumns);
  const int64_t interleave = interleave_of(dtype_);
  padded_n_ = divide_up(matrix.n, interleave) * interleave;
  input_stride_ = input_stride_of(padded_n_ * kernels.input_bytes[static_cast<size_t>(dtype_)]);
}

int64_t TransposedProduct::usual_scratch_bytes() {
  const int64_t panel = kSegmentLength * kPanelWidth * int64_t(dtype_bytes(DType::bf16));
  return kBlockColumns / kPanelWidth * panel_stride(panel);
}

int64_t TransposedProduct::num_blocks() const { return divide_up(matrix_.k, block_columns_); }

void TransposedProduct::prepare(const float* dy, std::byte* row) const {
  kernels_.prepare_row[static_cast<size_t>(dtype_)](dy, matrix_.n, padded_n_, row);
}

int64_t TransposedProduct::transposed_panel_bytes() const {
  return panel_stride(kSegmentLength * kPanelWidth * int64_t(dtype_bytes(dtype_)));
}

int64_t TransposedProduct::transposed_bytes() const {
  return divide_up(block_columns_, kPanelWidth) * transposed_panel_bytes();
}

int64_t TransposedProduct::expanded_bytes() const {
  return matrix_.groups ? block_columns_ * kPanelWidth * int64_t(dtype_bytes(DType::bf16)) : 0;
}

void TransposedProduct::transpose(const Part& part, std::byte* scratch) const {
  const auto element = static_cast<int64_t>(dtype_bytes(matrix_.dtype));
  const int64_t interleave = interleave_of(matrix_.dtype);
  kernels_.transpose_panels[static_cast<size_t>(matrix_.dtype)](
      {.panels = static_cast<const char*>(matrix_.panel(part.first_panel)) +
                 part.first_k * kPanelWidth * element,
       .panel_elements = matrix_.panel_elements(),
       .num_panels = part.num_panels,
       .padded_k = divide_up(part.num_k, interleave) * interleave,
       .to = scratch,
       .to_panel_elements = transposed_panel_bytes() / int64_t(dtype_bytes(dtype_))});
}

void TransposedProduct::expand_and_transpose(const Part& part, std::byte* scratch) const {
  const GroupPanels groups = group_panels(matrix_);
  const auto element = static_cast<int64_t>(dtype_bytes(DType::bf16));
  std::byte* const expanded = scratch + transposed_bytes();
  for (int64_t i = 0; i < part.num_panels; ++i) {
    kernels_.expand_panel(groups, part.first_panel + i, part.first_k, part.num_k, expanded);
    kernels_.transpose_panels[static_cast<size_t>(DType::bf16)](
        {.panels = expanded,
         .num_panels = 1,
         .padded_k = part.num_k,
         .to = scratch + i * kPanelWidth * kPanelWidth * element,
         .to_panel_elements = transposed_panel_bytes() / element});
  }
}

void TransposedProduct::multiply(const Piece& piece) const {
  const auto dtype = static_cast<size_t>(dtype_);
  const int64_t first_k = piece.block * block_columns_;
  const int64_t num_k = std::min(block_columns_, matrix_.k - first_k);
  for (int64_t n = 0; n < matrix_.n; n += kSegmentLength) {
    const int64_t first_panel = n / kPanelWidth;
    const Part part = {first_panel, std::min(kSegmentPanels, matrix_.num_panels() - first_panel),
                       first_k, num_k};
    if (matrix_.groups) {
      expand_and_transpose(part, piece.scratch);
    } else {
      transpose(part, piece.scratch);
    }
    kernels_.matmul[dtype](
        {.inputs = piece.inputs + n * kernels_.input_bytes[dtype],
         .input_stride = input_stride_,
         .num_rows = piece.num_rows,
         .panels = piece.scratch,
         .panel_elements = transposed_panel_bytes() / int64_t(dtype_bytes(dtype_)),
         .n = num_k,
         .padded_k = std::min(kSegmentLength, padded_n_ - n),
         .last_panel = divide_up(num_k, kPanelWidth),
         .out = piece.out + first_k,
         .out_stride = piece.out_stride,
         .outputs = n > 0 || piece.adds ? Outputs::added_to : Outputs::replaced});
  }
}

int64_t TransposedProduct::whole_bytes() const {
  return divide_up(matrix_.k, kPanelWidth) * whole_panel_elements() * int64_t(dtype_bytes(dtype_));
}

bool TransposedProduct::is_transposed_whole(int64_t num_rows, int64_t num_threads,
                                            int64_t most_bytes) const {
  const int64_t tile_rows = kernels_.tile_rows[static_cast<size_t>(dtype_)];
  return !matrix_.groups && tile_rows > 0 && num_rows >= 2 * tile_rows * num_threads &&
         whole_bytes() <= most_bytes;
}

void TransposedProduct::transpose_panel(int64_t panel, std::byte* whole) const {
  const int64_t interleave = interleave_of(matrix_.dtype);
  kernels_.transpose_panels[static_cast<size_t>(matrix_.dtype)](
      {.panels = matrix_.panel(panel),
       .panel_elements = matrix_.panel_elements(),
       .num_panels = 1,
       .padded_k = divide_up(matrix_.k, interleave) * interleave,
       .to = whole + panel * kPanelWidth * kPanelWidth * int64_t(dtype_bytes(dtype_)),
       .to_panel_elements = whole_panel_elements()});
}

ProductSplit TransposedProduct::whole_split(int64_t num_rows, int64_t num_threads) const {
  const int64_t segment = std::min(kSegmentLength, padded_n_);
  return ProductSplit::of_tiles(num_rows, divide_up(matrix_.k, kPanelWidth), num_threads,
                                kernels_.tile_rows[static_cast<size_t>(dtype_)],
                                segment * kPanelWidth * int64_t(dtype_bytes(dtype_)));
}

void TransposedProduct::multiply_whole(const ProductSplit::Piece& piece, const std::byte* inputs,
                                       const std::byte* whole, const Tensor& out, bool adds) const {
  kernels_.matmul[static_cast<size_t>(dtype_)](
      {.inputs = inputs + piece.first_row * input_stride_,
       .input_stride = input_stride_,
       .num_rows = piece.num_rows,
       .panels = whole,
       .panel_elements = whole_panel_elements(),
       .n = matrix_.k,
       .padded_k = padded_n_,
       .first_panel = piece.first_panel,
       .last_panel = piece.last_panel,
       .out = out.row<float>(piece.first_row),
       .out_stride = out.stride(0),
       .outputs = adds ? Outputs::added_to : Outputs::replaced});
}

}  // namespace paceline
