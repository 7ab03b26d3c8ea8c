#include "spec/draft_length.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace paceline::testing {
namespace {

static_assert(std::is_trivially_copyable_v<RowCost> &&
              std::is_trivially_copyable_v<AcceptanceRate>);

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double knee_at_8(int64_t rows) { return 0.01 * std::max(1.0, static_cast<double>(rows) / 8); }
double linear(int64_t rows) { return 0.01 * static_cast<double>(rows); }

RowCost measured(double (*seconds)(int64_t rows), std::initializer_list<int64_t> row_counts) {
  RowCost cost;
  for (int i = 0; i < 4; ++i) {
    for (const int64_t rows : row_counts) cost.record(rows, seconds(rows));
  }
  return cost;
}

// Of the first of `num_decodes` sequences that are all alike.
int64_t draft_length(const AcceptanceRate& acceptance, const RowCost& cost, int64_t num_decodes,
                     int64_t most) {
  const std::vector<DraftCandidate> candidates(static_cast<size_t>(num_decodes),
                                               {&acceptance, most});
  return DraftLengths().choose(candidates, cost, num_decodes)[0];
}

AcceptanceRate after(int64_t num_drafts, int64_t drafted, int64_t accepted) {
  AcceptanceRate rate;
  for (int64_t i = 0; i < num_drafts; ++i) rate.record(drafted, accepted);
  return rate;
}

TEST(AcceptanceRate, BeginsAtThePriorAndFollowsTheOutcomes) {
  EXPECT_DOUBLE_EQ(AcceptanceRate().value(), 0.7);
  EXPECT_GT(after(50, 4, 4).value(), 0.99);
  EXPECT_LT(after(100, 4, 0).value(), 0.05);
  // Of 4 drafted tokens 3 were accepted and one rejected: 3 of 4 trials.
  EXPECT_NEAR(after(100, 4, 3).value(), 0.75, 0.05);
  // Those after a rejected token say nothing.
  EXPECT_NEAR(after(100, 8, 1).value(), 0.5, 0.05);
}

TEST(AcceptanceRate, CountsStepsSinceARejection) {
  constexpr int64_t kInterval = AcceptanceRate::kProbeInterval;
  AcceptanceRate rate;
  EXPECT_EQ(rate.steps_since_rejection(), kInterval);
  rate.record(3, 2);
  EXPECT_EQ(rate.steps_since_rejection(), 0);
  rate.record(0, 0);
  EXPECT_EQ(rate.steps_since_rejection(), 1);
  EXPECT_LT(rate.value(), 0.7 + 0.1);
  rate.record(2, 2);
  EXPECT_EQ(rate.steps_since_rejection(), kInterval);
}

TEST(RowCost, AnswersWhatItMeasured) {
  const RowCost cost = measured(knee_at_8, {1, 4, 8, 16, 32});
  for (const int64_t rows : {1, 4, 6, 8, 12, 16, 24, 32, 48})
    EXPECT_NEAR(cost.seconds(rows), knee_at_8(rows), 1e-5) << rows;
  EXPECT_EQ(cost.max_measured(), 32);
  EXPECT_TRUE(cost.is_fresh(16));
  EXPECT_TRUE(cost.is_fresh(17));
  EXPECT_FALSE(cost.is_fresh(20));
  EXPECT_EQ(RowCost().seconds(5), 0.0);
}

TEST(RowCost, NeverFallsWithTheRows) {
  const RowCost cost = measured([](int64_t rows) { return 0.01 + 0.001 * (rows % 3); },
                                {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 40});
  for (int64_t rows = 1; rows < 60; ++rows)
    EXPECT_LE(cost.seconds(rows), cost.seconds(rows + 1)) << rows;
}

TEST(RowCost, OutliersHardlyCount) {
  RowCost cost = measured(linear, {4, 8, 16});
  for (int i = 0; i < 10; ++i) {
    cost.record(8, 5 * linear(8));
    for (int j = 0; j < 20; ++j) cost.record(8, linear(8));
  }
  EXPECT_NEAR(cost.seconds(8), linear(8), 0.02 * linear(8));
  EXPECT_NEAR(cost.seconds(16), linear(16), 0.05 * linear(16));
  // Nor do two that come first.
  RowCost slow_start;
  slow_start.record(4, 5 * linear(4));
  for (int i = 0; i < 40; ++i) slow_start.record(4, linear(4));
  EXPECT_NEAR(slow_start.seconds(4), linear(4), 0.1 * linear(4));
}

TEST(RowCost, FollowsAMachineThatBecomesSlower) {
  RowCost cost = measured(linear, {4, 8, 16});
  for (int i = 0; i < 60; ++i) cost.record(8, 3 * linear(8));
  EXPECT_NEAR(cost.seconds(8), 3 * linear(8), 0.1 * linear(8));
}

// As when contexts grow: counts that are not measured anew follow those that are.
TEST(RowCost, EveryStepMovesTheOtherCounts) {
  RowCost cost = measured(linear, {4, 8, 16});
  for (int i = 0; i < 20; ++i) cost.record(8, 1.05 * linear(8));
  for (const int64_t rows : {4, 8, 16}) {
    EXPECT_GT(cost.seconds(rows), 1.015 * linear(rows)) << rows;
    EXPECT_LT(cost.seconds(rows), 1.06 * linear(rows)) << rows;
  }
}

TEST(RowCost, ForgetsWhatIsNotMeasuredAgain) {
  RowCost cost = measured(linear, {4, 32});
  for (int i = 0; i < 300; ++i) cost.record(4, linear(4));
  EXPECT_TRUE(cost.is_fresh(4));
  EXPECT_FALSE(cost.is_fresh(32));
  EXPECT_EQ(cost.max_measured(), 32);
  for (int i = 0; i < 1'000; ++i) cost.record(4, linear(4));
  EXPECT_EQ(cost.max_measured(), 4);
}

TEST(RowCost, IgnoresWhatCannotBeAMeasurement) {
  RowCost cost = measured(linear, {4});
  cost.record(0, 1.0);
  cost.record(4, 0.0);
  cost.record(4, -1.0);
  cost.record(int64_t{1} << 40, 1.0);
  cost.record_draft(0, 1.0);
  cost.record_draft(1, -1.0);
  for (const double no_time : {kInfinity, -kInfinity, std::nan("")}) {
    cost.record(4, no_time);
    cost.record_draft(1, no_time);
  }
  EXPECT_DOUBLE_EQ(cost.seconds(4), linear(4));
  EXPECT_EQ(cost.draft_seconds(), 0.0);
  RowCost first;
  for (int i = 0; i < 4; ++i) first.record(4, kInfinity);
  EXPECT_EQ(first.max_measured(), 0);
}

TEST(RowCost, ADraftersTimeIsAMeanInWhichOneOutlierHardlyCounts) {
  RowCost cost;
  cost.record_draft(4, 0.04);
  EXPECT_DOUBLE_EQ(cost.draft_seconds(), 0.01);
  cost.record_draft(1, 0.016);
  EXPECT_DOUBLE_EQ(cost.draft_seconds(), 0.013);
  cost.record_draft(1, 100.0);  // at most twice the mean
  EXPECT_DOUBLE_EQ(cost.draft_seconds(), (0.013 + 0.013 + 0.026) / 3);
  RowCost instant;
  instant.record_draft(1, 0.0);
  instant.record_draft(1, 0.02);
  EXPECT_DOUBLE_EQ(instant.draft_seconds(), 0.01) << "twice no time would be no limit";
}

TEST(DraftLength, MeasuresStepsWithoutDraftsFirst) {
  const AcceptanceRate rate;
  EXPECT_EQ(draft_length(rate, RowCost(), 4, 8), 0);
  EXPECT_EQ(draft_length(rate, measured(knee_at_8, {64}), 4, 8), 0);
  // Then it tries up to twice the rows.
  EXPECT_EQ(draft_length(rate, measured(knee_at_8, {1}), 1, 8), 1);
  EXPECT_EQ(draft_length(rate, measured(knee_at_8, {1, 2}), 1, 8), 3);
}

TEST(DraftLength, EndsWhereRowsBeginToCost) {
  const RowCost cost = measured(knee_at_8, {1, 2, 4, 8, 16, 32});
  EXPECT_EQ(draft_length(after(50, 8, 8), cost, 1, 16), 7);
  EXPECT_EQ(draft_length(after(50, 8, 8), cost, 2, 16), 3);
  EXPECT_EQ(draft_length(after(50, 8, 8), cost, 4, 16), 1);
  EXPECT_EQ(draft_length(after(50, 8, 8), cost, 1, 5), 5);
  EXPECT_EQ(draft_length(after(50, 8, 8), cost, 1, 0), 0);
}

TEST(DraftLength, TheDraftersTimeCounts) {
  RowCost cost = measured(knee_at_8, {1, 2, 4, 8, 16});
  const AcceptanceRate rate = after(100, 4, 3);
  EXPECT_EQ(draft_length(rate, cost, 1, 8), 7);
  cost.record_draft(4, 4 * 0.002);
  EXPECT_LT(draft_length(rate, cost, 1, 8), 7);
  EXPECT_GT(draft_length(rate, cost, 1, 8), 0);
  for (int i = 0; i < 100; ++i) cost.record_draft(1, 0.02);
  EXPECT_EQ(draft_length(rate, cost, 1, 8), 0);
}

// A sequence whose text becomes predictable is noticed.
TEST(DraftLength, ProbesNowAndThenAndReturns) {
  const RowCost cost = measured([](int64_t rows) { return 0.01 + 0.004 * rows; }, {4, 8, 16});
  AcceptanceRate rate = after(20, 2, 0);
  int64_t num_drafted = 0;
  for (int i = 0; i < 10 * (AcceptanceRate::kProbeInterval + 1); ++i) {
    const int64_t length = draft_length(rate, cost, 4, 8);
    EXPECT_LE(length, 1);
    num_drafted += length;
    rate.record(length, 0);
  }
  EXPECT_EQ(num_drafted, 10);
  int64_t num_steps = 0;
  while (draft_length(rate, cost, 4, 8) < 2 && num_steps < 1'000) {
    const int64_t length = draft_length(rate, cost, 4, 8);
    rate.record(length, length);
    ++num_steps;
  }
  EXPECT_LT(num_steps, 130);
}

TEST(DraftLength, HardlyEverProbesWhereNoDraftCouldPay) {
  const RowCost cost = measured(linear, {16, 32, 64});
  AcceptanceRate rate;
  int64_t num_drafted = 0;
  for (int i = 0; i < 10'240; ++i) {
    const int64_t length = draft_length(rate, cost, 16, 8);
    num_drafted += length;
    rate.record(length, 0);
  }
  EXPECT_GE(num_drafted, 9);
  EXPECT_LE(num_drafted, 10);
}

}  // namespace
}  // namespace paceline::testing
