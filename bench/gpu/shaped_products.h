// The products of a model's shape, with weights and inputs that are made quickly. They are not
// zero: a GPU multiplies zeros faster, as that takes less power.
#pragma once

#include <string_view>
#include <vector>

#include "bench/gpu/kernel_timer.h"
#include "bench/gpu/model_shapes.h"

namespace paceline {

struct ShapedProduct {
  std::string_view name;
  int64_t n = 0;
  int64_t k = 0;
  int64_t most_rows = 2048;
};
std::vector<ShapedProduct> products_of(const ModelShape& shape);

// bfloat16 weights [n, k], packed.
PackedMatrix pack_quick_weights(Backend& backend, int64_t n, int64_t k);
// float32 inputs [rows, k] in the backend's memory.
OwnedTensor quick_rows(Backend& backend, int64_t rows, int64_t k);
// Copies the first matrix until all together exceed the caches.
void rotate_weights(KernelTimer& timer, std::vector<PackedMatrix>& matrices);

}  // namespace paceline
