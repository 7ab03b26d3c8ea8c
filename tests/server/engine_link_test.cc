#include "server/engine_link.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/served_fixture.h"

namespace paceline::testing {
namespace {

struct CountingResponse final : public PendingResponse {
  const std::string& id() const override { return name; }
  int64_t first_choice(size_t /*part*/) const override { return 0; }
  void take(ResponsePart /*which*/, TokenEvent& event) override {
    if (event.token) ++num_tokens;
  }
  void flush() override { ++num_flushes; }
  void tick() override {}
  void fail(const ApiError& /*error*/) override {}

  std::string name = "response";
  int num_tokens = 0;
  int num_flushes = 0;
};

class EngineLinkTest : public EngineTest {
 protected:
  EngineLinkTest() : link_(engine(), http_) {
    EXPECT_TRUE(link_.submit(response_, {}, greedy({1}, 30)));
  }
  ~EngineLinkTest() override { engine_.reset(); }  // its last events go to the link

  PostedWork http_;
  EngineLink link_;
  std::shared_ptr<CountingResponse> response_ = std::make_shared<CountingResponse>();
};

TEST_F(EngineLinkTest, StepsBetweenTwoTurnsOfTheLoopComeInOneWakeUp) {
  for (int i = 0; i < 3; ++i) engine_->step();
  http_.run_posted();
  EXPECT_EQ(response_->num_tokens, 3);
  EXPECT_EQ(response_->num_flushes, 1);
  http_.run_posted();
  EXPECT_EQ(response_->num_flushes, 1);
  engine_->step();
  http_.run_posted();
  EXPECT_EQ(response_->num_tokens, 4);
}

TEST_F(EngineLinkTest, LagsOnlyWhileEventsWaitLong) {
  engine_->step();
  std::this_thread::sleep_for(EngineLink::kMostLag + std::chrono::milliseconds(20));
  engine_->step();  // the oldest event decides
  http_.run_posted();
  EXPECT_TRUE(link_.lags());
  for (int tries = 0; tries < 20 && link_.lags(); ++tries) {  // a busy machine may stop for long
    engine_->step();
    http_.run_posted();
  }
  EXPECT_FALSE(link_.lags());
}

}  // namespace
}  // namespace paceline::testing
