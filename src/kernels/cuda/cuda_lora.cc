#include "kernels/cuda/cuda_lora.h"

#include <algorithm>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

// Segments of more rows are products of their own, by the kernels for many rows.
constexpr int64_t kMostRowsOfSegment = 64;
// The rows whose inner sums are in memory at once.
constexpr int64_t kRowsAtOnce = 512;

LoraMatrix lora_matrix(const PackedMatrix& matrix) {
  LoraType type = LoraType::f32;
  if (matrix.dtype == DType::f16) type = LoraType::f16;
  if (matrix.dtype == DType::bf16) type = LoraType::bf16;
  return {plain_panels(matrix), type};
}

}  // namespace

void LoraTables::clear() {
  shrinks.clear();
  expands.clear();
  inner_width = most_ranks = end_row = row_inner_ = 0;
  last_a_ = nullptr;
}

void LoraTables::add(const LoraSegment& segment) {
  const LoraRowRange rows{segment.first_row, segment.first_row + segment.num_rows};
  const bool has_same_rows = !shrinks.empty() && shrinks.back().rows.first == rows.first;
  if (!has_same_rows) row_inner_ = 0;
  if (!has_same_rows || last_a_ != segment.a) {
    shrinks.push_back({.rows = rows,
                       .a = lora_matrix(*segment.a),
                       .num_ranks = static_cast<uint32_t>(segment.a->n),
                       .first_inner = static_cast<uint32_t>(row_inner_)});
    row_inner_ += segment.a->n;
    last_a_ = segment.a;
  }
  expands.push_back(
      {.rows = rows,
       .b = lora_matrix(*segment.b),
       .first_inner = shrinks.back().first_inner + static_cast<uint32_t>(segment.first_rank),
       .first_column = segment.first_column,
       .num_columns = segment.b->n});
  inner_width = std::max(inner_width, row_inner_);
  most_ranks = std::max(most_ranks, segment.a->n);
  end_row = rows.end;
}

int64_t lora_inner_floats(int64_t rows, int64_t inner_width, int64_t width) {
  return divide_up(width, kSegmentLength) * rows * inner_width;
}

void launch_lora(CudaDevice& device, LoraParams params, int64_t most_ranks, const Tensor& x,
                 const Tensor& out) {
  params.x = const_rows_of(x);
  params.num_inputs = static_cast<uint32_t>(x.size(1));
  params.out = rows_of(out);
  const auto blocks = [](int64_t count, int64_t each) {
    return static_cast<uint32_t>(divide_up(count, each));
  };
  const uint32_t row_tiles = blocks(params.num_rows, kLoraRows);
  launch<ShrinkLora>(
      device, {blocks(most_ranks, kPanelWidth), row_tiles, blocks(x.size(1), kSegmentLength)},
      params);
  launch<ExpandLora>(device, {blocks(out.size(1), kPanelWidth * int64_t{kLoraWarps}), row_tiles},
                     params);
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

void CudaBackend::add_lora_tables(const Tensor& x, int64_t first_row, const Tensor& out) {
  LoraTables& tables = lora_tables_;
  if (tables.shrinks.empty()) return;
  const auto [shrinks, expands] = staging_.upload(tables.shrinks, tables.expands);
  const int64_t rows = tables.end_row - first_row;
  launch_lora(device_,
              {.lists = {shrinks, expands, static_cast<uint32_t>(tables.shrinks.size()),
                         static_cast<uint32_t>(tables.expands.size())},
               .first_row = first_row,
               .num_rows = rows,
               .inner = lora_inner_.reserve_as<float>(
                   lora_inner_floats(rows, tables.inner_width, x.size(1))),
               .inner_width = static_cast<uint32_t>(tables.inner_width)},
              tables.most_ranks, x, out);
  tables.clear();
}

void CudaBackend::do_add_lora(const Tensor& x, std::span<const LoraSegment> segments,
                              const Tensor& out) {
  lora_tables_.clear();
  int64_t first_row = 0;
  for (const LoraSegment& segment : segments) {
    if (segment.num_rows > kMostRowsOfSegment) {
      add_lora_segment(x, segment, out);
      continue;
    }
    if (segment.first_row + segment.num_rows > first_row + kRowsAtOnce) {
      add_lora_tables(x, first_row, out);
    }
    if (lora_tables_.shrinks.empty()) first_row = segment.first_row;
    lora_tables_.add(segment);
  }
  add_lora_tables(x, first_row, out);
}

}  // namespace paceline::cuda
