#include "tests/kernels/mixture_inputs.h"

#include <algorithm>
#include <numeric>

namespace paceline {
namespace {

constexpr uint64_t kMixtureSeed = 20251125;

// `slots` of the experts in ascending order.
std::vector<int32_t> draw_experts(Draws& draws, const MixtureShape& shape) {
  std::vector<int32_t> all(static_cast<size_t>(shape.experts));
  std::iota(all.begin(), all.end(), 0);
  for (int64_t i = 0; i < shape.slots; ++i) {
    std::swap(all[static_cast<size_t>(i)],
              all[static_cast<size_t>(i + draws.below(shape.experts - i))]);
  }
  all.resize(static_cast<size_t>(shape.slots));
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

MixtureInputs::MixtureInputs(const WeightType& type, const MixtureShape& shape, ThreadPool& threads,
                             Memory& memory)
    : x(random_tensor(memory, DType::f32, {shape.rows, type.row_length(shape.inputs)}, kMixtureSeed,
                      0.1f)),
      out(allocate_tensor(memory, DType::f32, {shape.rows, shape.outputs})),
      chosen(allocate_tensor(memory, DType::i32, {shape.rows, shape.slots})),
      weights(random_tensor(memory, DType::f32, {shape.rows, shape.slots}, kMixtureSeed + 1)) {
  Draws draws(kMixtureSeed);
  for (int64_t row = 0; row < shape.rows; ++row) {
    std::ranges::copy(draw_experts(draws, shape), chosen.view.row<int32_t>(row));
  }
  matrices.reserve(static_cast<size_t>(2 * shape.experts));
  const auto add_bias = [&](int64_t size, uint64_t seed) {
    return biases.emplace_back(random_tensor(memory, DType::f32, {size}, seed)).view;
  };
  for (int64_t i = 0; i < shape.experts; ++i) {
    const uint64_t seed = kMixtureSeed + 10 + 4 * static_cast<uint64_t>(i);
    const int64_t width = type.row_length(i + 1 == shape.experts ? shape.last_width : shape.width);
    const PackedMatrix* const gate_up = &matrices.emplace_back(
        random_matrix(memory, threads, type, 2 * width, x.view.size(1), seed));
    const PackedMatrix* const down = &matrices.emplace_back(
        random_matrix(memory, threads, type, shape.outputs, width, seed + 1));
    GatedMlpWeights expert = {.gate = {gate_up, 0, width},
                              .up = {gate_up, width, width},
                              .down = {down, 0, shape.outputs}};
    if (shape.has_bias) {
      expert.gate.bias = expert.up.bias = add_bias(2 * width, seed + 2);
      expert.down.bias = add_bias(shape.outputs, seed + 3);
    }
    experts.push_back(expert);
  }
}

}  // namespace paceline
