#include "kernels/packed_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "kernels/group_packing.h"

namespace paceline {
namespace {

// K values packed at a time: 32 source rows of this many elements stay in the first-level cache.
constexpr int64_t kBlockK = 64;

// Tensors of a mapped file may be misaligned.
template <class T>
T load_element(const void* elements, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(elements) + index * int64_t{sizeof(T)}, sizeof(T));
  return value;
}

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, float>) {
    return to_float(value);
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return to_bfloat16(to_float(value));
  } else {
    return to_float16(to_float(value));
  }
}

template <class T>
int64_t index_in_panel(int64_t k, int64_t column) {
  constexpr int64_t kInterleave = interleave_of(dtype_of<T>());
  return (k / kInterleave * kPanelWidth + column) * kInterleave + k % kInterleave;
}

template <class T>
T* panel_elements(const PackedMatrix& matrix, int64_t panel) {
  return static_cast<T*>(matrix.storage.get()) + panel * matrix.panel_elements();
}

// Row n of the matrix as it stands in the parts: its part and its row there.
struct SourceRow {
  const Tensor* part = nullptr;
  int64_t row = 0;
};

SourceRow find_row(std::span<const Tensor> parts, int64_t n) {
  for (const Tensor& part : parts) {
    if (n < part.size(0)) return {&part, n};
    n -= part.size(0);
  }
  check_failed("find_row", __FILE__, __LINE__, "row beyond the parts");
}

template <class To>
void pack_row_block(const SourceRow& source, int64_t k_begin, int64_t k_end, int64_t column,
                    To* panel) {
  with_float_dtype(source.part->dtype(), [&]<class From>() {
    const void* row = static_cast<const char*>(source.part->raw()) +
                      source.row * source.part->stride(0) * int64_t{sizeof(From)};
    for (int64_t k = k_begin; k < k_end; ++k) {
      panel[index_in_panel<To>(k, column)] = convert<To>(load_element<From>(row, k));
    }
  });
}

template <class To>
void pack_panel(std::span<const Tensor> parts, const PackedMatrix& matrix, int64_t panel_index) {
  To* panel = panel_elements<To>(matrix, panel_index);
  const int64_t first = panel_index * kPanelWidth;
  const int64_t columns = std::min(kPanelWidth, matrix.n - first);
  SourceRow sources[kPanelWidth];
  for (int64_t i = 0; i < columns; ++i) sources[i] = find_row(parts, first + i);
  for (int64_t k = 0; k < matrix.k; k += kBlockK) {
    for (int64_t i = 0; i < columns; ++i) {
      pack_row_block(sources[i], k, std::min(k + kBlockK, matrix.k), i, panel);
    }
  }
}

}  // namespace

std::string PackedMatrix::format_name() const {
  if (!groups) return std::string(dtype_name(dtype));
  if (groups->grouping.is_float8()) return std::string(dtype_name(DType::f8_e4m3));
  return fmt::format("q{}x{}", groups->grouping.bits, groups->grouping.group_size);
}

bool is_permutation(std::span<const int32_t> order, int64_t count) {
  if (std::ssize(order) != count) return false;
  std::vector<bool> seen(order.size());
  for (const int32_t index : order) {
    if (index < 0 || index >= count || seen[static_cast<size_t>(index)]) return false;
    seen[static_cast<size_t>(index)] = true;
  }
  return true;
}

PackedMatrix empty_matrix(DType dtype, int64_t n, int64_t k, Memory& memory) {
  PackedMatrix matrix;
  matrix.dtype = dtype;
  matrix.n = n;
  matrix.k = k;
  matrix.storage = Buffer(memory, static_cast<size_t>(matrix.bytes()));
  return matrix;
}

PackedMatrix pack_matrix(std::span<const Tensor> parts, DType dtype, Memory& memory,
                         ThreadPool& threads) {
  const int64_t k = parts[0].size(-1);
  int64_t n = 0;
  for (const Tensor& part : parts) n += part.size(0);
  PackedMatrix matrix = empty_matrix(dtype, n, k, memory);
  with_float_dtype(dtype, [&]<class To>() {
    threads.parallel_for(matrix.num_panels(), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) pack_panel<To>(parts, matrix, i);
    });
  });
  return matrix;
}

PackedMatrix gather_columns(const PackedMatrix& matrix, std::span<const int32_t> columns,
                            Memory& memory) {
  if (matrix.groups) return gather_group_columns(matrix, columns, memory);
  PackedMatrix gathered =
      empty_matrix(matrix.dtype, static_cast<int64_t>(columns.size()), matrix.k, memory);
  with_float_dtype(matrix.dtype, [&]<class T>() {
    for (int64_t i = 0; i < gathered.n; ++i) {
      const int64_t column = columns[static_cast<size_t>(i)];
      const T* from = panel_elements<T>(matrix, column / kPanelWidth);
      T* to = panel_elements<T>(gathered, i / kPanelWidth);
      for (int64_t k = 0; k < matrix.k; ++k) {
        to[index_in_panel<T>(k, i % kPanelWidth)] =
            from[index_in_panel<T>(k, column % kPanelWidth)];
      }
    }
  });
  return gathered;
}

void unpack_row(const PackedMatrix& matrix, int64_t n, float* out) {
  PL_CHECK(n >= 0 && n < matrix.n, fmt::format("unpack_row: row {} of {}", n, matrix.n));
  if (matrix.groups) return unpack_group_row(matrix, n, out);
  with_float_dtype(matrix.dtype, [&]<class T>() {
    const T* panel = panel_elements<T>(matrix, n / kPanelWidth);
    for (int64_t k = 0; k < matrix.k; ++k) {
      out[k] = to_float(panel[index_in_panel<T>(k, n % kPanelWidth)]);
    }
  });
}

}  // namespace paceline
