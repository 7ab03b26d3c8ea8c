// Operations that move, inspect and pool elements.
#include <algorithm>
#include <cstring>

#include "base/divide_up.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/finite.h"
#include "kernels/cpu/row_split.h"

namespace paceline {
namespace {

// Columns of one task of pool_rows: their sums stay in the first-level cache.
constexpr int64_t kPooledColumns = 256;
// Those of one task of add_scaled_rows.
constexpr int64_t kAddedColumns = 256;

// Combines the columns of one row with theirs in `pooled`.
void pool_row(RowPooling how, const float* row, double weight, std::span<double> pooled) {
  switch (how) {
    case RowPooling::sum:
      for (size_t i = 0; i < pooled.size(); ++i) pooled[i] += double{row[i]};
      return;
    case RowPooling::weighted_sum:
      for (size_t i = 0; i < pooled.size(); ++i) pooled[i] += weight * double{row[i]};
      return;
    case RowPooling::max:
      for (size_t i = 0; i < pooled.size(); ++i) pooled[i] = std::max(pooled[i], double{row[i]});
      return;
  }
}

void copy_block(const Tensor& blocks, const BlockMove& move) {
  const Tensor from = blocks.slice(0, move.from, move.from + 1);
  const Tensor to = blocks.slice(0, move.to, move.to + 1);
  if (!from.is_contiguous()) return copy_elements(from, to);
  std::memmove(to.raw(), from.raw(), from.size_bytes());
}

}  // namespace

std::span<const float> CpuBackend::do_read(const Tensor& x, std::vector<float>& /*staging*/) {
  return {x.elements<float>(), static_cast<size_t>(x.num_elements())};
}

void CpuBackend::do_write(std::span<const float> elements, const Tensor& out) {
  std::copy(elements.begin(), elements.end(), out.elements<float>());
}

// Weights that are trained, or change otherwise, are one float32 tensor.
PackedMatrix CpuBackend::do_pack_matrix(std::span<const Tensor> parts, DType dtype) {
  const auto pack_rows = kernels_.pack_rows[static_cast<size_t>(dtype)];
  const Tensor& rows = parts.front();
  if (parts.size() > 1 || rows.dtype() != DType::f32 || pack_rows == nullptr) {
    return paceline::pack_matrix(parts, dtype, memory_, threads_);
  }
  PackedMatrix matrix = empty_matrix(dtype, rows.size(0), rows.size(1), memory_);
  auto* const panels = static_cast<std::byte*>(matrix.storage.get());
  threads_.parallel_for(matrix.num_panels(), 1, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * kPanelWidth;
      pack_rows({.rows = rows.row<float>(first),
                 .row_stride = rows.stride(0),
                 .num_rows = std::min(kPanelWidth, matrix.n - first),
                 .num_columns = matrix.k,
                 .to = panels + panel * matrix.panel_bytes()});
    }
  });
  return matrix;
}

PackedMatrix CpuBackend::do_pack_groups(std::span<const GroupedRows* const> parts,
                                        ActivationType activations) {
  return paceline::pack_groups(parts, activations, memory_, threads_);
}

PackedMatrix CpuBackend::do_gather_columns(const PackedMatrix& matrix,
                                           std::span<const int32_t> columns) {
  return paceline::gather_columns(matrix, columns, memory_);
}

void CpuBackend::do_gather_rows(const Tensor& x, Indices<int32_t> rows, const Tensor& out) {
  const int64_t width = out.size(1);
  for_each_row(out.size(0), width, [&](int64_t row) {
    const auto* const from = x.row<float>(rows.host()[static_cast<size_t>(row)]);
    std::copy(from, from + width, out.row<float>(row));
  });
}

void CpuBackend::do_clear(const Tensor& out) {
  for_each_row(out.size(0), out.size(1),
               [&](int64_t row) { std::fill_n(out.row<float>(row), out.size(1), 0.0f); });
}

// Each thread has some columns of all rows, in order.
void CpuBackend::do_add_scaled_rows(const Tensor& x, std::span<const int32_t> rows,
                                    std::span<const float> weights, const Tensor& out) {
  const int64_t num_rows = x.size(0), width = x.size(1);
  const int64_t blocks = divide_up(width, kAddedColumns);
  split_rows(threads_, blocks, num_rows * std::min(width, kAddedColumns), [&](int64_t block) {
    const int64_t first = block * kAddedColumns, count = std::min(kAddedColumns, width - first);
    for (int64_t i = 0; i < num_rows; ++i) {
      const auto index = static_cast<size_t>(i);
      kernels_.add_scaled(x.row<float>(i) + first, weights[index], count,
                          out.row<float>(rows[index]) + first);
    }
  });
}

void CpuBackend::do_finite_rows(const Tensor& x, RowFlags out) {
  const auto width = static_cast<size_t>(x.size(1));
  for_each_row(x.size(0), x.size(1), [&](int64_t row) {
    out.host()[static_cast<size_t>(row)] = is_finite({x.row<float>(row), width}) ? 1 : 0;
  });
}

void CpuBackend::do_pool_rows(RowPooling how, const Tensor& x, int64_t first_position,
                              std::span<double> pooled) {
  const int64_t rows = x.size(0), width = x.size(1);
  for_each_row(divide_up(width, kPooledColumns), rows * kPooledColumns, [&](int64_t part) {
    const int64_t first = part * kPooledColumns;
    const auto columns = pooled.subspan(
        static_cast<size_t>(first), static_cast<size_t>(std::min(kPooledColumns, width - first)));
    for (int64_t r = 0; r < rows; ++r) {
      const auto weight = static_cast<double>(first_position + r + 1);
      pool_row(how, x.row<float>(r) + first, weight, columns);
    }
  });
}

void CpuBackend::do_copy_blocks(const KvStore& store, std::span<const BlockMove> moves) {
  for (const BlockMove& move : moves) {
    copy_block(store.keys, move);
    if (store.values_in_keys == 0) copy_block(store.values, move);
    if (!store.has_scales()) continue;
    copy_block(store.key_scales, move);
    copy_block(store.value_scales, move);
  }
}

}  // namespace paceline
