#include "bench/gpu/shaped_products.h"

#include <cstdint>
#include <span>

#include "kernels/operands.h"

namespace paceline {
namespace {

// Numerical Recipes' generator, which is faster than Philox.
class QuickBits {
 public:
  // A bfloat16 below one in magnitude.
  uint16_t next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<uint16_t>(((state_ >> 16) & 0x807F) | 0x3D00);
  }

 private:
  uint32_t state_ = 12345;
};

}  // namespace

std::vector<ShapedProduct> products_of(const ModelShape& shape) {
  const int64_t queries = shape.heads * shape.head_dim;
  return {{"qkv", queries + 2 * shape.kv_heads * shape.head_dim, shape.hidden},
          {"o", shape.hidden, queries},
          {"gate and up", 2 * shape.mlp, shape.hidden},
          {"down", shape.hidden, shape.mlp},
          {"head", shape.vocab, shape.hidden, 256}};
}

PackedMatrix pack_quick_weights(Backend& backend, int64_t n, int64_t k) {
  Memory memory;
  const OwnedTensor weights = allocate_tensor(memory, DType::bf16, {n, k});
  auto* const elements = static_cast<uint16_t*>(weights.view.raw());
  QuickBits bits;
  for (int64_t i = 0; i < n * k; ++i) elements[i] = bits.next();
  return backend.pack_matrix(std::span(&weights.view, 1), DType::bf16);
}

OwnedTensor quick_rows(Backend& backend, int64_t rows, int64_t k) {
  std::vector<float> values(static_cast<size_t>(rows * k));
  QuickBits bits;
  for (float& value : values) value = std::bit_cast<float>(uint32_t{bits.next()} << 16);
  OwnedTensor x = allocate_tensor(backend.memory(), DType::f32, {rows, k});
  backend.write(values, x.view);
  return x;
}

void rotate_weights(KernelTimer& timer, std::vector<PackedMatrix>& matrices) {
  const PackedMatrix& first = matrices.front();
  const size_t bytes = first.storage.size_bytes();
  const int64_t count = timer.num_rotated(static_cast<double>(first.bytes()));
  while (std::ssize(matrices) < count) {
    const PackedMatrix& from = matrices.front();
    PackedMatrix copy{from.dtype, from.groups, from.n, from.k, Buffer(timer.memory(), bytes)};
    timer.device().copy_within_device(copy.storage.get(), from.storage.get(), bytes);
    matrices.push_back(std::move(copy));
  }
}

}  // namespace paceline
