#include "server/model_host.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "base/error.h"
#include "server/server_context.h"
#include "state/state_cache.h"
#include "tests/engine/scripted_runner.h"

namespace paceline::testing {
namespace {

using std::chrono::milliseconds;

// Nothing that is posted runs.
class NoLoop final : public HttpServer {
 public:
  void post(std::function<void()> /*work*/) override {}
  void after(milliseconds /*delay*/, std::function<void()> /*work*/) override {}
  uint16_t port() const override { return 0; }
  void run() override {}
  void close_listeners() override {}
  void stop() override {}
  HttpCounters counters() const override { return {}; }
};

// An engine on a script. Counts those that are alive by model.
class ScriptedModel {
 public:
  explicit ScriptedModel(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~ScriptedModel() { --alive_; }
  ScriptedModel(const ScriptedModel&) = delete;
  ScriptedModel& operator=(const ScriptedModel&) = delete;

  TextModel text() { return {.name = "scripted", .engine = engine_}; }

 private:
  static void count_up(int32_t token, int32_t /*position*/, std::span<float> logits) {
    logits[static_cast<size_t>((token + 1) % 32)] = 20.0f;
  }

  std::atomic<int>& alive_;
  Memory memory_;
  ScriptedRunner runner_{32, count_up};
  StateCache cache_{2, std::array{CacheGroup{.window = 0, .num_blocks = 8}}};
  StepEngine engine_{runner_, memory_, cache_, {.max_model_len = 8, .max_batched_tokens = 4}, {}};
};

// Models a, b, c ... of which `room` fit at once.
class ModelHostTest : public ::testing::Test {
 protected:
  static constexpr size_t kNumModels = 4;

  ~ModelHostTest() override {
    host_.reset();
    for (const std::atomic<int>& alive : alive_) EXPECT_EQ(alive, 0);
  }

  ModelHost& host(ModelHost::Options options = {}) {
    std::vector<ModelEntry> entries;
    for (size_t i = 0; i < kNumModels; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      entries.push_back({.names = {name, "alias-" + name},
                         .adapters = {"adapter-" + name},
                         .load = [this, i, name](const std::atomic<bool>& cancelled) {
                           return load(i, name, cancelled);
                         }});
    }
    host_ = std::make_unique<ModelHost>(
        std::move(entries), options, [this](size_t index, ServedModel model) {
          auto hosted = std::make_shared<HostedModel>(std::move(model), RequestRules{}, context_,
                                                      metrics_[index]);
          hosted->start(nullptr);
          return hosted;
        });
    host_->start();
    return *host_;
  }

  ServedModel load(size_t index, const std::string& name, const std::atomic<bool>& cancelled) {
    {
      std::unique_lock lock(mutex_);
      ++num_loads_[index];
      changed_.notify_all();
      changed_.wait(lock, [&] { return is_open_ || cancelled; });
    }
    if (fails_ > 0) {
      --fails_;
      throw Error(ErrorCode::corrupt, "a broken file");
    }
    int num_alive = 0;
    for (const std::atomic<int>& alive : alive_) num_alive += alive;
    if (num_alive >= room_) throw Error(ErrorCode::exhausted, "no memory");
    auto model = std::make_shared<ScriptedModel>(alive_[index]);
    ServedModel served{.names = {name}, .text = model->text()};
    served.owner = std::move(model);
    return served;
  }

  // Waits until it is loaded, or isn't.
  ModelLease use(size_t index, std::string* problem = nullptr) {
    std::promise<ModelLease> promise;
    host_->use(index, [&](ModelLease model, const std::string& why) {
      if (problem != nullptr) *problem = why;
      promise.set_value(std::move(model));
    });
    return promise.get_future().get();
  }

  void wait_for_state(size_t index, ModelState state) {
    while (host_->status(index).state != state) std::this_thread::sleep_for(milliseconds(1));
  }
  void set_open(bool is_open) {
    const std::lock_guard lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }
  void wait_for_load_of(size_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_loads_[index] > 0; });
  }
  int num_loads(size_t index) {
    const std::lock_guard lock(mutex_);
    return num_loads_[index];
  }

  NoLoop http_;
  ServerOptions options_;
  ServerContext context_{.options = options_,
                         .http = http_,
                         .keys = ApiKeys({}),
                         .in_flight = InFlightLimit(1),
                         .terms = {},
                         .responses = ResponseStore({}),
                         .body_bytes = BytesLimit(1),
                         .response_bytes = BytesLimit(1),
                         .memory = MemoryWatch(1),
                         .metrics = {},
                         .host = ModelHost({}, {}, nullptr),
                         .workers = WorkerPool(1, 1)};
  std::array<ServerMetrics, kNumModels> metrics_;
  std::array<std::atomic<int>, kNumModels> alive_{};
  std::atomic<int> room_ = static_cast<int>(kNumModels);
  std::atomic<int> fails_ = 0;  // loads
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;  // loads go on
  std::map<size_t, int> num_loads_;
  std::unique_ptr<ModelHost> host_;
};

TEST_F(ModelHostTest, FindsModelsByNamesAliasesAndAdapters) {
  const ModelHost& models = host();
  EXPECT_EQ(models.find(std::nullopt), 0);
  EXPECT_EQ(models.find("b"), 1);
  EXPECT_EQ(models.find("alias-c"), 2);
  EXPECT_EQ(models.find("adapter-d"), 3);
  EXPECT_EQ(models.find("e"), std::nullopt);
  EXPECT_THROW(models.choose("e"), RequestError);
}

TEST_F(ModelHostTest, GivesUnknownNamesTheFirstModelWhereItMay) {
  EXPECT_EQ(host({.accepts_any_name = true}).choose("e"), 0);
}

TEST_F(ModelHostTest, LoadsOnceForAllThatWait) {
  ModelHost& models = host();
  EXPECT_EQ(models.try_use(1), nullptr);
  set_open(false);
  std::vector<std::promise<ModelLease>> ready(5);
  for (auto& one : ready) {
    models.use(1,
               [&one](ModelLease model, const std::string&) { one.set_value(std::move(model)); });
  }
  wait_for_load_of(1);
  EXPECT_EQ(models.status(1).state, ModelState::loading);
  EXPECT_FALSE(models.load(1));
  set_open(true);
  for (auto& one : ready) EXPECT_NE(one.get_future().get(), nullptr);
  EXPECT_EQ(models.status(1).state, ModelState::loaded);
  EXPECT_EQ(num_loads(1), 1);
  EXPECT_NE(models.try_use(1), nullptr);
}

TEST_F(ModelHostTest, SaysWhyALoadFailedAndTriesAgain) {
  ModelHost& models = host();
  fails_ = 1;
  std::string problem;
  EXPECT_EQ(use(2, &problem), nullptr);
  EXPECT_EQ(problem, "a broken file");
  EXPECT_EQ(models.status(2).state, ModelState::unloaded);
  EXPECT_EQ(models.status(2).failure, "a broken file");
  EXPECT_NE(use(2), nullptr);
  EXPECT_EQ(models.status(2).failure, "");
}

TEST_F(ModelHostTest, UnloadsAfterTheLastUse) {
  ModelHost& models = host();
  ModelLease model = use(0);
  EXPECT_TRUE(models.unload(0));
  EXPECT_FALSE(models.unload(0));
  EXPECT_EQ(models.try_use(0), nullptr) << "no new use begins";
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(alive_[0], 1);
  EXPECT_EQ(models.status(0).state, ModelState::unloading);
  model = nullptr;
  wait_for_state(0, ModelState::unloaded);
  EXPECT_EQ(alive_[0], 0);
}

TEST_F(ModelHostTest, LoadsAgainForUsesThatComeDuringAnUnload) {
  ModelHost& models = host();
  ModelLease model = use(0);
  EXPECT_TRUE(models.unload(0));
  std::promise<ModelLease> again;
  models.use(0, [&](ModelLease loaded, const std::string&) { again.set_value(std::move(loaded)); });
  model = nullptr;
  EXPECT_NE(again.get_future().get(), nullptr);
  EXPECT_EQ(num_loads(0), 2);
}

TEST_F(ModelHostTest, AnUnloadDuringALoadFollowsTheUsesThatWait) {
  ModelHost& models = host();
  set_open(false);
  std::promise<ModelLease> ready;
  models.use(0, [&](ModelLease model, const std::string&) { ready.set_value(std::move(model)); });
  wait_for_load_of(0);
  EXPECT_TRUE(models.unload(0));
  set_open(true);
  ModelLease model = ready.get_future().get();
  EXPECT_NE(model, nullptr);
  EXPECT_EQ(models.status(0).state, ModelState::unloading);
  model = nullptr;
  wait_for_state(0, ModelState::unloaded);
}

TEST_F(ModelHostTest, ALoadAfterThatUnloadKeepsTheModel) {
  ModelHost& models = host();
  set_open(false);
  std::promise<ModelLease> ready;
  models.use(0, [&](ModelLease model, const std::string&) { ready.set_value(std::move(model)); });
  wait_for_load_of(0);
  EXPECT_TRUE(models.unload(0));
  EXPECT_TRUE(models.load(0));
  EXPECT_FALSE(models.load(0));
  set_open(true);
  EXPECT_NE(ready.get_future().get(), nullptr);
  EXPECT_EQ(models.status(0).state, ModelState::loaded);
  EXPECT_EQ(num_loads(0), 1);
}

TEST_F(ModelHostTest, TheLeastRecentlyUsedModelMakesRoom) {
  ModelHost& models = host();
  room_ = 2;
  use(0);
  use(1);
  std::this_thread::sleep_for(milliseconds(2));
  EXPECT_NE(models.try_use(0), nullptr);  // 1 is older now
  EXPECT_NE(use(2), nullptr);
  EXPECT_EQ(models.status(0).state, ModelState::loaded);
  EXPECT_EQ(models.status(1).state, ModelState::unloaded);
}

TEST_F(ModelHostTest, OneInUseMakesRoomOnlyAfterItsUse) {
  ModelHost& models = host();
  room_ = 1;
  ModelLease first = use(0);
  std::promise<ModelLease> second;
  models.use(1, [&](ModelLease model, const std::string&) { second.set_value(std::move(model)); });
  auto future = second.get_future();
  EXPECT_EQ(future.wait_for(milliseconds(30)), std::future_status::timeout);
  EXPECT_EQ(alive_[0], 1);
  first = nullptr;
  EXPECT_NE(future.get(), nullptr);
  EXPECT_EQ(alive_[0], 0);
}

TEST_F(ModelHostTest, ARequestMaySayHowLongAModelStays) {
  ModelHost& models = host();
  use(0);
  EXPECT_EQ(models.status(0).sleeps_in, std::nullopt);
  models.keep_alive(0, milliseconds(3'600'000));
  EXPECT_GT(models.status(0).sleeps_in, milliseconds(3'500'000));
  models.keep_alive(0, milliseconds(-1));
  EXPECT_EQ(models.status(0).sleeps_in, std::nullopt);
  ModelLease model = models.try_use(0);
  models.keep_alive(0, milliseconds(0));
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(models.status(0).state, ModelState::loaded) << "it is in use";
  model = nullptr;
  wait_for_state(0, ModelState::unloaded);
}

TEST_F(ModelHostTest, WithoutRoomForItAloneALoadFails) {
  host();
  room_ = 0;
  std::string problem;
  EXPECT_EQ(use(0, &problem), nullptr);
  EXPECT_EQ(problem, "no memory");
}

TEST_F(ModelHostTest, SleepsWhenNothingUsesIt) {
  ModelHost& models = host({.sleep_after = milliseconds(40)});
  ModelLease model = use(0);
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(models.status(0).state, ModelState::loaded) << "it is in use";
  model = nullptr;
  const ModelLease looked = models.look(0);
  EXPECT_NE(looked, nullptr);
  wait_for_state(0, ModelState::unloading);  // a look ends first, but keeps nothing awake
}

TEST_F(ModelHostTest, FailsTheUsesThatWait) {
  ModelHost& models = host();
  set_open(false);
  std::promise<std::string> failed;
  models.use(0, [&](const ModelLease&, const std::string& problem) { failed.set_value(problem); });
  wait_for_load_of(0);
  models.fail_waiting("the end");
  EXPECT_EQ(failed.get_future().get(), "the end");
  set_open(true);
}

TEST_F(ModelHostTest, StopsDuringALoad) {
  ModelHost& models = host();
  set_open(false);
  models.use(0, [](const ModelLease&, const std::string&) {});
  wait_for_load_of(0);
  std::thread opener([this] {
    std::this_thread::sleep_for(milliseconds(20));
    set_open(true);
  });
  models.stop();
  opener.join();
  std::string problem;
  EXPECT_EQ(use(1, &problem), nullptr);
  EXPECT_EQ(problem, "the server is shutting down");
}

// Uses, loads and unloads from several threads: a lease's model is alive, no more models than fit
// are, and every use is answered.
TEST_F(ModelHostTest, HoldsUnderRaces) {
  constexpr int kNumThreads = 4, kNumCalls = 60, kRoom = 2;
  ModelHost& models = host({.sleep_after = milliseconds(1)});
  room_ = kRoom;
  std::atomic<int> num_ready = 0, num_uses = 0;
  const auto call = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < kNumCalls; ++i) {
      const size_t index = random() % kNumModels;
      switch (random() % 5) {
        case 0:
          models.unload(index);
          break;
        case 1:
          models.load(index);
          break;
        case 2:
          for (const ModelLease& model : models.loaded()) EXPECT_GE(model->step_age(), 0);
          break;
        default:
          ++num_uses;
          models.use(index, [&, index](ModelLease model, const std::string& problem) {
            EXPECT_NE(model, nullptr) << problem;
            EXPECT_EQ(alive_[index], 1);
            EXPECT_EQ(model->names[0], models.entry(index).names[0]);
            ++num_ready;
          });
      }
      int num_alive = 0;
      for (const std::atomic<int>& alive : alive_) num_alive += alive;
      EXPECT_LE(num_alive, kRoom);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < kNumThreads; ++seed) threads.emplace_back(call, seed);
  for (std::thread& thread : threads) thread.join();
  while (num_ready < num_uses) std::this_thread::sleep_for(milliseconds(1));
}

}  // namespace
}  // namespace paceline::testing
