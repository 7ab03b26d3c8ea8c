// Fused models against PEFT's merge_and_unload() (tools/goldens/make_fuse_goldens.py), and against
// the base with the adapter beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "adapters/adapter_files.h"
#include "load/fuse_model.h"
#include "load/model_adapter_base.h"
#include "models/pack_adapter.h"
#include "tests/kernels/chosen_isa.h"
#include "tests/models/random_adapter.h"
#include "tests/models/test_model.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"
#include "weights/checkpoint.h"

namespace paceline::testing {
namespace {

namespace fs = std::filesystem;

class FuseGolden : public ::testing::Test {
 protected:
  void fuse(const fs::path& base, const Adapter& adapter) {
    fuse_model(ModelSource(base), adapter, {.to = out_, .dtype = DType::f32, .format = {}},
               threads_);
  }
  std::vector<float> fused_logits(std::span<const int32_t> ids) {
    TestModel model(out_, {.isa = isas_to_run().back()});
    return model.logits(ids);
  }

  TestDirectory temporary_;
  fs::path out_ = temporary_.path() / "fused";
  Memory memory_;
  ThreadPool threads_{2};
};

// Rows of stored matrices that are packed in another order, and other names of modules.
TEST_F(FuseGolden, OfLayersWithStatesAndTheirGatesHasTheLogitsOfPeft) {
  const fs::path adapters = source_path("tests/goldens/family_adapters");
  const auto logits = open_checkpoint(adapters / "logits");
  for (const char* const name : {"qwen3_next_sparse_step", "olmo_hybrid_no_rope", "lfm3_tied"}) {
    SCOPED_TRACE(name);
    const Golden golden = read_golden(name, "hybrids");
    out_ = temporary_.path() / name;
    fuse(golden.directory,
         read_adapter(adapters / name, read_adapter_base(ModelSource(golden.directory)), memory_));
    const Tensor stored = logits->read(name, *logits->shape_of(name));
    const std::span<const float> expected(stored.elements<float>(),
                                          static_cast<size_t>(stored.num_elements()));
    const std::vector<float> fused = fused_logits(golden.prompt_ids);
    EXPECT_LE(max_difference(std::span(fused).last(expected.size()), expected), 1e-4f);
  }
}

class FuseGoldenOfPeft : public FuseGolden,
                         public ::testing::WithParamInterface<std::pair<const char*, const char*>> {
};

TEST_P(FuseGoldenOfPeft, HasTheSameMatricesAndLogits) {
  const auto& [name, base_name] = GetParam();
  const Golden golden = read_golden(base_name);
  const ModelSource source(golden.directory);
  const Adapter adapter = read_adapter(source_path(std::string("tests/goldens/adapters/") + name),
                                       read_adapter_base(source), memory_);
  fuse(golden.directory, adapter);
  const auto expected = open_checkpoint(source_path(std::string("tests/goldens/fused/") + name));
  const auto base = open_checkpoint(golden.directory), fused = open_checkpoint(out_);
  ASSERT_EQ(fused->entries().size(), base->entries().size());
  size_t num_fused = 0;
  for (const CheckpointEntry& entry : base->entries()) {
    SCOPED_TRACE(entry.name);
    const Tensor found = fused->read(entry.name, entry.shape);
    const Tensor plain = base->read(entry.name, entry.shape);
    ASSERT_EQ(found.dtype(), DType::f32);
    if (!expected->contains(entry.name)) {
      EXPECT_TRUE(std::ranges::equal(found.bytes(), plain.bytes()));
      continue;
    }
    ++num_fused;
    const auto* const numbers = expected->read(entry.name, entry.shape).elements<float>();
    float largest_change = 0;
    for (int64_t i = 0; i < found.num_elements(); ++i) {
      ASSERT_NEAR(found.elements<float>()[i], numbers[i], 1e-6) << i;
      largest_change = std::max(largest_change, std::abs(numbers[i] - plain.elements<float>()[i]));
    }
    EXPECT_GT(largest_change, 0.01f);
  }
  EXPECT_EQ(num_fused, adapter.pairs().size());
  const Tensor logits = expected->read("logits", *expected->shape_of("logits"));
  const std::span<const float> of_peft(logits.elements<float>(), golden.logits.size());
  EXPECT_LT(max_difference(fused_logits(golden.prompt_ids), of_peft), 1e-4f);
  EXPECT_GT(max_difference(golden.logits, of_peft), 0.1f);
}

INSTANTIATE_TEST_SUITE_P(all, FuseGoldenOfPeft,
                         ::testing::Values(std::pair("peft_llama", "llama_plain"),
                                           std::pair("peft_llama_head", "llama_plain"),
                                           std::pair("peft_gemma3",
                                                     "gemma3_language_model_prefix")),
                         [](const auto& golden) { return std::string(golden.param.first); });

// Adapters on every projection; the engine computes them beside the base's products.
TEST_F(FuseGolden, LogitsAreThoseOfBaseAndAdapter) {
  for (const std::string name : {"llama_scaled_tied", "qwen2_tied", "qwen3_untied_linear_sharded",
                                 "gemma2_odd", "gemma3_text_pattern2", "mistral_window",
                                 "qwen2_moe_sparse_step", "mixtral_window_stacked"}) {
    SCOPED_TRACE(name);
    const Golden golden = read_golden(name);
    TestModel base(golden.directory, {.isa = isas_to_run().back()});
    const Adapter adapter =
        random_adapter(base.config(), {.dtype = DType::f32, .size = 0.1f, .b_size = 0.1f}, memory_);
    const AdapterWeights packed = pack_adapter(adapter, base.config(), base.backend());
    fuse(golden.directory, adapter);
    const std::vector<float> expected = base.logits(golden.prompt_ids, 1 << 20, &packed);
    EXPECT_LT(max_difference(fused_logits(golden.prompt_ids), expected), 1e-4f);
    EXPECT_GT(max_difference(golden.logits, expected), 0.05f);
    fs::remove_all(out_);
  }
}

}  // namespace
}  // namespace paceline::testing
