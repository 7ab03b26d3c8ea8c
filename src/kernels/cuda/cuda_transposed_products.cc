// Products with the inputs of packed weights, which are turned first, some columns at a time: those
// of gradients.
#include <algorithm>

#include "kernels/cuda/code/transpose_panels.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/operand_views.h"

namespace paceline::cuda {
namespace {

// Weights that are in memory turned at once.
constexpr int64_t kTransposedBytes = int64_t{64} << 20;

int64_t stored_bytes(const PackedMatrix& matrix) {
  if (matrix.dtype != DType::bf16) return matrix.bytes();
  return num_stages(matrix.k) * matrix.num_panels() * kStageBytes;
}

}  // namespace

// Columns [first_k, first_k + n) of w's inputs become the columns of transposed_.
void CudaBackend::transpose_columns(const PackedMatrix& w, int64_t first_k) {
  const auto turn = [&]<class Kernel>(Kernel, const auto& from, Grid grid) {
    const PlainPanels to = plain_panels(transposed_);
    run<Kernel>(grid, {.from = from,
                       .from_columns = w.n,
                       .first_k = static_cast<uint32_t>(first_k),
                       .to = static_cast<std::byte*>(transposed_.storage.get()),
                       .to_panel_bytes = to.panel_bytes,
                       .to_stage_bytes = to.stage_bytes});
  };
  const int64_t panels = transposed_.num_panels();
  const Grid by_stage{static_cast<uint32_t>(panels), static_cast<uint32_t>(num_stages(w.n))};
  if (w.groups) return turn(TransposeGroups(), grouped_panels(w), by_stage);
  if (w.dtype == DType::bf16) return turn(TransposeBf16Panels(), plain_panels(w), by_stage);
  const Grid by_element = element_grid(panels, w.n * kPanelWidth);
  if (w.dtype == DType::f16) {
    return turn(TransposePanels<uint16_t>(), plain_panels(w), by_element);
  }
  turn(TransposePanels<uint32_t>(), plain_panels(w), by_element);
}

void CudaBackend::multiply_transposed(const Tensor& x, const PackedMatrix& w, const Tensor& out) {
  transposed_.dtype = w.groups ? DType::bf16 : w.dtype;
  transposed_.k = w.n;
  transposed_.n = kPanelWidth;
  const int64_t at_once =
      std::max<int64_t>(1, kTransposedBytes / stored_bytes(transposed_)) * kPanelWidth;
  for (int64_t first = 0; first < w.k; first += at_once) {
    const int64_t count = std::min(at_once, w.k - first);
    transposed_.n = count;
    const auto bytes = static_cast<size_t>(stored_bytes(transposed_));
    if (transposed_.storage.size_bytes() < bytes) {
      ++scratch_memory_.num_moves;
      transposed_.storage = Buffer();
      transposed_.storage = Buffer(memory_, bytes);
    }
    transpose_columns(w, first);
    const PackedColumns columns{.matrix = &transposed_, .first = 0, .count = count};
    const Tensor part = out.slice(1, first, first + count);
    if (transposed_.dtype != DType::bf16) {
      multiply_floats(x, columns, part);
    } else {
      // Never by the kernels of few rows, which read weights before the kernel in front has ended.
      multiply_many_rows(x, columns, part);
    }
  }
}

}  // namespace paceline::cuda
