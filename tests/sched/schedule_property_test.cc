// Random and exhaustive schedules: every request that fits ends within a bound; none starves.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/sched/sched_world.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

// Alone, a request takes its prompt's chunks and a step per token. Every request before it in the
// order may take that long, and may be recomputed each time that another one ends.
int64_t step_bound(const std::vector<WorldRequest>& requests, const SchedLimits& limits) {
  int64_t total = limits.aging_steps * 3;
  for (const WorldRequest& request : requests) {
    total += request.prompt + 2 * request.output + 2;
  }
  return total * static_cast<int64_t>(requests.size() + 1);
}

// Of up to `adapters` different ones, and of none.
struct Mix {
  int64_t most_wished = 0;
  int64_t adapters = 0;
  bool has_whole = false;  // some are computed whole
};

struct Seen {
  int64_t num_drafted = 0;
  int64_t num_adapter_waits = 0;  // steps in which an adapter found no room
  int64_t num_runs = 0;           // plans that could be for several steps
  int64_t num_whole = 0;          // sequences that were computed whole
};

Seen run_schedule(uint32_t seed, const Mix& mix) {
  std::mt19937 random(seed);
  const auto below = [&random](int64_t bound) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  };
  const int64_t pools[] = {1, 2, 7, 13, 40};
  SchedLimits limits{.block_size = 1 + below(4),
                     .max_sequences = 1 + below(5),
                     .max_rows = 5 + below(20),
                     .max_rows_beside_decode = 1 + below(12),
                     .min_prefill_beside_decode = 1,
                     .max_slice = 1 + below(9),
                     .aging_steps = 20};
  limits.max_rows = std::max(limits.max_rows, limits.max_sequences);
  if (mix.adapters > 0) limits.max_adapters = 1 + below(mix.adapters);
  std::vector<WorldGroup> groups = {{.num_blocks = pools[below(5)]}};
  if (below(2) == 0) groups.push_back({.window = 1 + below(6), .num_blocks = pools[below(5)]});
  if (below(4) == 0) groups.erase(groups.begin());
  SchedWorld world(limits, groups);
  std::mt19937 draws(seed);
  world.set_accepted([&draws](int64_t num_drafted) {
    return static_cast<int64_t>(draws() % static_cast<uint64_t>(num_drafted + 1));
  });

  Seen seen;
  std::vector<WorldRequest> requests;
  std::set<int64_t> expected;
  const int64_t num_requests = 1 + below(8);
  for (int64_t id = 1; id <= num_requests; ++id) {
    WorldRequest request{
        .arrival_id = id,
        .priority = static_cast<int32_t>(below(3) == 0 ? below(3) : 0),
        .prompt = 1 + below(12),
        .output = 1 + below(10),
        .wished = mix.most_wished == 0 ? 0 : below(mix.most_wished + 1),
        .adapter = mix.adapters == 0 ? 0 : static_cast<int32_t>(below(mix.adapters + 1))};
    if (mix.has_whole && below(2) == 0) {
      request.is_whole = true;
      request.prompt = 1 + below(24);
      request.output = 1;
    }
    if (!world.fits_alone(request)) continue;
    requests.push_back(request);
    seen.num_whole += request.is_whole ? 1 : 0;
  }
  const int64_t bound = step_bound(requests, limits);
  size_t next = 0;
  bool more = true;
  while (more || next < requests.size()) {
    while (next < requests.size() && below(3) != 0) {
      expected.insert(requests[next].arrival_id);
      world.submit(requests[next++]);
    }
    if (below(20) == 0 && !expected.empty()) {
      const int64_t id = 1 + below(num_requests);
      const auto& done = world.finished();
      if (expected.contains(id) && std::find(done.begin(), done.end(), id) == done.end()) {
        world.cancel(id);
        expected.erase(id);
      }
    }
    more = world.step();
    if (::testing::Test::HasFatalFailure()) return seen;
    seen.num_adapter_waits += world.plan().lacks_adapters ? 1 : 0;
    EXPECT_LE(world.step_number(), bound + num_requests) << "seed " << seed;
  }
  const std::set<int64_t> finished(world.finished().begin(), world.finished().end());
  EXPECT_EQ(finished, expected) << "seed " << seed;
  for (size_t g = 0; g < groups.size(); ++g) {
    EXPECT_EQ(world.num_free(g), groups[g].num_blocks) << "seed " << seed;
  }
  seen.num_drafted = world.num_drafted();
  seen.num_runs = world.num_runs();
  return seen;
}

TEST(ScheduleProperty, WhatFitsAloneEndsWithinTheBoundAndBlocksAreConserved) {
  const int count = scaled(1000, 100000);
  int64_t num_runs = 0;
  for (int seed = 0; seed < count; ++seed) {
    num_runs += run_schedule(static_cast<uint32_t>(seed), {}).num_runs;
    if (HasFailure()) return;
  }
  EXPECT_GT(num_runs, count);
}

TEST(ScheduleProperty, AdaptersThatFindNoRoomWaitAndNeitherStarveNorOvertake) {
  const int count = scaled(1000, 100000);
  int64_t num_waits = 0;
  for (int seed = 0; seed < count; ++seed) {
    const Mix mix = {.most_wished = seed % 2 == 0 ? 0 : 4, .adapters = 1 + seed % 4};
    num_waits += run_schedule(static_cast<uint32_t>(seed), mix).num_adapter_waits;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(num_waits, count / 2);
}

TEST(ScheduleProperty, WholeSequencesAreNeverCutAndNobodyStarves) {
  const int count = scaled(2000, 100000);
  int64_t num_whole = 0;
  for (int seed = 0; seed < count; ++seed) {
    const Mix mix = {.most_wished = seed % 3, .adapters = seed % 2, .has_whole = true};
    num_whole += run_schedule(static_cast<uint32_t>(seed), mix).num_whole;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(num_whole, count / 2);
}

TEST(ScheduleProperty, DraftsDelayNobodyAndGiveTheirBlocksBack) {
  const int count = scaled(1000, 100000);
  int64_t num_drafted = 0;
  for (int seed = 0; seed < count; ++seed) {
    num_drafted += run_schedule(static_cast<uint32_t>(seed), {.most_wished = 8}).num_drafted;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(num_drafted, count);
}

// Every way in which three requests of up to three prompt and three output tokens arrive at a pool
// of four blocks, without drafts and with drafts of which none, half or all are accepted, and with
// adapters of which one or two may be computed at once.
TEST(ScheduleProperty, ThreeRequestsAndFourBlocksNeverDeadlock) {
  int64_t num_worlds = 0;
  for (int64_t code = 0; code < 9 * 9 * 9; ++code) {
    for (int64_t arrivals = 0; arrivals < 9; ++arrivals) {
      SchedLimits limits{.block_size = 1, .max_sequences = 3, .max_rows = 4, .max_slice = 2};
      limits.max_rows_beside_decode = 2;
      limits.max_adapters = 1 + code % 2;
      SchedWorld world(limits, {{.num_blocks = 4}});
      const int64_t kind = (code + arrivals) % 4;  // no drafts; all of one, half, none accepted
      world.set_accepted([kind](int64_t num_drafted) {
        return kind == 3 ? 0 : num_drafted / std::max<int64_t>(1, kind);
      });
      std::map<int64_t, std::vector<WorldRequest>> at_step;
      size_t num_expected = 0;
      int64_t rest = code;
      const int64_t steps[] = {0, arrivals % 3, arrivals / 3};
      for (int64_t id = 1; id <= 3; ++id, rest /= 9) {
        const WorldRequest request{.arrival_id = id,
                                   .prompt = 1 + rest % 9 / 3,
                                   .output = 1 + rest % 3,
                                   .wished = kind == 0 ? 0 : 2,
                                   .adapter = static_cast<int32_t>((code + arrivals * id) % 4)};
        if (!world.fits_alone(request)) continue;
        at_step[steps[id - 1]].push_back(request);
        ++num_expected;
      }
      for (int64_t step = 0; step < 60; ++step) {
        for (const WorldRequest& request : at_step[step]) world.submit(request);
        world.step();
        ASSERT_FALSE(HasFatalFailure());
      }
      ASSERT_EQ(world.finished().size(), num_expected) << code << " " << arrivals;
      ++num_worlds;
    }
  }
  EXPECT_EQ(num_worlds, 6561);
}

}  // namespace
}  // namespace paceline::testing
