#include "engine/step_budget.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace paceline {
namespace {

TEST(StepBudget, WithoutALimitAStepTakesAllRows) {
  StepBudget budget(0, 512);
  budget.record(4, 4, 0.01);
  budget.record(512, 4, 10);
  EXPECT_EQ(budget.rows_beside(4), 512);
}

TEST(StepBudget, AStepThatOnlyDecodesIsMeasuredFirstAndAgain) {
  StepBudget budget(2.5, 512);
  EXPECT_EQ(budget.rows_beside(4), 4);
  budget.record(4, 4, 0.01);
  EXPECT_GT(budget.rows_beside(4), 4);
  for (int i = 0; i < 64; ++i) budget.record(8, 4, 0.01);
  EXPECT_EQ(budget.rows_beside(4), 4);
}

// A machine on which a step takes at least `floor` and `per_row` for every row.
void converge(double floor, double per_row, int64_t num_decodes, int64_t expected_rows) {
  StepBudget budget(2.5, 512);
  const double unloaded = std::max(floor, per_row * static_cast<double>(num_decodes));
  double longest = 0;
  int64_t beside = 0;  // of the last step with a prefill
  for (int i = 0; i < 200; ++i) {
    const int64_t rows = budget.rows_beside(num_decodes);
    if (rows > num_decodes) beside = rows;
    const double seconds = std::max(floor, per_row * static_cast<double>(rows));
    budget.record(rows, num_decodes, seconds);
    if (i > 0) longest = std::max(longest, seconds);
  }
  EXPECT_LE(longest, 3 * unloaded);
  EXPECT_NEAR(static_cast<double>(beside), static_cast<double>(expected_rows),
              0.2 * static_cast<double>(expected_rows));
}

TEST(StepBudget, ConvergesBelowTheLimitOnFastAndSlowMachines) {
  converge(0.060, 0.009, 1, 16);  // two cores and a model of a billion weights
  converge(0.060, 0.009, 8, 20);
  converge(0.002, 0.0001, 4, 50);
  converge(0.010, 0.00001, 4, 512);  // a prefill that costs nothing takes all rows
}

TEST(StepBudget, RecoversFromOneSlowStep) {
  StepBudget budget(2.5, 512);
  budget.record(2, 2, 0.01);
  budget.record(10, 2, 1.0);  // the machine was away
  EXPECT_EQ(budget.rows_beside(2), 3);
  for (int i = 0; i < 30; ++i) budget.record(budget.rows_beside(2), 2, 0.011);
  EXPECT_GT(budget.rows_beside(2), 100);
}

}  // namespace
}  // namespace paceline
