// With every format of stored weights and every type of activations, each request gets the same
// bits as alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/option_names.h"
#include "paceline/llm.h"
#include "tests/kernels/chosen_isa.h"
#include "tests/llm/equalities.h"
#include "tests/llm/random_blocks.h"
#include "tests/llm/stored_formats.h"
#include "tests/test_scale.h"
#include "weights/gguf_blocks.h"
#include "weights/mlx_quantization.h"

namespace paceline::testing {
namespace {

constexpr int32_t kVocab = 256;
const Prompt kPrompt = std::vector<int32_t>{5, 77, 130};

std::vector<Activations> activations_of(const StoredFormat& format) {
  if (!format.has_codes()) return {Activations::automatic};
  return {Activations::int8, Activations::bfloat16, Activations::plain};
}

class FormatEqualities : public ::testing::TestWithParam<StoredFormat> {
 protected:
  static LoadOptions model(Activations activations) {
    return {.model = stored_model(GetParam()),
            .activations = activations,
            .max_model_len = 160,
            .num_threads = 1};
  }
};

TEST_P(FormatEqualities, BatchedOrAlone) {
  const std::set<std::string> ways = {"two_threads", "chunks_of_7", "a_tight_cache"};
  const bool all_ways = is_full_scale();
  const auto requests = mixed_requests(kVocab, 20);
  for (const Activations activations : activations_of(GetParam())) {
    SCOPED_TRACE(option_name(activations));
    const auto expected = alone(model(activations), requests);
    for (const auto& [name, change] : executions()) {
      if (!all_ways && !ways.contains(name)) continue;
      SCOPED_TRACE(name);
      LoadOptions options = model(activations);
      change(options);
      const int64_t preemptions = expect_same_together(options, requests, expected);
      if (name == "a_tight_cache") {
        EXPECT_GT(preemptions, 0);
      }
    }
  }
}

// Four short requests, two with a common prefix.
TEST_P(FormatEqualities, OnEveryInstructionSet) {
  auto requests = mixed_requests(kVocab, 3);
  requests.resize(4);
  for (const Isa isa : isas_to_run()) {
    const ChosenIsa chosen(isa);
    for (const Activations activations : activations_of(GetParam())) {
      if (activations == Activations::plain)
        continue;  // products of plain numbers: the other tests'
      SCOPED_TRACE(std::string(isa_name(isa)) + " " + std::string(option_name(activations)));
      LoadOptions options = model(activations);
      const auto expected = alone(options, requests);
      options.max_chunk = 5;
      options.num_threads = 2;
      expect_same_together(options, requests, expected);
    }
  }
}

// Else one of them would be tested twice.
TEST_P(FormatEqualities, ActivationsShow) {
  std::set<float> logprobs;
  const std::vector<Activations> all = activations_of(GetParam());
  for (const Activations activations : all) {
    LLM llm = LLM::load(model(activations));
    const Completion first =
        llm.generate(kPrompt, {.max_tokens = 1, .seed = 1, .logprobs = 1}).completion();
    logprobs.insert(first.logprobs[0].top[0].logprob);
  }
  EXPECT_EQ(logprobs.size(), all.size());
}

INSTANTIATE_TEST_SUITE_P(all, FormatEqualities, ::testing::ValuesIn(formats_to_run()),
                         [](const auto& format) { return format.param.name; });

// A readable format missing from the list would not be tested.
TEST(StoredFormats, AreAllThatCanBeRead) {
  std::set<GgufType> types;
  std::set<std::pair<int64_t, int64_t>> groupings;
  for (const StoredFormat& format : stored_formats()) {
    types.insert(format.types.begin(), format.types.end());
    for (const AffineFormat& grouping : format.groupings) {
      groupings.emplace(grouping.bits, grouping.group_size);
    }
  }
  for (const GgufTypeLayout& layout : kGgufTypes) {
    EXPECT_TRUE(types.contains(layout.type)) << layout.name << " is in no stored format";
  }
  for (const GgufBlockFormat& blocks : gguf_block_formats()) {
    EXPECT_TRUE(types.contains(blocks.type)) << gguf_type_name(blocks.type);
  }
  constexpr int64_t kMostBits = 64, kLargestGroup = 4096;
  for (int64_t bits = 0; bits <= kMostBits; ++bits) {
    for (int64_t size = 0; size <= kLargestGroup && is_affine_bits(bits); ++size) {
      if (!is_affine_group_size(size)) continue;
      EXPECT_TRUE(groupings.contains({bits, size})) << bits << " bits in groups of " << size;
    }
  }
}

}  // namespace
}  // namespace paceline::testing
