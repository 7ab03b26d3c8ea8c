// Same request, same bits: a sequence's logits don't depend on chunks or on other sequences.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "tests/kernels/chosen_isa.h"
#include "tests/models/test_model.h"

namespace paceline::testing {
namespace {

class ModelEquality : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<RunOptions> runs() const {
    std::vector<RunOptions> all;
    for (const Isa isa : isas_to_run()) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        all.push_back({.isa = isa, .weight_dtype = dtype, .kv_dtype = dtype});
      }
      all.push_back({.isa = isa, .weight_dtype = DType::bf16, .kv_dtype = DType::i8});
    }
    return all;
  }
};

TEST_P(ModelEquality, ChunksThreadsAndBlockSizesChangeNoBit) {
  const Golden golden = find_golden(GetParam());
  for (const RunOptions& run : runs()) {
    TestModel whole(golden.directory, run);
    SCOPED_TRACE(std::string(whole.backend().name()));
    const auto expected = whole.logits(golden.prompt_ids);
    for (const int64_t chunk : {1, 7, 33}) {
      EXPECT_TRUE(same_bits(whole.logits(golden.prompt_ids, chunk), expected)) << chunk;
    }
    RunOptions other = run;
    other.num_threads = 3;
    other.block_size = 5;
    TestModel split(golden.directory, other);
    EXPECT_TRUE(same_bits(split.logits(golden.prompt_ids, 13), expected));
  }
}

TEST_P(ModelEquality, ARaggedBatchComputesEachSequenceAsIfAlone) {
  const Golden golden = find_golden(GetParam());
  const auto vocab = static_cast<size_t>(golden.vocab_size);
  for (const RunOptions& run : runs()) {
    TestModel model(golden.directory, run);
    SCOPED_TRACE(std::string(model.backend().name()));
    // Three sequences of different lengths advance by random amounts in shared batches.
    std::vector<std::vector<int32_t>> prompts;
    for (const std::ptrdiff_t length : {64, 41, 7}) {
      std::vector<int32_t> prompt(golden.prompt_ids.begin(), golden.prompt_ids.begin() + length);
      if (length < 64) std::ranges::reverse(prompt);
      prompts.push_back(std::move(prompt));
    }
    std::vector<std::vector<float>> alone, together(prompts.size());
    for (const auto& prompt : prompts) alone.push_back(model.logits(prompt));

    std::vector<SequenceBlocks> blocks;
    for (size_t i = 0; i < prompts.size(); ++i) blocks.emplace_back(model.cache());
    uint64_t draw = 0;
    while (true) {
      std::vector<TestModel::Slice> slices;
      std::vector<size_t> owners;
      for (size_t i = 0; i < prompts.size(); ++i) {
        const size_t done = together[i].size() / vocab;
        const size_t rest = prompts[i].size() - done;
        const size_t count = std::min(rest, static_cast<size_t>(uniform_draw(11, draw++) * 12));
        if (count == 0) continue;
        const auto first = prompts[i].begin() + static_cast<std::ptrdiff_t>(done);
        slices.push_back({.blocks = &blocks[i],
                          .tokens = {first, first + static_cast<std::ptrdiff_t>(count)},
                          .first_position = static_cast<int64_t>(done)});
        owners.push_back(i);
      }
      if (slices.empty()) {
        const bool all_done = std::ranges::all_of(prompts, [&](const auto& prompt) {
          return together[static_cast<size_t>(&prompt - prompts.data())].size() ==
                 prompt.size() * vocab;
        });
        if (all_done) break;
        continue;
      }
      const auto logits = model.forward(slices);
      size_t offset = 0;
      for (size_t s = 0; s < slices.size(); ++s) {
        const size_t size = slices[s].tokens.size() * vocab;
        auto& out = together[owners[s]];
        out.insert(out.end(), logits.begin() + static_cast<std::ptrdiff_t>(offset),
                   logits.begin() + static_cast<std::ptrdiff_t>(offset + size));
        offset += size;
      }
    }
    for (size_t i = 0; i < prompts.size(); ++i) EXPECT_TRUE(same_bits(together[i], alone[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(all, ModelEquality,
                         ::testing::Values("llama_scaled_tied", "qwen2_tied",
                                           "qwen3_untied_linear_sharded", "gemma2_odd",
                                           "gemma3_text_pattern2", "mistral_window",
                                           "gemma3n_streams", "gemma4_experts",
                                           "gemma4_layer_inputs", "gemma4_values_are_keys"),
                         [](const auto& golden) { return golden.param; });

}  // namespace
}  // namespace paceline::testing
