// What holds for the admission of random waiting sequences, however the planner finds it.
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

// What the sequences admitted so far have left.
class Room {
 public:
  explicit Room(const WaitingCase& c)
      : case_(c), sequences_(c.limits.max_sequences), rows_(c.limits.max_rows) {
    for (const SchedGroup& group : c.groups) num_free_.push_back(group.num_free);
  }

  bool has_sequence() const { return sequences_ > 0; }
  bool has_rows(int64_t count) const { return rows_ >= count; }
  bool has_adapter(const SchedWaiting& one) const {
    return one.adapter == 0 || adapters_.contains(one.adapter) ||
           std::ssize(adapters_) < case_.limits.max_adapters;
  }
  bool has_blocks(const SchedWaiting& one, int64_t count) const {
    for (size_t g = 0; g < num_free_.size(); ++g) {
      if (blocks_taken(case_, g, one, count) > num_free_[g]) return false;
    }
    return true;
  }
  void take(const SchedWaiting& one, int64_t count) {
    --sequences_;
    rows_ -= count;
    if (one.adapter != 0) adapters_.insert(one.adapter);
    for (size_t g = 0; g < num_free_.size(); ++g) {
      num_free_[g] -= blocks_taken(case_, g, one, count);
    }
  }

 private:
  const WaitingCase& case_;
  int64_t sequences_;
  int64_t rows_;
  std::vector<int64_t> num_free_;
  std::set<int32_t> adapters_;
};

// Fits, and would not with one row more. Returns whether blocks are what it has too few of.
bool check_slice(const WaitingCase& c, const Room& room, const SchedWaiting& one, int64_t count) {
  const int64_t missing = one.num_tokens - one.prefix_length;
  EXPECT_TRUE(room.has_sequence() && room.has_rows(count) && room.has_adapter(one));
  EXPECT_TRUE(room.has_blocks(one, count));
  EXPECT_GT(count, 0);
  EXPECT_LE(count, missing);
  if (one.is_whole) {
    EXPECT_EQ(count, missing);
  } else {
    EXPECT_LE(count, c.limits.max_slice);
  }
  if (count >= std::min(missing, c.limits.max_slice) || !room.has_rows(count + 1)) return false;
  EXPECT_FALSE(room.has_blocks(one, count + 1));
  return true;
}

// Waits for a reason, which the plan names where it is the only one.
void check_first_left(const Room& room, const SchedWaiting& one, const StepPlan& plan) {
  const int64_t fewest = one.is_whole ? one.num_tokens : 1;
  const bool waits_for_prefix = one.prefix_is_coming && !plan.admitted.empty();
  const bool has_step = room.has_sequence() && room.has_rows(fewest) && !waits_for_prefix;
  const bool has_adapter = room.has_adapter(one), has_blocks = room.has_blocks(one, fewest);
  EXPECT_FALSE(has_step && has_adapter && has_blocks);
  EXPECT_EQ(plan.starved, plan.admitted.empty());
  EXPECT_TRUE(!plan.lacks_blocks || (has_step && has_adapter && !has_blocks));
  EXPECT_TRUE(!plan.lacks_adapters || !has_adapter);
  EXPECT_TRUE(!has_step || plan.lacks_blocks || plan.lacks_adapters);
}

TEST(AdmissionProperty, TheFirstOnesAreAdmittedWithAllRowsThatFit) {
  const int num_cases = scaled(20'000, 2'000'000);
  int64_t num_cut = 0;
  for (int seed = 0; seed < num_cases && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const WaitingCase c(static_cast<uint32_t>(seed));
    PlanScratch scratch;
    StepPlan plan;
    plan_step(c.view(), c.limits, scratch, plan);
    const size_t num_admitted = plan.admitted.size();
    ASSERT_LE(num_admitted, c.waiting.size());
    ASSERT_EQ(plan.slices.size(), num_admitted);
    Room room(c);
    for (size_t i = 0; i < num_admitted; ++i) {
      const SchedWaiting& one = c.waiting[i];
      const auto index = static_cast<int32_t>(i);
      const PlannedSlice& slice = plan.slices[i];
      EXPECT_EQ(plan.admitted[i], (PlannedAdmission{index, one.prefix_length}))
          << "nobody overtakes";
      EXPECT_EQ(slice, (PlannedSlice{index, one.prefix_length, slice.count}));
      EXPECT_TRUE(i == 0 || !one.prefix_is_coming);
      num_cut += check_slice(c, room, one, slice.count) ? 1 : 0;
      room.take(one, slice.count);
    }
    if (num_admitted < c.waiting.size()) {
      check_first_left(room, c.waiting[num_admitted], plan);
    } else {
      EXPECT_FALSE(plan.starved || plan.lacks_blocks || plan.lacks_adapters);
    }
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
