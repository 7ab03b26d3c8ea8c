// A ragged batch computes the same as a right-padded batch with an explicit mask.
#include "tests/models/masked_reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/test_model.h"

namespace paceline::testing {
namespace {

constexpr double kMaskedTolerance = 1e-4;

class MaskedBatch : public ::testing::TestWithParam<std::string> {};

TEST_P(MaskedBatch, EqualsTheRaggedBatchOnEveryRealRow) {
  const Golden golden = read_golden(GetParam());
  const MaskedReference reference(golden.directory);
  const std::vector<int64_t> lengths = {40, 17, 1};
  constexpr int64_t kPadded = 40;
  std::vector<std::vector<int32_t>> padded;
  for (size_t n = 0; n < lengths.size(); ++n) {
    std::vector<int32_t> row(kPadded, 0);  // 0 pads
    for (int64_t i = 0; i < lengths[n]; ++i) {
      row[static_cast<size_t>(i)] = golden.prompt_ids[static_cast<size_t>(i) + 5 * n];
    }
    padded.push_back(std::move(row));
  }
  const auto expected = reference.forward(padded, lengths);

  TestModel model(golden.directory, {.backend = BackendKind::reference});
  std::vector<SequenceBlocks> blocks;
  for (size_t n = 0; n < lengths.size(); ++n) blocks.emplace_back(model.cache());
  std::vector<TestModel::Slice> slices;
  for (size_t n = 0; n < lengths.size(); ++n) {
    slices.push_back({.blocks = &blocks[n],
                      .tokens = {padded[n].begin(), padded[n].begin() + lengths[n]},
                      .first_position = 0});
  }
  const auto ragged = model.forward(slices);
  size_t at = 0;
  for (size_t n = 0; n < lengths.size(); ++n) {
    const auto count = static_cast<size_t>(lengths[n] * golden.vocab_size);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_NEAR(static_cast<double>(ragged[at + i]), expected[n][i], kMaskedTolerance)
          << "sequence " << n << ", element " << i;
    }
    at += count;
  }
}

// The reference has the blocks of the first families alone.
std::vector<std::string> masked_names() {
  std::vector<std::string> names;
  for (const std::string& name : golden_names()) {
    if (name == "llama_dynamic") continue;
    for (const char* const family : {"gemma", "llama", "mistral_", "qwen", "smolvlm"}) {
      if (name.starts_with(family)) names.push_back(name);
    }
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(all, MaskedBatch, ::testing::ValuesIn(masked_names()),
                         [](const auto& golden) { return golden.param; });

}  // namespace
}  // namespace paceline::testing
