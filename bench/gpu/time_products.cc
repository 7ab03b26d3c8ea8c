#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bench/gpu/kernel_timer.h"
#include "bench/gpu/model_shapes.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

struct ShapedProduct {
  std::string_view name;
  int64_t n = 0;
  int64_t k = 0;
  int64_t most_rows = 2048;
};

std::vector<ShapedProduct> products_of(const ModelShape& shape) {
  const int64_t queries = shape.heads * shape.head_dim;
  return {{"qkv", queries + 2 * shape.kv_heads * shape.head_dim, shape.hidden},
          {"o", shape.hidden, queries},
          {"gate and up", 2 * shape.mlp, shape.hidden},
          {"down", shape.hidden, shape.mlp},
          {"head", shape.vocab, shape.hidden, 256}};
}

// Numbers below one, made faster than by Philox.
OwnedTensor quick_weights(Memory& memory, int64_t n, int64_t k) {
  OwnedTensor weights = allocate_tensor(memory, DType::bf16, {n, k});
  auto* const bits = static_cast<uint16_t*>(weights.view.raw());
  uint32_t state = 12345;
  for (int64_t i = 0; i < n * k; ++i) {
    state = state * 1664525u + 1013904223u;  // Numerical Recipes' generator
    bits[i] = static_cast<uint16_t>(((state >> 16) & 0x807F) | 0x3D00);
  }
  return weights;
}

PackedMatrix pack_plain(Backend& backend, int64_t n, int64_t k) {
  Memory memory;
  const OwnedTensor weights = quick_weights(memory, n, k);
  return backend.pack_matrix(std::span(&weights.view, 1), DType::bf16);
}

PackedMatrix pack_4_bits(Backend& backend, int64_t n, int64_t k) {
  const Grouping grouping{.bits = 4, .group_size = k % 64 == 0 ? 64 : 32, .zero_point = 8};
  const auto rows = random_rows(grouping, n, k, 1);
  const GroupedRows* const part = rows.get();
  return backend.pack_groups(std::span(&part, 1), ActivationType::bf16);
}

// The same weights in other memory.
PackedMatrix copy_of(const PackedMatrix& matrix, KernelTimer& timer) {
  const size_t bytes = matrix.storage.size_bytes();
  PackedMatrix copy{matrix.dtype, matrix.groups, matrix.n, matrix.k, Buffer(timer.memory(), bytes)};
  timer.device().copy_within_device(copy.storage.get(), matrix.storage.get(), bytes);
  return copy;
}

void time_product(KernelTimer& timer, const ModelShape& shape, const ShapedProduct& product,
                  PackedMatrix first) {
  const auto weight_bytes = static_cast<double>(first.bytes());
  std::vector<PackedMatrix> matrices;
  matrices.push_back(std::move(first));
  while (std::ssize(matrices) < timer.num_rotated(weight_bytes)) {
    matrices.push_back(copy_of(matrices.front(), timer));
  }
  for (const int64_t rows : {1, 8, 64, 256, 2048}) {
    if (rows > product.most_rows || (timer.is_small() && rows > 8)) continue;
    const OwnedTensor x = allocate_tensor(timer.memory(), DType::f32, {rows, product.k});
    const OwnedTensor out = allocate_tensor(timer.memory(), DType::f32, {rows, product.n});
    const auto count = [](int64_t a, int64_t b) { return static_cast<double>(a * b); };
    const OperationCost cost{
        .bytes = weight_bytes + 4 * (count(rows, product.k) + count(rows, product.n)),
        .flops = 2 * count(rows, product.k) * static_cast<double>(product.n)};
    timer.time(fmt::format("{} {} {} x {}", shape.name, product.name,
                           matrices.front().format_name(), rows),
               cost, [&](int64_t i) {
                 const auto turn = static_cast<size_t>(i) % matrices.size();
                 timer.backend().matmul(x.view, matrices[turn], nullptr, out.view);
               });
  }
}

void time_products_of(KernelTimer& timer, const ModelShape& shape) {
  for (const ShapedProduct& product : products_of(shape)) {
    if (timer.is_over()) return;
    time_product(timer, shape, product, pack_plain(timer.backend(), product.n, product.k));
  }
}

}  // namespace

void time_products(KernelTimer& timer) {
  if (timer.is_small()) {
    time_products_of(timer, kSmallShape);
  } else {
    for (const ModelShape& shape : kMeasuredShapes) time_products_of(timer, shape);
  }
  const ModelShape& shape = timer.is_small() ? kSmallShape : kMeasuredShapes[0];
  for (const ShapedProduct& product : products_of(shape)) {
    if (timer.is_over() || product.name == "head") return;
    time_product(timer, shape, product, pack_4_bits(timer.backend(), product.n, product.k));
  }
}

}  // namespace paceline
