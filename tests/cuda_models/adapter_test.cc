// Models with adapters on the emulated CUDA backend: near the CPU's reference, and each sequence of
// a mixed batch as if it were alone.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "tests/models/packed_adapters.h"
#include "tests/models/random_adapter.h"
#include "tests/models/test_model.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

constexpr float kLogitTolerance = 1e-4f;

std::vector<RandomAdapter> adapter_kinds(DType dtype) {
  return {{.seed = 1, .dtype = dtype},
          {.seed = 2, .dtype = DType::f32, .max_rank = 40, .adapts = [](std::string_view name) {
             return name.find("self_attn") != name.npos || name.find("layers.1") != name.npos ||
                    name.find("experts.1.") != name.npos;
           }}};
}

RunOptions cuda_run(DType dtype) {
  return {.backend = BackendKind::cuda, .num_threads = 2, .weight_dtype = dtype, .kv_dtype = dtype};
}

class CudaModelAdapters : public ::testing::TestWithParam<std::string> {};

TEST_P(CudaModelAdapters, AreNearTheReference) {
  const Golden golden = read_golden(GetParam());
  TestModel cuda(golden.directory, cuda_run(DType::f32));
  TestModel reference(golden.directory, {.backend = BackendKind::reference});
  const PackedAdapters there(cuda, adapter_kinds(DType::f32)),
      here(reference, adapter_kinds(DType::f32));
  const std::vector<float> base = cuda.logits(golden.prompt_ids);
  for (size_t i = 0; i < here.weights.size(); ++i) {
    const auto logits = cuda.logits(golden.prompt_ids, 1 << 20, &there.weights[i]);
    const auto expected = reference.logits(golden.prompt_ids, 1 << 20, &here.weights[i]);
    EXPECT_LE(max_difference(logits, expected), kLogitTolerance);
    EXPECT_GT(max_difference(logits, base), 100 * kLogitTolerance);
  }
}

// Adapters' matrices are the device's memory, and counted there.
TEST_P(CudaModelAdapters, AreInTheMemoryOfTheDevice) {
  const Golden golden = read_golden(GetParam());
  TestModel model(golden.directory, cuda_run(DType::bf16));
  const size_t before = model.backend().memory().stats().active_bytes;
  {
    const PackedAdapters packed(model, adapter_kinds(DType::bf16));
    size_t bytes = 0;
    for (const AdapterWeights& adapter : packed.weights) bytes += adapter.size_bytes();
    EXPECT_GE(model.backend().memory().stats().active_bytes, before + bytes);
  }
  EXPECT_EQ(model.backend().memory().stats().active_bytes, before);
}

// In turns: a row of each sequence, then more, of any adapter and none; those without have the bits
// of the base.
TEST_P(CudaModelAdapters, AMixedBatchComputesEachSequenceAsIfAlone) {
  const Golden golden = read_golden(GetParam());
  const auto vocab = static_cast<size_t>(golden.vocab_size);
  TestModel model(golden.directory, cuda_run(DType::bf16));
  const PackedAdapters packed(model, adapter_kinds(DType::bf16));
  const std::span<const int32_t> ids = std::span(golden.prompt_ids).first(24);
  const std::vector<const AdapterWeights*> adapters = {
      &packed.weights[1], nullptr, &packed.weights[0], &packed.weights[0], nullptr};
  std::vector<std::vector<float>> alone, together(adapters.size());
  std::vector<SequenceBlocks> blocks;
  for (const AdapterWeights* const adapter : adapters) {
    alone.push_back(model.logits(ids, 1 << 20, adapter));
    blocks.emplace_back(model.cache());
  }
  EXPECT_FALSE(same_bits(alone[0], alone[1]));
  for (size_t begin = 0, count = 1; begin < ids.size(); begin += count, count = 2 * count + 5) {
    const auto some = ids.subspan(begin, std::min(count, ids.size() - begin));
    std::vector<TestModel::Slice> slices;
    for (size_t i = 0; i < adapters.size(); ++i) {
      slices.push_back({.blocks = &blocks[i],
                        .tokens = {some.begin(), some.end()},
                        .first_position = static_cast<int64_t>(begin),
                        .adapter = adapters[i]});
    }
    const std::vector<float> logits = model.forward(slices);
    const size_t each = some.size() * vocab;
    for (size_t i = 0; i < adapters.size(); ++i) {
      const auto mine = std::span(logits).subspan(i * each, each);
      together[i].insert(together[i].end(), mine.begin(), mine.end());
    }
  }
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(same_bits(together[i], alone[i])) << i;
}

std::vector<std::string> models_to_run() {
  if (is_full_scale()) return golden_names();
  return {"qwen3_tied", "qwen2_moe_tied_stacked"};
}

INSTANTIATE_TEST_SUITE_P(all, CudaModelAdapters, ::testing::ValuesIn(models_to_run()),
                         [](const auto& golden) { return golden.param; });

}  // namespace
}  // namespace paceline::testing
