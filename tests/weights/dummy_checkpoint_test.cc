#include <cmath>

#include "tests/weights/written_files.h"
#include "weights/checkpoint.h"

namespace paceline {
namespace {

std::vector<float> values_of(const Tensor& tensor) {
  std::vector<float> values;
  with_float_dtype(tensor.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      values.push_back(to_float(tensor.elements<T>()[i]));
    }
  });
  return values;
}

std::vector<float> made(DType dtype, uint64_t seed, std::string_view name, const Extents& shape) {
  Memory memory;
  return values_of(make_dummy_checkpoint(dtype, seed, memory)->read(name, shape));
}

TEST(DummyCheckpoint, HasEveryNameButTheHeadAndBiases) {
  Memory memory;
  const auto checkpoint = make_dummy_checkpoint(DType::bf16, 1, memory);
  EXPECT_TRUE(checkpoint->entries().empty());
  EXPECT_EQ(checkpoint->origin(), "dummy weights");
  EXPECT_TRUE(checkpoint->contains("model.layers.7.mlp.up_proj.weight"));
  EXPECT_FALSE(checkpoint->contains("lm_head.weight"));
  EXPECT_FALSE(checkpoint->contains("model.layers.7.self_attn.q_proj.bias"));
  EXPECT_EQ(checkpoint->shape_of("model.norm.weight"), std::nullopt);
  EXPECT_EQ(checkpoint->read("lm_head.weight", {2, 3}).shape(), (Extents{2, 3}));
}

TEST(DummyCheckpoint, VectorsAreOnes) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    EXPECT_EQ(made(dtype, 1, "norm", {5}), std::vector<float>(5, 1.0f));
    EXPECT_EQ(made(dtype, 1, "scalar", {}), std::vector<float>(1, 1.0f));
    EXPECT_TRUE(made(dtype, 1, "empty", {0}).empty());
    EXPECT_TRUE(made(dtype, 1, "empty", {0, 3}).empty());
  }
}

TEST(DummyCheckpoint, MatricesAreNormal) {
  const auto values = made(DType::f32, 42, "matrix", {1000, 300});
  double sum = 0, squares = 0, fourth = 0;
  size_t within_one = 0;
  for (const float value : values) {
    const double x = value / 0.02;
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    within_one += std::abs(x) < 1 ? 1 : 0;
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.01);
  EXPECT_NEAR(fourth / count, 2.7, 0.05);  // Irwin-Hall of four: 3 - 6 / (5 * 4)
  EXPECT_NEAR(static_cast<double>(within_one) / count, 0.675, 0.01);
}

TEST(DummyCheckpoint, NeighboursAreNotCorrelated) {
  const auto values = made(DType::f32, 3, "matrix", {400, 500});
  for (const size_t distance : {1u, 2u, 64u, 500u}) {
    double sum = 0;
    for (size_t i = distance; i < values.size(); ++i) {
      sum += double{values[i]} * double{values[i - distance]} / (0.02 * 0.02);
    }
    EXPECT_NEAR(sum / static_cast<double>(values.size()), 0, 0.01) << distance;
  }
}

TEST(DummyCheckpoint, ValuesDependOnSeedNameAndIndexOnly) {
  const auto values = made(DType::f32, 7, "a.weight", {4, 8});
  EXPECT_EQ(made(DType::f32, 7, "a.weight", {4, 8}), values);
  EXPECT_EQ(made(DType::f32, 7, "a.weight", {8, 4}), values);
  const auto fewer = made(DType::f32, 7, "a.weight", {3, 5});
  EXPECT_EQ(fewer, std::vector<float>(values.begin(), values.begin() + 15));
  EXPECT_NE(made(DType::f32, 8, "a.weight", {4, 8}), values);
  EXPECT_NE(made(DType::f32, 7, "b.weight", {4, 8}), values);
  auto rounded = values;
  for (float& value : rounded) value = to_float(to_bfloat16(value));
  EXPECT_EQ(made(DType::bf16, 7, "a.weight", {4, 8}), rounded);
  for (size_t i = 0; i < values.size(); ++i) rounded[i] = to_float(to_float16(values[i]));
  EXPECT_EQ(made(DType::f16, 7, "a.weight", {4, 8}), rounded);
  // Pinned, because benchmarks and goldens of other modules may rely on these bits.
  EXPECT_EQ(made(DType::f32, 0, "w", {1, 3}),
            (std::vector<float>{0x1.cd250cp-8f, -0x1.1dff98p-6f, -0x1.41789ap-6f}));
}

TEST(DummyCheckpoint, MemoryIsHeldUntilReleased) {
  Memory memory;
  const auto checkpoint = make_dummy_checkpoint(DType::f32, 1, memory);
  const Tensor tensor = checkpoint->read("a", {64, 64});
  EXPECT_GE(memory.stats().active_bytes, 64u * 64 * 4);
  EXPECT_EQ(checkpoint->read("a", {64, 64}).raw(), tensor.raw());
  expect_error(ErrorCode::corrupt, {"tensor \"a\"", "[64, 64]", "[32, 128]"}, [&] {
    checkpoint->read("a", {32, 128});
  });
  checkpoint->release("a");
  checkpoint->release("a");
  EXPECT_EQ(memory.stats().active_bytes, 0u);
}

TEST(DummyCheckpoint, ImpossibleRequestsAreErrors) {
  Memory memory;
  expect_error(ErrorCode::unsupported, {"int32"},
               [&] { make_dummy_checkpoint(DType::i32, 1, memory); });
  const auto checkpoint = make_dummy_checkpoint(DType::f32, 1, memory);
  expect_error(ErrorCode::invalid, {"tensor \"big\"", "[4294967296, 4294967296]"}, [&] {
    checkpoint->read("big", {int64_t{1} << 32, int64_t{1} << 32});
  });
  expect_error(ErrorCode::invalid, {"tensor \"less\"", "[-1, 2]"}, [&] {
    checkpoint->read("less", {-1, 2});
  });
  memory.set_memory_limit(1 << 20);
  expect_error(ErrorCode::exhausted, {}, [&] {
    checkpoint->read("over the limit", {1 << 10, 1 << 10});
  });
}

}  // namespace
}  // namespace paceline
