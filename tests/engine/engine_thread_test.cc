#include "engine/engine_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "base/device_lost.h"
#include "engine/step_record.h"
#include "tests/engine/engine_fixture.h"

namespace paceline::testing {
namespace {

using std::chrono::milliseconds;

// Blocks the script's rows while it is closed.
class Barrier {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    reached_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void wait_until_reached() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return reached_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool reached_ = false;
};

class Thrower : public StepObserver {
 public:
  void on_submitted(const Sequence&, int64_t) override {}
  void on_cancelled(RequestId, int64_t) override {}
  void on_step(const StepRecord&) override { throw std::runtime_error("no more"); }
};

class EngineThreadTest : public EngineTest {
 protected:
  EngineThreadTest()
      : EngineTest([this](int32_t token, int32_t position, std::span<float> logits) {
          if (position == 3) barrier_.pass();
          if (position > 3) std::this_thread::sleep_for(pause_);
          count_up(token, position, logits);
        }) {}

  // Waits for the end of `count` requests.
  void collect(size_t count) {
    std::vector<TokenEvent> events;
    while (count > 0) {
      channel_->wait(events);
      for (TokenEvent& event : events) {
        Answer& answer = answers_[{event.request, event.choice}];
        if (event.token) answer.tokens.push_back(event.token->id);
        if (!event.ending) continue;
        answer.ending = std::move(event.ending);
        --count;
      }
    }
  }

  Barrier barrier_;
  milliseconds pause_{0};  // of each row behind the barrier
};

// The device is lost in the row of position 3.
class LostDeviceTest : public EngineTest {
 protected:
  LostDeviceTest()
      : EngineTest([](int32_t token, int32_t position, std::span<float> logits) {
          if (position == 3) throw DeviceLost("the GPU is gone");
          count_up(token, position, logits);
        }) {}
};

TEST_F(LostDeviceTest, TheStepsSequencesFailAndTheEngineSaysIt) {
  engine();
  EXPECT_EQ(engine_->lost_device(), "");
  const RequestId early = submit(greedy({1}, 2)), failed = submit(greedy({5}, 9));
  run_all();
  EXPECT_EQ(answer(early).tokens, (std::vector<TokenId>{2, 3}));
  EXPECT_EQ(answer(failed).ending->error->code, ErrorCode::internal);
  EXPECT_EQ(answer(failed).ending->error->message, "the GPU is gone");
  EXPECT_EQ(engine_->lost_device(), "the GPU is gone");
}

TEST_F(LostDeviceTest, ItStopsTheEnginesThread) {
  engine();
  std::promise<std::string> told;
  const EngineThread thread(*engine_, {},
                            [&](const std::string& message) { told.set_value(message); });
  submit(greedy({1}, 9));
  auto message = told.get_future();
  ASSERT_EQ(message.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(message.get(), "the GPU is gone");
}

TEST_F(EngineThreadTest, AStepThatHangsGrowsOldAndAnIdleEngineHasNoAge) {
  engine();
  EngineThread thread(*engine_, {});
  EXPECT_EQ(thread.age_of_last_step().count(), 0);
  const RequestId id = submit(greedy({1, 2, 3, 4}, 3));
  barrier_.wait_until_reached();
  const auto age = thread.age_of_last_step();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_GE(thread.age_of_last_step(), age + milliseconds(19));
  barrier_.open();
  collect(1);
  EXPECT_EQ(answer(id).tokens, (std::vector<TokenId>{5, 6, 7}));
  while (thread.age_of_last_step().count() > 0) std::this_thread::yield();
}

TEST_F(EngineThreadTest, ItsEndCancelsWhatStillRuns) {
  engine();
  pause_ = milliseconds(20);  // so that a busy machine, too, stops the thread before the last token
  auto thread = std::make_unique<EngineThread>(*engine_, AdmissionWindow{});
  const RequestId running = submit(greedy({1, 2, 3, 4}, 50));
  barrier_.wait_until_reached();
  const RequestId waiting = submit(greedy({5}, 20));
  std::jthread opener([this] {
    std::this_thread::sleep_for(milliseconds(5));  // meanwhile the thread is told to stop
    barrier_.open();
  });
  thread.reset();
  collect(2);
  EXPECT_EQ(answer(running).ending->finish.reason, FinishReason::cancelled);
  EXPECT_EQ(answer(waiting).ending->finish.reason, FinishReason::cancelled);
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(EngineThreadTest, AnIdleEngineWaitsForABatchOrAMoment) {
  engine();
  barrier_.open();
  auto thread = std::make_unique<EngineThread>(
      *engine_, AdmissionWindow{.timeout = std::chrono::hours(1), .num_requests = 2});
  const RequestId first = submit(greedy({1}, 1));
  std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(engine_->num_running() + engine_->num_waiting(), 0) << "one request is no batch";
  const RequestId second = submit(greedy({2}, 1));
  collect(2);
  thread.reset();
  EXPECT_EQ(answer(first).tokens, (std::vector<TokenId>{2}));
  EXPECT_EQ(answer(second).tokens, (std::vector<TokenId>{3}));
  EXPECT_EQ(runner_.num_runs, 1);
}

TEST_F(EngineThreadTest, AFailureOutsideAnyRequestIsToldOnce) {
  Thrower observer;
  engine().set_observer(&observer);
  std::promise<std::string> told;
  const EngineThread thread(*engine_, {},
                            [&](const std::string& message) { told.set_value(message); });
  submit(greedy({1}, 4));
  auto message = told.get_future();
  ASSERT_EQ(message.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(message.get(), "no more");
  engine_->set_observer(nullptr);
}

TEST_F(EngineThreadTest, AnIdleEngineIsInspected) {
  engine();
  std::promise<int64_t> steps;
  const EngineThread thread(*engine_, {});
  engine_->inspect([&](const Engine& seen) { steps.set_value(seen.counters().steps); });
  auto seen = steps.get_future();
  ASSERT_EQ(seen.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(seen.get(), 0);
}

TEST(StepTurns, AreTakenInTheOrderInWhichTheyAreAskedFor) {
  constexpr int kNumThreads = 3, kNumTurns = 50;
  StepTurns turns;
  std::atomic<int> num_inside = 0, num_ready = 0;
  std::array<int, kNumThreads> taken{};
  size_t last = kNumThreads;
  int num_repeats = 0;  // a thread has two turns in a row though others want one
  const auto step = [&](size_t own) {
    ++num_ready;
    while (num_ready < kNumThreads) std::this_thread::yield();
    for (int i = 0; i < kNumTurns; ++i) {
      turns.take([&] {
        EXPECT_EQ(++num_inside, 1);
        ++taken[own];
        // Long enough that the others ask meanwhile.
        std::this_thread::sleep_for(milliseconds(1));
        const int least = *std::min_element(taken.begin(), taken.end());
        num_repeats += last == own && least < kNumTurns ? 1 : 0;
        last = own;
        --num_inside;
        return true;
      });
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kNumThreads; ++i) threads.emplace_back(step, i);
  for (std::thread& thread : threads) thread.join();
  // On a busy machine one may not have asked yet.
  EXPECT_LE(num_repeats, kNumThreads * kNumTurns / 3) << "one takes turns that others wait for";
}

}  // namespace
}  // namespace paceline::testing
