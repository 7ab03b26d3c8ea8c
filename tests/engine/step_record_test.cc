#include "engine/step_record.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/engine/engine_fixture.h"
#include "tests/engine/script_drafter.h"

namespace paceline::testing {
namespace {

constexpr std::chrono::milliseconds kPause(3);

struct Times {
  int64_t plan = 0, forward = 0, total = 0;  // microseconds
};

class TimesOfSteps : public StepObserver {
 public:
  void on_submitted(const Sequence&, int64_t) override {}
  void on_cancelled(RequestId, int64_t) override {}
  void on_step(const StepRecord& record) override {
    times.push_back({record.plan_us, record.forward_us, record.total_us});
  }

  std::vector<Times> times;
};

// Its runner pauses for every row, and again for every row of logits.
class SlowRunnerTest : public EngineTest {
 protected:
  SlowRunnerTest()
      : EngineTest([](int32_t token, int32_t position, std::span<float> logits) {
          std::this_thread::sleep_for(kPause);
          count_up(token, position, logits);
        }) {
    runner_.is_bad = [](int32_t, int32_t) {
      std::this_thread::sleep_for(kPause);
      return false;
    };
  }
};

TEST_F(SlowRunnerTest, TheRunnersTimeIsThatOfItsRowsAndOfTheirLogits) {
  TimesOfSteps observer;
  engine().set_observer(&observer);
  submit(greedy({1}, 3));
  run_all();
  engine_->set_observer(nullptr);
  ASSERT_EQ(observer.times.size(), 3u);
  for (const Times& step : observer.times) {
    EXPECT_GE(step.forward, std::chrono::microseconds(2 * kPause).count());
    EXPECT_GE(step.plan, 0);
    EXPECT_LE(step.plan + step.forward, step.total) << "of this step alone";
  }
}

class RowsOfSteps : public StepObserver {
 public:
  void on_submitted(const Sequence&, int64_t) override {}
  void on_cancelled(RequestId, int64_t) override {}
  void on_step(const StepRecord& record) override {
    EXPECT_EQ(record.step, static_cast<int64_t>(rows.size()));
    rows.push_back(record.num_rows);
    drafted.push_back(record.drafts.empty() ? 0 : record.drafts[0].drafted);
  }

  std::vector<int64_t> rows;
  std::vector<int64_t> drafted;  // for the first sequence
};

class StepChoiceTest : public EngineTest {
 protected:
  RowsOfSteps observer_;
};

// A step that only decodes is measured first; the first prefill beside it has few rows.
TEST_F(StepChoiceTest, ALimitOfSlowdownBoundsThePrefillBesideADecode) {
  EngineLimits limits{.max_model_len = 64, .max_batched_tokens = 64};
  for (const bool is_limited : {false, true}) {
    SCOPED_TRACE(is_limited);
    limits.max_step_slowdown = is_limited ? 100 : 0;
    engine({.limits = limits}).set_observer(&observer_);
    observer_.rows.clear();
    submit(greedy({1, 2}, 20));
    step();
    submit(greedy(std::vector<TokenId>(30, 9), 1));
    step();
    step();
    EXPECT_EQ(observer_.rows, (is_limited ? std::vector<int64_t>{2, 1, 1 + 8}
                                          : std::vector<int64_t>{2, 1 + 30, 1}));
    engine_->set_observer(nullptr);
    run_all();
  }
}

// Drafts that adapt begin when two steps without one were measured, with one token.
TEST_F(StepChoiceTest, AdaptiveDraftsBeginAfterMeasuredSteps) {
  ScriptDrafter drafter(kVocab, count_up, [](int64_t) { return false; });
  EngineLimits limits{.max_model_len = 64, .max_batched_tokens = 16};
  limits.speculation = {.num_tokens = 4, .adapts = true};
  engine({.limits = limits, .drafter = &drafter}).set_observer(&observer_);
  submit(greedy({1, 2}, 20));
  for (int i = 0; i < 4; ++i) step();
  EXPECT_EQ(observer_.rows, (std::vector<int64_t>{2, 1, 1, 2}));
  EXPECT_EQ(observer_.drafted, (std::vector<int64_t>{0, 0, 0, 1}));
  engine_->set_observer(nullptr);
}

}  // namespace
}  // namespace paceline::testing
