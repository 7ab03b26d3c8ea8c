#include "engine/step_record.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/engine/engine_fixture.h"

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

}  // namespace
}  // namespace paceline::testing
