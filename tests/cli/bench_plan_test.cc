#include "cli/bench_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> names(const BenchChoice& choice, int64_t longest = 100000) {
  std::vector<std::string> names;
  for (const BenchRun& run : plan_runs(choice, longest).runs) names.push_back(bench_run_name(run));
  return names;
}

TEST(PlanRuns, CrossesTestsWithTheirSizes) {
  const BenchChoice choice{.tests = {"prefill", "decode", "batch", "mixed", "classify"},
                           .prompt_tokens = {128, 2048},
                           .contexts = {1, 1024},
                           .sequences = {4},
                           .output_tokens = 32};
  EXPECT_THAT(
      names(choice),
      ElementsAre("prefill 128", "prefill 2,048", "decode 32 behind 1", "decode 32 behind 1,024",
                  "batch 4 x 128 + 32", "batch 4 x 2,048 + 32", "mixed 128 beside 4",
                  "mixed 2,048 beside 4", "classify 4 x 128", "classify 4 x 2,048"));
}

TEST(PlanRuns, TestsHaveSizesOfTheirOwn) {
  EXPECT_THAT(names({.tests = {"prefill", "decode", "mixed", "cached", "memory"}}),
              ElementsAre("prefill 512", "decode 64 behind 1", "mixed 1,000 beside 1",
                          "cached 1,000", "memory of 128"));
  EXPECT_THAT(names({.tests = {"batch"}}),
              ElementsAre("batch 1 x 128 + 64", "batch 8 x 128 + 64", "batch 32 x 128 + 64"));
  EXPECT_THAT(names({.tests = {"classify"}}), ElementsAre("classify 1 x 20", "classify 4 x 20",
                                                          "classify 8 x 20", "classify 32 x 20"));
}

TEST(PlanRuns, SpeculateReplaysAnswersOrUsesTheDrafter) {
  const BenchChoice replayed{.tests = {"speculate"},
                             .sequences = {1, 4},
                             .acceptance = {0.5, 1},
                             .draft_lengths = {2, 4},
                             .temperatures = {0.7}};
  EXPECT_THAT(names(replayed),
              ElementsAre("speculate 1 x 128 + 128 at 0.5", "speculate 1 x 128 + 128 at 1",
                          "speculate 4 x 128 + 128 at 0.5", "speculate 4 x 128 + 128 at 1"));
  EXPECT_THAT(plan_runs(replayed, 1000).runs[0].drafts.lengths, ElementsAre(2, 4));
  EXPECT_THAT(names({.tests = {"speculate"}}), SizeIs(3 * 6));
  const BenchDrafting ngram{.drafter = BenchDrafter::ngram, .has_tokenizer = true};
  const BenchRuns drafted = plan_runs(
      {.tests = {"speculate"}, .sequences = {1}, .acceptance = {0.5}, .temperatures = {0, 0.7}},
      1000, ngram);
  ASSERT_THAT(drafted.runs, SizeIs(2));
  EXPECT_EQ(bench_run_name(drafted.runs[1]), "speculate 1 x 128 + 128 ngram repeating at T 0.7");
  EXPECT_THAT(drafted.runs[1].drafts.lengths, IsEmpty());
}

TEST(PlanRuns, TextPromptsNeedATokenizer) {
  const auto prompts = [](const BenchDrafting& drafting, const std::string& kind) {
    const BenchRuns planned =
        plan_runs({.tests = {"speculate"}, .prompt_texts = kind}, 1000, drafting);
    return prompts_name(planned.runs.at(0).drafts);
  };
  EXPECT_EQ(prompts({.drafter = BenchDrafter::model, .has_tokenizer = true}, ""), "stories");
  EXPECT_EQ(prompts({.drafter = BenchDrafter::model, .has_tokenizer = true}, "repeating"),
            "repeating");
  EXPECT_EQ(prompts({.drafter = BenchDrafter::ngram}, "stories"), "random");
  EXPECT_EQ(prompts({.has_tokenizer = true}, "stories"), "random");
}

TEST(PlanRuns, ShortensWhatDoesNotFitAndSaysSo) {
  const BenchRuns planned = plan_runs(
      {.tests = {"prefill", "decode"}, .prompt_tokens = {64, 127, 500, 600}, .contexts = {900}},
      128);
  EXPECT_THAT(planned.runs, SizeIs(3));  // 127 once
  for (const BenchRun& run : planned.runs) EXPECT_LE(context_of(run), 128);
  EXPECT_THAT(
      planned.notes,
      ElementsAre("prefill 500 is measured as prefill 127: the context holds 128 tokens",
                  "prefill 600 is measured as prefill 127: the context holds 128 tokens",
                  "decode 64 behind 900 is measured as decode 64 behind 63: the context holds "
                  "128 tokens"));
  EXPECT_THAT(plan_runs({.tests = {"prefill"}}, 513).notes, IsEmpty());
}

TEST(PlanRuns, AnyContextWillDo) {
  const BenchChoice choice{.tests = {"prefill", "decode", "batch", "mixed", "classify", "cached",
                                     "memory", "speculate"}};
  for (int64_t longest = 20; longest < 200; ++longest) {
    for (const BenchRun& run : plan_runs(choice, longest).runs) {
      EXPECT_LE(context_of(run), longest) << bench_run_name(run);
      EXPECT_GE(run.prompt_tokens, 1) << bench_run_name(run);
    }
  }
}

TEST(PlanVariants, CrossFormatsAndThreads) {
  const auto variants =
      plan_variants({.shape = "gemma-3-1b", .formats = {"bf16", "q4"}, .threads = {1, 2}}, false);
  ASSERT_THAT(variants, SizeIs(4));
  EXPECT_EQ(variants[1].format, "bf16");
  EXPECT_EQ(variants[1].threads, 2);
  EXPECT_EQ(variants[2].format, "q4");
  for (const BenchVariant& variant : variants) {
    EXPECT_EQ(variant.shape, "gemma-3-1b");
    EXPECT_THAT(variant.choice.tests, ElementsAre("prefill", "decode"));
  }
}

TEST(PlanVariants, TheTourIsForThoseWhoNameNothing) {
  EXPECT_THAT(plan_variants({}, true), SizeIs(1));
  EXPECT_THAT(plan_variants({.tests = {"batch"}}, false), SizeIs(1));
  const auto tour = plan_variants({.prompt_tokens = {64}, .threads = {1}}, false);
  ASSERT_THAT(tour, SizeIs(4));
  EXPECT_EQ(tour[0].shape, "");
  EXPECT_THAT(tour[0].choice.prompt_tokens, ElementsAre(64));
  EXPECT_EQ(tour[3].shape, "small");
  EXPECT_EQ(tour[3].format, "q4");
  EXPECT_EQ(tour[3].threads, 1);
}

TEST(IdleOptions, AreThoseThatNoTestUses) {
  const auto idle = [](const BenchChoice& asked, bool has_drafter = false) {
    return idle_options(asked, plan_variants(asked, true), has_drafter);
  };
  EXPECT_THAT(idle({.contexts = {9}}), testing::IsEmpty());  // prefill and decode
  EXPECT_THAT(idle({.sequences = {3}}), testing::ElementsAre("--sequences"));
  EXPECT_THAT(idle({.tests = {"batch"}, .contexts = {9}, .sequences = {3}}),
              testing::ElementsAre("--contexts"));
  const BenchChoice speculate{.tests = {"speculate"}, .acceptance = {0.5}, .temperatures = {1}};
  EXPECT_THAT(idle(speculate), testing::ElementsAre("--temperatures"));
  EXPECT_THAT(idle(speculate, true), testing::ElementsAre("--acceptance"));
}

}  // namespace
}  // namespace paceline
