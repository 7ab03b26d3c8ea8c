// Matrices whose rows are packed in another order than the file's.
#include "layers/linear.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "layers/load_context.h"
#include "weights/quantizing_checkpoint.h"

namespace paceline {
namespace {

constexpr int64_t kInputs = 96, kOutputs = 75;
// Every row once, in runs that cross panels.
const std::vector<StoredRows> kOrder = {{40, 31}, {3, 2}, {0, 3}, {71, 4}, {5, 35}};

// Outputs of one row of inputs, for the matrix packed as the projections say.
std::vector<float> outputs_of(LoadQuantization quantization, std::span<const Projection> parts) {
  Memory memory;
  ThreadPool threads(1);
  const auto dummy = make_dummy_checkpoint(DType::f32, 3, memory);
  std::optional<QuantizingCheckpoint> quantized;
  if (quantization != LoadQuantization::none) {
    quantized.emplace(*dummy, quantization, memory, threads);
  }
  WeightReader weights(quantized ? static_cast<Checkpoint&>(*quantized) : *dummy);
  const auto backend = make_cpu_backend(Isa::baseline, threads, memory);
  const LoadContext context{.weights = weights,
                            .backend = *backend,
                            .weight_dtype = DType::f32,
                            .activations = ActivationType::bf16};
  const Linear linear(context, parts, kInputs, Linear::Bias::none);
  EXPECT_EQ(linear.weights().size(), 1u);
  EXPECT_EQ(linear.weights()[0].groups.has_value(), quantized.has_value());
  std::vector<float> x, y(static_cast<size_t>(linear.out_features()));
  for (int64_t i = 0; i < kInputs; ++i) x.push_back(static_cast<float>(i % 7) - 2.5f);
  linear.forward(*backend, Tensor(x.data(), DType::f32, {1, kInputs}),
                 Tensor(y.data(), DType::f32, {1, linear.out_features()}));
  return y;
}

TEST(Linear, AnOrderOfRowsMovesOutputsBitForBit) {
  for (const LoadQuantization quantization :
       {LoadQuantization::none, LoadQuantization::q4, LoadQuantization::q8}) {
    SCOPED_TRACE(static_cast<int>(quantization));
    const std::array<Projection, 2> plain = {{{"first", 5}, {"second", kOutputs}}};
    const std::array<Projection, 2> ordered = {{{"first", 5}, {"second", kOutputs, kOrder}}};
    const std::vector<float> expected = outputs_of(quantization, plain);
    const std::vector<float> found = outputs_of(quantization, ordered);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_TRUE(std::equal(found.begin(), found.begin() + 5, expected.begin()));
    size_t column = 5;
    for (const auto& [first, count] : kOrder) {
      for (int64_t row = first; row < first + count; ++row, ++column) {
        EXPECT_EQ(found[column], expected[static_cast<size_t>(5 + row)]) << row;
      }
    }
    EXPECT_EQ(column, found.size());
  }
}

}  // namespace
}  // namespace paceline
