// A model of each family on the emulated CUDA backend: transformers' logits and greedy tokens, and
// the same bits in any chunks.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/models/test_model.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

constexpr float kTolerance = 1e-4f;
// Of bfloat16 products, whose sums are truncated as on Hopper, and of attention with queries and
// weights rounded to bfloat16, beside the reference's: the root mean square error relative to that
// of the logits. Some rows of a mixture get other experts.
constexpr double kBf16Error = 0.02;
constexpr double kMixtureBf16Error = 0.1;

RunOptions on_cuda(DType weights, DType kv) {
  return {.backend = BackendKind::cuda, .num_threads = 2, .weight_dtype = weights, .kv_dtype = kv};
}

double relative_error(std::span<const float> logits, std::span<const float> expected) {
  double errors = 0, all = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = double{logits[i]} - double{expected[i]};
    errors += difference * difference;
    all += double{expected[i]} * double{expected[i]};
  }
  return std::sqrt(errors / all);
}

// At full scale both types, else each for about half of the models.
std::vector<DType> caches_to_run(const std::string& model) {
  if (is_full_scale()) return {DType::bf16, DType::i8};
  return {model.size() % 2 == 0 ? DType::bf16 : DType::i8};
}

class CudaModelGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(CudaModelGolden, LogitsAndGreedyTokensAreTransformers) {
  const Golden golden = read_golden(GetParam());
  TestModel model(golden.directory, on_cuda(DType::f32, DType::f32));
  const std::vector<float> logits = model.logits(golden.prompt_ids);
  EXPECT_LE(max_difference(logits, golden.logits), kTolerance);
  EXPECT_EQ(model.greedy(golden.prompt_ids, std::ssize(golden.greedy_ids)), golden.greedy_ids);
}

class CudaBfloat16Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(CudaBfloat16Golden, LogitsAreNearTheReferenceAndTheSameInChunks) {
  const Golden golden = read_golden(GetParam());
  for (const DType kv : caches_to_run(GetParam())) {
    RunOptions reference{
        .backend = BackendKind::reference, .weight_dtype = DType::bf16, .kv_dtype = kv};
    const std::vector<float> expected =
        TestModel(golden.directory, reference).logits(golden.prompt_ids);
    TestModel model(golden.directory, on_cuda(DType::bf16, kv));
    const std::vector<float> logits = model.logits(golden.prompt_ids);
    const double error = relative_error(logits, expected);
    EXPECT_LE(error, model.config().mixture ? kMixtureBf16Error : kBf16Error);
    EXPECT_TRUE(same_bits(model.logits(golden.prompt_ids, 13), logits));
  }
}

class CudaHybridGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(CudaHybridGolden, LogitsAndGreedyTokensAreTransformers) {
  const Golden golden = read_golden(GetParam(), "hybrids");
  TestModel model(golden.directory, on_cuda(DType::f32, DType::f32));
  const std::vector<float> logits = model.logits(golden.prompt_ids);
  EXPECT_LE(max_difference(logits, golden.logits), kTolerance);
  EXPECT_EQ(model.greedy(golden.prompt_ids, std::ssize(golden.greedy_ids)), golden.greedy_ids);
}

TEST_P(CudaHybridGolden, LogitsInBfloat16AreNearTheReferenceAndTheSameInChunks) {
  const Golden golden = read_golden(GetParam(), "hybrids");
  RunOptions reference{
      .backend = BackendKind::reference, .weight_dtype = DType::bf16, .kv_dtype = DType::bf16};
  const std::vector<float> expected =
      TestModel(golden.directory, reference).logits(golden.prompt_ids);
  TestModel model(golden.directory, on_cuda(DType::bf16, DType::bf16));
  const std::vector<float> logits = model.logits(golden.prompt_ids);
  EXPECT_LE(relative_error(logits, expected),
            model.config().mixture ? kMixtureBf16Error : kBf16Error);
  EXPECT_TRUE(same_bits(model.logits(golden.prompt_ids, 13), logits));
}

// One with each kind of state, but at full scale all.
std::vector<std::string> hybrids_to_run() {
  if (is_full_scale()) return simple_hybrid_names();
  return {"bamba_groups", "lfm2_bias", "olmo_hybrid_joined", "qwen3_5_text"};
}

// At full scale all, else every fourth from `first` on: kernels have tests of their own, and the
// models of a family are the CPU's goldens.
std::vector<std::string> models_to_run(size_t first) {
  const std::vector<std::string> names = golden_names();
  if (is_full_scale()) return names;
  std::vector<std::string> some;
  for (size_t i = first; i < names.size(); i += is_sanitized() ? 8 : 4) some.push_back(names[i]);
  return some;
}

INSTANTIATE_TEST_SUITE_P(all, CudaModelGolden, ::testing::ValuesIn(models_to_run(1)),
                         [](const auto& golden) { return golden.param; });
INSTANTIATE_TEST_SUITE_P(all, CudaHybridGolden, ::testing::ValuesIn(hybrids_to_run()),
                         [](const auto& golden) { return golden.param; });
INSTANTIATE_TEST_SUITE_P(all, CudaBfloat16Golden, ::testing::ValuesIn(models_to_run(0)),
                         [](const auto& golden) { return golden.param; });

}  // namespace
}  // namespace paceline::testing
