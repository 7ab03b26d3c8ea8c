// PackedMatrix is a weight matrix [N, K] in the layout that both GEMV and GEMM read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/thread_pool.h"
#include "kernels/packed_groups.h"
#include "kernels/packed_layout.h"
#include "tensor/tensor.h"

namespace paceline {

// Consecutive K values that lie beside each other for one column: pairs for bfloat16 (vdpbf16ps).
constexpr int64_t interleave_of(DType dtype) { return dtype == DType::bf16 ? 2 : 1; }

// The distance between panels of `used_bytes`. Several panels stream at once: a multiple of a page
// apart they would share cache sets and memory banks, so 17 cache lines are added there.
constexpr int64_t panel_stride(int64_t used_bytes) {
  constexpr int64_t kPage = 4096, kGap = 17 * 64;
  return used_bytes % kPage == 0 ? used_bytes + kGap : used_bytes;
}

// Plain: element (n, k) stands at panels[n / 32][k / interleave][n % 32][k % interleave]. N is
// padded with zero columns to a multiple of 32, K with zeros to a multiple of the interleave.
// Quantised: packed_groups.h. Behind the panels may stand the order of the inputs, [k] int32.
struct PackedMatrix {
  DType dtype = DType::f32;  // of plain weights
  std::optional<PackedGroups> groups;
  int64_t n = 0;  // outputs
  int64_t k = 0;  // inputs
  Buffer storage;

  int64_t num_panels() const { return (n + kPanelWidth - 1) / kPanelWidth; }
  int64_t padded_k() const {
    const int64_t interleave = groups ? 1 : interleave_of(dtype);
    return (k + interleave - 1) / interleave * interleave;
  }
  int64_t num_groups() const { return k / groups->grouping.group_size; }
  int64_t num_records() const { return k / groups->grouping.factor_length(); }
  int64_t panel_bytes() const {
    return panel_stride(groups ? kPanelHeadBytes + num_records() * groups->record_bytes()
                               : padded_k() * kPanelWidth * int64_t(dtype_bytes(dtype)));
  }
  int64_t panel_elements() const { return panel_bytes() / int64_t(dtype_bytes(dtype)); }
  bool has_input_order() const { return groups && groups->has_input_order; }
  int64_t bytes() const {
    const int64_t order_bytes = has_input_order() ? k * int64_t{sizeof(int32_t)} : 0;
    return num_panels() * panel_bytes() + order_bytes;
  }
  // The input that each K of the panels multiplies, a permutation; empty: they are in order.
  std::span<const int32_t> input_order() const {
    if (!has_input_order()) return {};
    return {static_cast<const int32_t*>(panel(num_panels())), static_cast<size_t>(k)};
  }
  // "bfloat16", "float8_e4m3"; bits and group size of integers: "q4x64".
  std::string format_name() const;
  const void* panel(int64_t index) const {
    return static_cast<const char*>(storage.get()) + index * panel_bytes();
  }
};

// Neighbouring columns of a packed matrix: one of the projections that were packed together.
struct PackedColumns {
  const PackedMatrix* matrix = nullptr;
  int64_t first = 0;
  int64_t count = 0;
  std::optional<Tensor> bias = {};  // [n] of the matrix
};

// Whether `order` has each number of [0, count) once.
bool is_permutation(std::span<const int32_t> order, int64_t count);

// A plain matrix of zeros.
PackedMatrix empty_matrix(DType dtype, int64_t n, int64_t k, Memory& memory);

// Implement Backend::pack_matrix, pack_groups and gather_columns on the CPU; Backend checks the
// arguments.
PackedMatrix pack_matrix(std::span<const Tensor> parts, DType dtype, Memory& memory,
                         ThreadPool& threads);

PackedMatrix pack_groups(std::span<const GroupedRows* const> parts, ActivationType activations,
                         Memory& memory, ThreadPool& threads);
PackedMatrix gather_columns(const PackedMatrix& matrix, std::span<const int32_t> columns,
                            Memory& memory);

// Writes row n of the original [N, K] matrix as float32 to out[0, K), dequantised if need be.
void unpack_row(const PackedMatrix& matrix, int64_t n, float* out);

}  // namespace paceline
