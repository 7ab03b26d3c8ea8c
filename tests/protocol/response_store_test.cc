#include "protocol/response_store.h"
#include "base/time_source.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "base/random.h"
#include "base/time_source.h"

namespace paceline {
namespace {

using std::chrono::seconds;

constexpr size_t kEntryBytes = 1024;

// A clock that goes when it is told to.
class StoppedTime final : public TimeSource {
 public:
  Clock::time_point now() const override { return at; }
  WallClock::time_point wall_time() const override { return machine_time().wall_time(); }
  Clock::time_point at{};
};

size_t size_of_text(size_t num_bytes) { return num_bytes + sizeof(std::string); }

StoredResponse response_of(const ResponseStore& store, size_t num_bytes,
                           std::vector<StoredText> context = {}) {
  return {.json = store.keep(std::string(num_bytes, 'x')),
          .input = store.keep("[]"),
          .context = std::move(context)};
}

TEST(ResponseStore, FindsForTheOwnerAlone) {
  ResponseStore store({});
  store.add("ann", "resp_1", response_of(store, 7));
  ASSERT_NE(store.find("ann", "resp_1"), nullptr);
  EXPECT_EQ(store.find("ann", "resp_1")->json->size(), 7);
  EXPECT_EQ(store.find("bob", "resp_1"), nullptr);
  EXPECT_EQ(store.find("", "resp_1"), nullptr);
  EXPECT_FALSE(store.erase("bob", "resp_1"));
  EXPECT_FALSE(store.replace("bob", "resp_1", response_of(store, 9)));
  EXPECT_TRUE(store.replace("ann", "resp_1", response_of(store, 9)));
  EXPECT_EQ(store.find("ann", "resp_1")->json->size(), 9);
  EXPECT_TRUE(store.erase("ann", "resp_1"));
  EXPECT_FALSE(store.replace("ann", "resp_1", response_of(store, 9)));
  EXPECT_EQ(store.num_bytes(), 0);
}

TEST(ResponseStore, SharedContextCountsOnceUntilNothingHoldsIt) {
  ResponseStore store({});
  {
    const StoredText turn = store.keep(std::string(1000, 'x'));
    store.add("", "resp_1", response_of(store, 0, {turn}));
    store.add("", "resp_2", response_of(store, 0, {turn, turn}));
  }
  const size_t one = kEntryBytes + size_of_text(0) + size_of_text(2);
  EXPECT_EQ(store.num_bytes(), 2 * one + size_of_text(1000));
  store.erase("", "resp_1");
  EXPECT_EQ(store.num_bytes(), one + size_of_text(1000));
  store.erase("", "resp_2");
  EXPECT_EQ(store.num_bytes(), 0);
}

TEST(ResponseStore, WhatIsTooLargeForItLeavesAtOnce) {
  ResponseStore store({.max_bytes = 4096});
  store.add("", "resp_1", response_of(store, 5000));
  EXPECT_EQ(store.num_responses(), 0);
  EXPECT_EQ(store.num_bytes(), 0);
}

// A store as a list that is searched.
struct NaiveStore {
  struct Response {
    std::string owner;
    std::string id;
    seconds added;
    size_t bytes;
  };
  ResponseStoreLimits limits;
  std::vector<Response> responses = {};

  static size_t total(const Response& response) {
    return kEntryBytes + size_of_text(response.bytes) + size_of_text(2);
  }
  size_t bytes() const {
    size_t sum = 0;
    for (const Response& response : responses) sum += total(response);
    return sum;
  }
  void shrink(seconds now) {
    std::erase_if(responses, [&](const Response& r) { return now - r.added >= limits.lifetime; });
    while (responses.size() > limits.max_responses || bytes() > limits.max_bytes) {
      responses.erase(responses.begin());
    }
  }
  Response* find(const std::string& owner, const std::string& id) {
    for (Response& response : responses) {
      if (response.owner == owner && response.id == id) return &response;
    }
    return nullptr;
  }
};

TEST(ResponseStore, BehavesAsANaiveOne) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const ResponseStoreLimits limits{.max_responses = 5 + seed % 7,
                                     .max_bytes = 12'000 + 1000 * (seed % 5),
                                     .lifetime = seconds(50)};
    StoppedTime time;
    const TimeOverride overriding(time);
    ResponseStore store(limits);
    NaiveStore naive{.limits = limits};
    std::vector<std::string> ids = {"resp_none"};
    for (uint64_t step = 0; step < 400; ++step) {
      const auto draw = philox4x32(seed, step);
      time.at += seconds(draw[0] % 6);
      const auto now = std::chrono::duration_cast<seconds>(time.at.time_since_epoch());
      naive.shrink(now);
      const std::string owner = draw[1] % 2 == 0 ? "ann" : "bob";
      const std::string id = ids[ids.size() - 1 - draw[2] % std::min<size_t>(ids.size(), 9)];
      const size_t num_bytes = draw[3] % 4000;
      NaiveStore::Response* const known = naive.find(owner, id);
      switch (draw[0] / 8 % 4) {
        case 0: {
          ids.push_back("resp_" + std::to_string(step));
          store.add(owner, ids.back(), response_of(store, num_bytes));
          naive.responses.push_back({owner, ids.back(), now, num_bytes});
          break;
        }
        case 1: {
          ASSERT_EQ(store.replace(owner, id, response_of(store, num_bytes)), known != nullptr);
          if (known != nullptr) known->bytes = num_bytes;
          break;
        }
        case 2: {
          const auto found = store.find(owner, id);
          ASSERT_EQ(found != nullptr, known != nullptr);
          if (known != nullptr) {
            ASSERT_EQ(found->json->size(), known->bytes);
          }
          break;
        }
        default: {
          ASSERT_EQ(store.erase(owner, id), known != nullptr);
          if (known != nullptr) {
            naive.responses.erase(naive.responses.begin() + (known - naive.responses.data()));
          }
        }
      }
      naive.shrink(now);
      ASSERT_EQ(store.num_responses(), naive.responses.size()) << seed << " " << step;
      ASSERT_EQ(store.num_bytes(), naive.bytes());
    }
  }
}

TEST(ResponseStore, IsThreadSafe) {
  ResponseStore store({.max_responses = 20});
  std::vector<std::jthread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&store, thread] {
      std::vector<StoredText> context;
      for (uint64_t i = 0; i < 500; ++i) {
        const std::string id = std::to_string(thread) + "_" + std::to_string(i);
        context.push_back(store.keep("[]"));
        store.add("", id, response_of(store, i, context));
        if (const auto found = store.find("", id)) context = found->context;
        if (i % 3 == 0) store.erase("", id);
      }
    });
  }
  threads.clear();
  EXPECT_LE(store.num_responses(), 20);
}

}  // namespace
}  // namespace paceline
