#include "kernels/cpu/cpu_product.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/group_panels.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/product_split.h"

namespace paceline {
namespace {

// Panels that are expanded at a time, one of fewer rows; and the elements of a segment of one.
constexpr int64_t kExpandedPanels = 4;
constexpr int64_t kExpandedRows = 32;
constexpr int64_t kExpandedElements = kSegmentLength * kPanelWidth;

}  // namespace

CpuProduct::CpuProduct(const KernelTable& kernels, const PackedMatrix& matrix)
    : kernels_(kernels), matrix_(matrix), unpacks_freely_(unpacks_freely()) {
  if (matrix.groups) {
    groups_ = group_panels(matrix);
    kind_ = matrix.groups->activations == ActivationType::int8 ? Kind::int8 : Kind::expanded;
  }
  if (kind_ == Kind::int8) {
    input_stride_ = input_stride_of(kernels.quantized_row_bytes(groups_));
    scratch_bytes_ = kernels.group_scratch_bytes(groups_);
  } else {
    const auto dtype = static_cast<size_t>(matrix.dtype);
    input_stride_ = input_stride_of(matrix.padded_k() * kernels.input_bytes[dtype]);
    if (kind_ == Kind::expanded) {
      scratch_bytes_ = kExpandedPanels * kExpandedElements * int64_t(dtype_bytes(DType::bf16));
    }
  }
}

bool CpuProduct::takes_inputs_of(const CpuProduct& other) const {
  if (matrix_.k != other.matrix_.k) return false;
  if (!std::ranges::equal(matrix_.input_order(), other.matrix_.input_order())) return false;
  if (kind_ == Kind::int8 || other.kind_ == Kind::int8) {
    return kind_ == other.kind_ && matrix_.groups->grouping == other.matrix_.groups->grouping;
  }
  return matrix_.dtype == other.matrix_.dtype && input_stride_ == other.input_stride_;
}

void CpuProduct::prepare(const float* x, int64_t first, int64_t count, std::byte* row) const {
  if (!has_input_order()) return prepare_in_order(x, first, count, row);
  PL_CHECK(first == 0 && count == matrix_.k, "whole rows of inputs with an order");
  thread_local std::vector<float> gathered;
  gathered.resize(static_cast<size_t>(count));
  const std::span<const int32_t> order = matrix_.input_order();
  for (size_t i = 0; i < gathered.size(); ++i) gathered[i] = x[order[i]];
  prepare_in_order(gathered.data(), 0, count, row);
}

void CpuProduct::prepare_in_order(const float* x, int64_t first, int64_t count,
                                  std::byte* row) const {
  if (kind_ == Kind::int8) return kernels_.quantize_row(x, groups_, first, count, row);
  const auto dtype = static_cast<size_t>(matrix_.dtype);
  const bool is_last = first + count == matrix_.k;
  kernels_.prepare_row[dtype](x, count, is_last ? matrix_.padded_k() - first : count,
                              row + first * kernels_.input_bytes[dtype]);
}

void CpuProduct::prefetch(int64_t first, int64_t count, std::byte* row) const {
  if (kind_ == Kind::int8) return kernels_.prefetch_row(groups_, first, count, row);
  const int64_t bytes = kernels_.input_bytes[static_cast<size_t>(matrix_.dtype)];
  for (int64_t i = 0; i < count * bytes; i += kInputLine) {
    __builtin_prefetch(row + first * bytes + i, 1);
  }
}

int64_t CpuProduct::stream_panels(int64_t num_rows) const {
  switch (kind_) {
    case Kind::plain:
      return kernels_.stream_panels[static_cast<size_t>(matrix_.dtype)](num_rows);
    case Kind::int8:
      return kernels_.group_stream_panels(groups_, num_rows);
    case Kind::expanded:  // its panels are in the caches
      if (reads_float8(num_rows)) return kernels_.float8_stream_panels(num_rows);
      break;
  }
  return 0;
}

ProductSplit CpuProduct::split(int64_t num_rows, int64_t num_threads) const {
  const int64_t panels = matrix_.num_panels();
  if (kind_ != Kind::plain) return {num_rows, panels, num_threads};
  const int64_t panel_bytes = std::min(kSegmentLength, matrix_.padded_k()) * kPanelWidth *
                              int64_t(dtype_bytes(matrix_.dtype));
  return ProductSplit::of_tiles(num_rows, panels, num_threads,
                                kernels_.tile_rows[static_cast<size_t>(matrix_.dtype)],
                                panel_bytes);
}

void CpuProduct::multiply(const Piece& piece) const {
  // The kernels get the piece's panels as their matrix.
  Piece moved = piece;
  if (piece.bias != nullptr) moved.bias += piece.first_panel * kPanelWidth;
  const int64_t n = matrix_.n - piece.first_panel * kPanelWidth;
  switch (kind_) {
    case Kind::plain:
      return multiply_plain(moved, n);
    case Kind::int8:
      return multiply_int8(moved, n);
    case Kind::expanded:
      if (reads_float8(piece.num_rows)) return multiply_float8(moved, n);
      return multiply_expanded(moved, n);
  }
}

void CpuProduct::multiply_plain(const Piece& piece, int64_t n) const {
  kernels_.matmul[static_cast<size_t>(matrix_.dtype)](
      {.inputs = piece.inputs,
       .input_stride = input_stride_,
       .num_rows = piece.num_rows,
       .panels = matrix_.panel(piece.first_panel),
       .panel_elements = matrix_.panel_elements(),
       .n = n,
       .padded_k = matrix_.padded_k(),
       .first_panel = 0,
       .last_panel = piece.last_panel - piece.first_panel,
       .bias = piece.bias,
       .out = piece.out.elements,
       .out_stride = piece.out.stride,
       .streams = piece.streams,
       .outputs = piece.adds ? Outputs::added_to : Outputs::replaced});
}

void CpuProduct::multiply_int8(const Piece& piece, int64_t n) const {
  GroupPanels weights = groups_;
  weights.panels = matrix_.panel(piece.first_panel);
  kernels_.matmul_groups({.inputs = piece.inputs,
                          .input_stride = input_stride_,
                          .num_rows = piece.num_rows,
                          .weights = weights,
                          .n = n,
                          .first_panel = 0,
                          .last_panel = piece.last_panel - piece.first_panel,
                          .bias = piece.bias,
                          .out = piece.out.elements,
                          .out_stride = piece.out.stride,
                          .scratch = piece.scratch,
                          .unpacks_freely = unpacks_freely_,
                          .streams = piece.streams,
                          .next_panels = piece.next_panels});
}

void CpuProduct::multiply_float8(const Piece& piece, int64_t n) const {
  GroupPanels weights = groups_;
  weights.panels = matrix_.panel(piece.first_panel);
  kernels_.matmul_float8({.inputs = piece.inputs,
                          .input_stride = input_stride_,
                          .num_rows = piece.num_rows,
                          .weights = weights,
                          .n = n,
                          .first_panel = 0,
                          .last_panel = piece.last_panel - piece.first_panel,
                          .bias = piece.bias,
                          .out = piece.out.elements,
                          .out_stride = piece.out.stride,
                          .streams = piece.streams});
}

// Many rows take all panels of a segment, some at a time, before the next segment: their inputs to
// it stay in the second-level cache. Few rows take all segments of a panel, which lie side by side.
void CpuProduct::multiply_expanded(const Piece& piece, int64_t n) const {
  const bool is_few = piece.num_rows < kExpandedRows;
  const int64_t num_panels = piece.last_panel - piece.first_panel;
  const int64_t span = is_few ? 1 : num_panels;
  for (int64_t first = 0; first < num_panels; first += span) {
    const int64_t last = std::min(first + span, num_panels);
    for (int64_t k = 0; k < matrix_.k; k += kSegmentLength) {
      for (int64_t panel = first; panel < last; panel += kExpandedPanels) {
        add_expanded(piece, n, {panel, std::min(panel + kExpandedPanels, last), k});
      }
    }
  }
}

void CpuProduct::add_expanded(const Piece& piece, int64_t n, const Part& part) const {
  const auto dtype = static_cast<size_t>(DType::bf16);
  const int64_t count = std::min(kSegmentLength, matrix_.k - part.first_k);
  for (int64_t panel = part.first_panel; panel < part.last_panel; ++panel) {
    const int64_t at = (panel - part.first_panel) * kExpandedElements;
    kernels_.expand_panel(groups_, piece.first_panel + panel, part.first_k, count,
                          piece.scratch + at * int64_t(dtype_bytes(DType::bf16)));
  }
  const int64_t column = part.first_panel * kPanelWidth;
  const bool has_bias = piece.bias != nullptr && part.first_k + count == matrix_.k;
  kernels_.matmul[dtype](
      {.inputs = piece.inputs + part.first_k * kernels_.input_bytes[dtype],
       .input_stride = input_stride_,
       .num_rows = piece.num_rows,
       .panels = piece.scratch,
       .panel_elements = kExpandedElements,
       .n = std::min((part.last_panel - part.first_panel) * kPanelWidth, n - column),
       .padded_k = count,
       .last_panel = part.last_panel - part.first_panel,
       .bias = has_bias ? piece.bias + column : nullptr,
       .out = piece.out.elements + column,
       .out_stride = piece.out.stride,
       .streams = piece.streams,
       .outputs = part.first_k > 0 ? Outputs::added_to : Outputs::replaced});
}

}  // namespace paceline
