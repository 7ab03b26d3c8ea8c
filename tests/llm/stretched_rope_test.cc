// Ropes whose frequencies depend on the length that a request may come to.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "paceline/llm.h"
#include "tests/source_path.h"

namespace paceline {
namespace {

// Tokens within the original context of 32 (phi3_longrope_long) and 24 (llama_dynamic).
const std::vector<int32_t> kBeginning = {57, 75, 187, 186, 44, 182, 183, 254, 16, 122, 73, 82};

class StretchedRope : public ::testing::TestWithParam<const char*> {
 protected:
  LoadOptions options() const {
    return {.model = source_path(std::string("tests/goldens/models/") + GetParam()),
            .max_model_len = 96,
            .block_size = 4,
            .num_threads = 1};
  }
  static Completion generate(LLM& llm, int32_t max_tokens) {
    return llm.generate(kBeginning, {.max_tokens = max_tokens, .temperature = 0, .logprobs = 3})
        .completion();
  }
};

TEST_P(StretchedRope, ItsLengthIsThatOfPromptAndMaxTokensForTheWholeRequest) {
  LLM llm = LLM::load(options());
  const Completion within = generate(llm, 8), beyond = generate(llm, 50);
  ASSERT_EQ(within.token_ids.size(), 8u);
  EXPECT_NE(within.logprobs[0].top[0].logprob, beyond.logprobs[0].top[0].logprob);
  // Neither has used the other's keys, but each its own.
  EXPECT_EQ(beyond.usage.cached_tokens, 0);
  for (const auto& [max_tokens, before] : {std::pair{8, &within}, {50, &beyond}}) {
    const Completion again = generate(llm, max_tokens);
    EXPECT_GT(again.usage.cached_tokens, 0);
    EXPECT_EQ(again.token_ids, before->token_ids);
    for (size_t i = 0; i < again.logprobs.size(); ++i) {
      EXPECT_EQ(again.logprobs[i].top[0].logprob, before->logprobs[i].top[0].logprob);
    }
  }
}

TEST_P(StretchedRope, ADraftersCopyHasTheSameFrequencies) {
  LoadOptions drafting = options();
  drafting.speculative_model = drafting.model;
  drafting.num_speculative_tokens = 4;
  drafting.adaptive_drafts = false;
  LLM plain = LLM::load(options()), drafted = LLM::load(drafting);
  for (const int32_t max_tokens : {8, 50}) {
    const Completion expected = generate(plain, max_tokens), found = generate(drafted, max_tokens);
    EXPECT_EQ(found.token_ids, expected.token_ids);
    EXPECT_GT(found.usage.drafted_tokens, 0);
    EXPECT_EQ(found.usage.accepted_tokens, found.usage.drafted_tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(all, StretchedRope,
                         ::testing::Values("phi3_longrope_long", "llama_dynamic"),
                         [](const auto& golden) { return std::string(golden.param); });

}  // namespace
}  // namespace paceline
