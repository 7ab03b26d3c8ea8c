// Adapters by name: replaced and removed ones live on, and idle ones leave when there are too many.
#include "engine/adapter_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/engine/scripted_runner.h"

namespace paceline::testing {
namespace {

using Names = std::vector<std::string>;

AdapterSet::Handle named(const std::string& name, uint64_t digest = 1) {
  auto adapter = std::make_shared<LoadedAdapter>();
  adapter->name = name;
  adapter->digest = {.low = digest, .high = 0};
  return adapter;
}

TEST(AdapterSet, FindsReplacesAndRemovesByName) {
  AdapterSet set;
  EXPECT_EQ(set.find("a"), nullptr);
  set.add(named("b"));
  set.add(named("a"));
  EXPECT_EQ(set.names(), (Names{"a", "b"}));
  const AdapterSet::Handle old = set.find("a");
  set.add(named("a", 2));
  EXPECT_EQ(set.find("a")->digest.low, 2u);
  EXPECT_EQ(old->digest.low, 1u) << "a request goes on with the one it has";
  EXPECT_TRUE(set.remove("a"));
  EXPECT_FALSE(set.remove("a"));
  EXPECT_EQ(set.list().size(), 1u);
}

TEST(AdapterSet, TheLeastRecentlyUsedIdleOneLeaves) {
  AdapterSet set;
  set.add(named("lasting"));
  for (const char* const name : {"a", "b", "c"}) set.add_at_run_time(named(name), 3);
  set.find("a");
  set.add_at_run_time(named("d"), 3);
  EXPECT_EQ(set.names(), (Names{"a", "c", "d", "lasting"})) << "b was used least recently";
  const AdapterSet::Handle held = set.find("c");
  set.find("a");
  set.find("d");
  set.add_at_run_time(named("e"), 3);
  EXPECT_EQ(set.names(), (Names{"c", "d", "e", "lasting"})) << "c is held, so a leaves";
}

TEST(AdapterSet, WhatRequestsHoldStaysAndLeavesLater) {
  AdapterSet set;
  std::vector<AdapterSet::Handle> held;
  for (const char* const name : {"a", "b", "c"}) {
    set.add_at_run_time(named(name), 1);
    held.push_back(set.find(name));
  }
  EXPECT_EQ(set.names(), (Names{"a", "b", "c"}));
  held.clear();
  set.add_at_run_time(named("d"), 1);
  EXPECT_EQ(set.names(), (Names{"d"}));
}

TEST(AdapterSet, ThreadsMayUseItTogether) {
  AdapterSet set;
  std::atomic<int64_t> num_found = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&set, &num_found, t] {
        for (int i = 0; i < 500; ++i) {
          const std::string name = "a" + std::to_string((i + t) % 5);
          if (i % 3 == 0) set.add_at_run_time(named(name), 3);
          if (i % 7 == 0) set.remove(name);
          if (const auto found = set.find(name)) num_found += found->name == name ? 1 : -10000;
        }
      });
    }
  }
  EXPECT_GT(num_found, 0);
  EXPECT_LE(set.names().size(), 5u);
}

}  // namespace
}  // namespace paceline::testing
