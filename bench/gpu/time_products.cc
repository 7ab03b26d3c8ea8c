#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bench/gpu/kernel_timer.h"
#include "bench/gpu/shaped_products.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

PackedMatrix pack_codes(Backend& backend, int bits, int64_t n, int64_t k) {
  const Grouping grouping{
      .bits = bits, .group_size = k % 64 == 0 ? 64 : 32, .zero_point = 1 << (bits - 1)};
  const auto rows = random_rows(grouping, n, k, 1);
  const GroupedRows* const part = rows.get();
  return backend.pack_groups(std::span(&part, 1), ActivationType::bf16);
}

constexpr int64_t kAllRows[] = {1, 8, 64, 256, 2048};

void time_product(KernelTimer& timer, const ModelShape& shape, const ShapedProduct& product,
                  PackedMatrix first, std::span<const int64_t> all_rows = kAllRows) {
  const auto weight_bytes = static_cast<double>(first.storage.size_bytes());
  std::vector<PackedMatrix> matrices;
  matrices.push_back(std::move(first));
  rotate_weights(timer, matrices);
  for (const int64_t rows : all_rows) {
    if (rows > product.most_rows || (timer.is_small() && rows > 8)) continue;
    const OwnedTensor x = quick_rows(timer.backend(), rows, product.k);
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

// A feed-forward network, whose gate and up stand in one matrix.
void time_feed_forward(KernelTimer& timer, const ModelShape& shape, int bits) {
  const auto pack = [&](int64_t n, int64_t k) {
    return bits == 16 ? pack_quick_weights(timer.backend(), n, k)
                      : pack_codes(timer.backend(), bits, n, k);
  };
  std::vector<PackedMatrix> both, down;
  both.push_back(pack(2 * shape.mlp, shape.hidden));
  down.push_back(pack(shape.hidden, shape.mlp));
  const auto weight_bytes =
      static_cast<double>(both.front().storage.size_bytes() + down.front().storage.size_bytes());
  rotate_weights(timer, both);
  rotate_weights(timer, down);  // smaller, so there are as many at least
  for (const int64_t rows : {1, 8, 64, 256, 2048}) {
    if (timer.is_small() && rows > 8) continue;
    const OwnedTensor x = quick_rows(timer.backend(), rows, shape.hidden);
    const OwnedTensor out = allocate_tensor(timer.memory(), DType::f32, {rows, shape.hidden});
    const auto inputs = static_cast<double>(rows * shape.hidden);
    const OperationCost cost{.bytes = weight_bytes + 8 * inputs,
                             .flops = 6 * inputs * static_cast<double>(shape.mlp)};
    timer.time(fmt::format("{} feed-forward {} x {}", shape.name, both.front().format_name(), rows),
               cost, [&](int64_t i) {
                 const auto turn = static_cast<size_t>(i) % both.size();
                 timer.backend().gated_mlp({.activation = Activation::silu,
                                            .gate = {&both[turn], 0, shape.mlp},
                                            .up = {&both[turn], shape.mlp, shape.mlp},
                                            .down = {&down[turn], 0, shape.hidden}},
                                           x.view, out.view);
               });
  }
}

void time_products_of(KernelTimer& timer, const ModelShape& shape) {
  for (const ShapedProduct& product : products_of(shape)) {
    if (timer.is_over()) return;
    time_product(timer, shape, product, pack_quick_weights(timer.backend(), product.n, product.k));
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
  for (const int bits : {16, 4, 8}) {
    if (timer.is_over()) return;
    time_feed_forward(timer, shape, bits);
  }
  for (const int bits : {4, 8}) {
    for (const ShapedProduct& product : products_of(shape)) {
      if (timer.is_over()) return;
      time_product(timer, shape, product, pack_codes(timer.backend(), bits, product.n, product.k));
    }
  }
}

void time_prompt_products(KernelTimer& timer) {
  const int64_t rows = timer.is_small() ? 8 : 2048;
  for (const ModelShape& shape : {timer.is_small() ? kSmallShape : kMeasuredShapes[0], kLlama8B}) {
    for (const ShapedProduct& product : products_of(shape)) {
      if (timer.is_over() || product.most_rows < rows) break;
      time_product(timer, shape, product, pack_quick_weights(timer.backend(), product.n, product.k),
                   std::span(&rows, 1));
    }
    if (timer.is_small()) return;
  }
}

}  // namespace paceline
