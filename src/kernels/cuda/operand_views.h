// Tensors, packed matrices and stored keys and values as kernels' parameters.
#pragma once

#include "base/divide_up.h"
#include "kernels/cuda/code/code_panels.h"
#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/kv_blocks.h"
#include "kernels/cuda/code/packed_panels.h"
#include "kernels/cuda/code/rows.h"
#include "kernels/cuda/device.h"
#include "kernels/operands.h"

namespace paceline::cuda {

inline Rows rows_of(const Tensor& x) { return {x.elements<float>(), x.stride(0)}; }
inline ConstRows const_rows_of(const Tensor& x) { return {x.elements<float>(), x.stride(0)}; }

// A tensor of rank 2 has one head a row.
inline Heads heads_of(const Tensor& x) {
  if (x.rank() == 2) return {x.elements<float>(), 1, x.stride(0), 0};
  return {x.elements<float>(), x.size(1), x.stride(0), x.stride(1)};
}

// Blocks for `rows` rows along x, and along y for their elements.
inline Grid element_grid(int64_t rows, int64_t width) {
  constexpr int64_t kMostBlocks = 65535;
  const int64_t blocks = divide_up(width, int64_t{kElementThreads});
  return {static_cast<uint32_t>(rows), static_cast<uint32_t>(std::min(blocks, kMostBlocks))};
}

inline Grid grid_of(const Tensor& out) { return element_grid(out.size(0), out.size(1)); }

PlainPanels plain_panels(const PackedMatrix& matrix);
GroupedPanels grouped_panels(const PackedMatrix& matrix);
KvBlocks kv_blocks(const KvStore& store);

// Calls body with the StoredX of a dtype: with_stored(d, [&]<class Stored>() { ... }).
template <class Body>
void with_stored(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f16:
      return body.template operator()<F16>();
    case DType::bf16:
      return body.template operator()<Bf16>();
    case DType::i8:
      return body.template operator()<int8_t>();
    default:
      return body.template operator()<float>();
  }
}

}  // namespace paceline::cuda
