#include "engine/step_budget.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace paceline {
namespace {

TEST(StepBudget, WithoutALimitAStepTakesAllRows) {
  StepBudget budget({}, 512);
  budget.record(4, 4, 0.01);
  budget.record(512, 4, 10);
  EXPECT_EQ(budget.rows_beside(4), 512);
}

TEST(StepBudget, AStepThatOnlyDecodesIsMeasuredFirstAndAgain) {
  StepBudget budget({.slowdown = 2.5}, 512);
  EXPECT_EQ(budget.rows_beside(4), 4);
  budget.record(4, 4, 0.01);
  EXPECT_GT(budget.rows_beside(4), 4);
  for (int i = 0; i < 64; ++i) budget.record(8, 4, 0.01);
  EXPECT_EQ(budget.rows_beside(4), 4);
}

// A step that only decodes takes a second, so that one with a prefill may take two.
class MeasuredBudget : public ::testing::Test {
 protected:
  MeasuredBudget() { budget_.record(4, 4, 1.0); }

  void record_prefill(int64_t rows, double seconds) { budget_.record(4 + rows, 4, seconds); }
  int64_t prefill_rows() const { return budget_.rows_beside(4) - 4; }

  StepBudget budget_{{.slowdown = 2}, 512};
};

TEST_F(MeasuredBudget, GrowsWhileFullStepsStayWellBelowTheLimit) {
  EXPECT_EQ(prefill_rows(), 8);
  record_prefill(8, 1.69);
  EXPECT_EQ(prefill_rows(), 10);  // 10.2
  record_prefill(10, 1.0);
  EXPECT_EQ(prefill_rows(), 12);  // 12.73
  record_prefill(11, 1.0);
  EXPECT_EQ(prefill_rows(), 12) << "a step with fewer rows than it might have had proves nothing";
  record_prefill(12, 1.71);
  EXPECT_EQ(prefill_rows(), 12) << "below the limit, and not well below";
}

TEST_F(MeasuredBudget, ShrinksByAsMuchAsAStepWasTooLong) {
  record_prefill(6, 4.0);
  EXPECT_EQ(prefill_rows(), 3);
  record_prefill(6, 3.0);
  EXPECT_EQ(prefill_rows(), 2)
      << "of the fewer rows: those of the step and those it might have had";
  record_prefill(2, 100.0);
  EXPECT_EQ(prefill_rows(), 1) << "a prefill goes on at any speed";
}

TEST_F(MeasuredBudget, TheTimeOfADecodeIsARunningMean) {
  budget_.record(4, 4, 3.0);  // 1.5 now, so that the limit is 3
  record_prefill(8, 2.56);
  EXPECT_EQ(prefill_rows(), 8);
  record_prefill(8, 2.54);
  EXPECT_EQ(prefill_rows(), 10);
}

TEST_F(MeasuredBudget, StepsThatMeasureNothingChangeNothing) {
  budget_.record(100, 0, 50.0);  // nothing decoded
  budget_.record(0, 4, 50.0);    // nothing ran
  budget_.record(0, 0, 50.0);
  EXPECT_EQ(prefill_rows(), 8);
  for (int i = 0; i < 63; ++i) record_prefill(1, 1.9);
  EXPECT_EQ(prefill_rows(), 8);
  record_prefill(1, 1.9);
  EXPECT_EQ(prefill_rows(), 0) << "the 64th: time to measure a step that only decodes again";
  budget_.record(4, 4, 1.0);
  EXPECT_EQ(prefill_rows(), 8);
}

TEST_F(MeasuredBudget, DoublesWhileStepsStayFarBelowTheLimit) {
  record_prefill(8, 0.69);
  EXPECT_EQ(prefill_rows(), 17);
  record_prefill(17, 0.71);
  EXPECT_EQ(prefill_rows(), 20);  // 20.55
}

// A GPU decodes in 2 ms; steps of up to 25 ms are free.
TEST(StepBudget, AStepMayTakeTheFreeTimeWhateverADecodeTakes) {
  StepBudget budget({.slowdown = 2.5, .free_seconds = 0.025}, 8192);
  double longest = 0;
  int64_t most = 0;
  for (int i = 0; i < 60; ++i) {
    const int64_t rows = budget.rows_beside(64);
    const double seconds = 0.002 + 5e-6 * static_cast<double>(rows);
    budget.record(rows, 64, seconds);
    longest = std::max(longest, seconds);
    most = std::max(most, rows);
  }
  EXPECT_LE(longest, 0.0251);
  EXPECT_GE(most, 3500);

  StepBudget slow({.slowdown = 2.5, .free_seconds = 0.025}, 8192);
  slow.record(4, 4, 0.1);
  slow.record(12, 4, 0.2);
  EXPECT_GT(slow.rows_beside(4), 12) << "below 2.5 times 0.1 s";
}

// A machine on which a step takes `floor` seconds or, if more, `per_row` for every row.
void converge(double floor, double per_row, int64_t num_decodes, int64_t expected_rows) {
  StepBudget budget({.slowdown = 2.5}, 512);
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
  StepBudget budget({.slowdown = 2.5}, 512);
  budget.record(2, 2, 0.01);
  budget.record(10, 2, 1.0);  // the machine was suspended
  EXPECT_EQ(budget.rows_beside(2), 3);
  for (int i = 0; i < 30; ++i) budget.record(budget.rows_beside(2), 2, 0.011);
  EXPECT_GT(budget.rows_beside(2), 100);
}

}  // namespace
}  // namespace paceline
