// Compares the admission of random waiting sequences with a search for the longest first slice.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "sched/plan_step.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

struct WaitingCase {
  SchedLimits limits;
  std::vector<SchedGroup> groups;
  std::vector<std::vector<int64_t>> revived;  // by sequence
  std::vector<SchedWaiting> waiting;

  explicit WaitingCase(uint32_t seed);
  SchedView view() const { return {.groups = groups, .waiting = waiting}; }
};

WaitingCase::WaitingCase(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&random](int64_t bound) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  };
  limits = {.block_size = 1 + below(4),
            .max_sequences = 1 + below(5),
            .max_adapters = 1 + below(3),
            .max_rows = 1 + below(30),
            .max_slice = 1 + below(12)};
  for (int64_t g = below(3); g >= 0; --g) {
    groups.push_back({.window = below(2) == 0 ? 0 : 1 + below(8), .num_free = below(20)});
  }
  waiting.resize(static_cast<size_t>(1 + below(4)));
  for (size_t i = 0; i < waiting.size(); ++i) {
    SchedWaiting& one = waiting[i];
    one.arrival_id = static_cast<int64_t>(i);
    one.num_tokens = 1 + below(30);
    one.is_whole = below(4) == 0 && one.num_tokens <= limits.max_rows;
    if (!one.is_whole) {
      one.prefix_length = below(one.num_tokens) / limits.block_size * limits.block_size;
    }
    std::vector<int64_t> counts;
    for (size_t g = 0; g < groups.size(); ++g)
      counts.push_back(below(one.prefix_length / limits.block_size + 1));
    revived.push_back(std::move(counts));
    one.prefix_is_coming = below(8) == 0;
    one.adapter = static_cast<int32_t>(below(4));
  }
  for (size_t i = 0; i < waiting.size(); ++i) waiting[i].prefix_revived = revived[i];
}

// The blocks that a group gives up, counted position by position.
int64_t blocks_taken(const WaitingCase& c, size_t group, const SchedWaiting& one, int64_t count) {
  const int64_t end = c.groups[group].window == 0 ? one.num_tokens : one.prefix_length + count;
  int64_t blocks = one.prefix_revived[group];
  for (int64_t p = one.prefix_length; p < end; ++p) blocks += p % c.limits.block_size == 0;
  return blocks;
}

int64_t longest_slice(const WaitingCase& c, const std::vector<int64_t>& num_free,
                      const SchedWaiting& one, int64_t rows) {
  int64_t longest = 0;
  const int64_t most =
      one.is_whole ? one.num_tokens
                   : std::min({one.num_tokens - one.prefix_length, rows, c.limits.max_slice});
  for (int64_t count = one.is_whole ? most : 1; count <= most; ++count) {
    bool fits = true;
    for (size_t g = 0; g < num_free.size(); ++g)
      fits = fits && blocks_taken(c, g, one, count) <= num_free[g];
    if (fits) longest = count;
  }
  return longest;
}

TEST(AdmissionProperty, TheFirstSliceIsAsLongAsRowsAndBlocksAllow) {
  const int num_cases = scaled(20'000, 2'000'000);
  int64_t num_cut = 0;
  for (int seed = 0; seed < num_cases; ++seed) {
    const WaitingCase c(static_cast<uint32_t>(seed));
    std::vector<int64_t> num_free;
    for (const SchedGroup& group : c.groups) num_free.push_back(group.num_free);
    std::vector<PlannedAdmission> admitted;
    std::vector<PlannedSlice> slices;
    int64_t rows = c.limits.max_rows;
    bool starved = false, lacks_adapters = false;
    std::set<int32_t> adapters;
    for (size_t i = 0; i < c.waiting.size(); ++i) {
      const SchedWaiting& one = c.waiting[i];
      if (rows == 0 || static_cast<int64_t>(i) == c.limits.max_sequences) break;
      if (one.prefix_is_coming && i > 0) break;
      if (one.adapter != 0) adapters.insert(one.adapter);
      lacks_adapters = std::ssize(adapters) > c.limits.max_adapters;
      if (lacks_adapters) break;
      if (one.is_whole && one.num_tokens > rows) break;
      const int64_t count = longest_slice(c, num_free, one, rows);
      starved = count == 0 && i == 0;
      if (count == 0) break;
      num_cut += !one.is_whole &&
                 count < std::min({one.num_tokens - one.prefix_length, rows, c.limits.max_slice});
      for (size_t g = 0; g < num_free.size(); ++g) num_free[g] -= blocks_taken(c, g, one, count);
      const auto index = static_cast<int32_t>(i);
      admitted.push_back({.waiting = index, .prefix_length = one.prefix_length});
      slices.push_back({.sequence = index, .first = one.prefix_length, .count = count});
      rows -= count;
    }
    PlanScratch scratch;
    StepPlan plan;
    plan_step(c.view(), c.limits, scratch, plan);
    ASSERT_EQ(plan.admitted, admitted) << "seed " << seed;
    ASSERT_EQ(plan.slices, slices) << "seed " << seed;
    ASSERT_EQ(plan.starved, starved) << "seed " << seed;
    ASSERT_EQ(plan.lacks_adapters, lacks_adapters) << "seed " << seed;
  }
  EXPECT_GT(num_cut, num_cases / 50) << "slices that a windowed group cuts";
}

// The class after each step of waiting, one step at a time.
int64_t risen_class(const SchedWaiting& one, int64_t step, int64_t aging_steps, int64_t first) {
  int64_t risen = one.priority;
  int64_t until_next = aging_steps;
  for (int64_t s = one.waiting_since; s < step && risen > first; ++s) {
    if (--until_next > 0) continue;
    until_next = aging_steps;
    --risen;
  }
  return risen;
}

TEST(AdmissionProperty, WaitingOnesAreServedByTheirRisenClassThenByArrival) {
  const int num_cases = scaled(5'000, 500'000);
  int num_overtaking = 0;
  for (int seed = 0; seed < num_cases; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const auto below = [&random](int64_t bound) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
    };
    const int64_t step = below(40), aging_steps = 1 + below(12);
    std::vector<SchedWaiting> waiting(static_cast<size_t>(below(7)));
    for (size_t i = 0; i < waiting.size(); ++i) {
      waiting[i] = {.arrival_id = static_cast<int64_t>(10 * i) + below(10),
                    .priority = static_cast<int32_t>(below(4) - 1),
                    .waiting_since = below(step + 1)};
    }
    std::stable_sort(waiting.begin(), waiting.end(),
                     [](const auto& a, const auto& b) { return a.priority < b.priority; });
    std::vector<std::pair<std::pair<int64_t, int64_t>, int32_t>> ranked;
    for (size_t i = 0; i < waiting.size(); ++i) {
      const SchedWaiting& one = waiting[i];
      const int64_t risen = risen_class(one, step, aging_steps, waiting.front().priority);
      ranked.push_back({{risen, one.arrival_id}, static_cast<int32_t>(i)});
    }
    std::sort(ranked.begin(), ranked.end());
    std::vector<int32_t> expected, order = {1, 2, 3};
    for (const auto& [rank, index] : ranked) expected.push_back(index);
    order_waiting(waiting, step, aging_steps, order);
    ASSERT_EQ(order, expected) << "seed " << seed;
    num_overtaking += std::is_sorted(order.begin(), order.end()) ? 0 : 1;
  }
  EXPECT_GT(num_overtaking, num_cases / 10);
}

}  // namespace
}  // namespace paceline::testing
