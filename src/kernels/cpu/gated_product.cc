#include "kernels/cpu/gated_product.h"

#include <algorithm>

#include "kernels/cpu/product_split.h"

namespace paceline {
namespace {

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

}  // namespace

InnerColumns::InnerColumns(int64_t rows, int64_t unit, int64_t units) {
  const int64_t row_bytes = rows * unit * 2 * int64_t{sizeof(float)};
  at_once = std::clamp<int64_t>(kInnerBytes / row_bytes, 1, units) * unit;
  // Projections may begin within a panel.
  stride = input_stride_of((at_once + 2 * kPanelWidth) * int64_t{sizeof(float)}) /
           int64_t{sizeof(float)};
}

GatedProduct::GatedProduct(const KernelTable& kernels, const GatedMlpWeights& mlp)
    : kernels_(kernels),
      mlp_(mlp),
      gate_(kernels, *mlp.gate.matrix),
      up_(kernels, *mlp.up.matrix),
      down_(kernels, *mlp.down.matrix) {}

int64_t GatedProduct::unit() const { return std::max(kInnerColumns, down_.input_length()); }

int64_t GatedProduct::weight_bytes() const {
  const PackedMatrix& matrix = *mlp_.gate.matrix;
  return (mlp_.gate.count + mlp_.up.count) * matrix.bytes() / matrix.n;
}

int64_t GatedProduct::scratch_bytes() const {
  return std::max(gate_.scratch_bytes(), up_.scratch_bytes());
}

const void* GatedProduct::gate_panel(int64_t unit) const {
  return gate_.panel((mlp_.gate.first + unit * this->unit()) / kPanelWidth);
}

void GatedProduct::run(const Piece& piece) const {
  const int64_t stride = piece.columns.stride, inner_stride = this->inner_stride();
  auto* const gates = reinterpret_cast<float*>(piece.scratch);
  float* const ups = gates + piece.num_rows * stride;
  auto* const kernel_scratch = reinterpret_cast<std::byte*>(ups + piece.num_rows * stride);
  const auto activate = kernels_.gated_activation[static_cast<size_t>(mlp_.activation)];
  const auto multiply = [&](const CpuProduct& product, const PackedColumns& columns,
                            const std::byte* inputs, const CoveringPanels& panels,
                            const void* next_panels, float* to) {
    product.multiply({.inputs = inputs,
                      .num_rows = piece.num_rows,
                      .first_panel = panels.first,
                      .last_panel = panels.last,
                      .bias = columns.bias ? columns.bias->elements<float>() : nullptr,
                      .out = {to, stride},
                      .scratch = kernel_scratch,
                      .streams = piece.streams,
                      .next_panels = next_panels});
  };
  const int64_t end = std::min(piece.last_unit * unit(), width());
  for (int64_t first = piece.first_unit * unit(); first < end; first += piece.columns.at_once) {
    const int64_t count = std::min(piece.columns.at_once, end - first);
    const CoveringPanels gate_panels(mlp_.gate, first, count), up_panels(mlp_.up, first, count);
    multiply(gate_, mlp_.gate, piece.gate_rows, gate_panels, up_.panel(up_panels.first), gates);
    const void* const after_up =
        first + count < end ? gate_panel((first + count) / unit()) : piece.next_panels;
    multiply(up_, mlp_.up, piece.up_rows, up_panels, after_up, ups);
    for (int64_t r = 0; r < piece.num_rows; ++r) {
      std::byte* const row = piece.inner_rows + r * inner_stride;
      const bool is_plain = has_plain_inner_rows();
      if (!is_plain && r + kPrefetchedRows < piece.num_rows) {
        down_.prefetch(first, count, row + kPrefetchedRows * inner_stride);
      }
      float* const values = gates + r * stride + gate_panels.skipped;
      activate(values, ups + r * stride + up_panels.skipped, count, values);
      if (is_plain) {
        std::copy(values, values + count, reinterpret_cast<float*>(row) + first);
      } else {
        down_.prepare(values, first, count, row);
      }
    }
  }
}

}  // namespace paceline
