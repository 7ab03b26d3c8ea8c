// CoreMatrices say where the operands of a warpgroup's product stand in shared memory.
#pragma once

#include <cstdint>

namespace paceline::cuda {

// A matrix of bfloat16 as core matrices: 8 rows (or columns of B) of 8 elements along K, 128
// neighbouring bytes at a multiple of 16 (PTX ISA, "Shared memory matrix layout", no swizzle).
struct CoreMatrices {
  const void* first = nullptr;
  uint32_t k_bytes = 0;    // from one to the next along K
  uint32_t row_bytes = 0;  // from one to the next along the other dimension
};

// Strides are multiples of 16 below this.
constexpr uint32_t kMostCoreStride = 1u << 18;
constexpr uint32_t kGroupThreads = 128;  // of a warpgroup: four warps from a multiple of four on
constexpr uint32_t kGroupRows = 64;

}  // namespace paceline::cuda
