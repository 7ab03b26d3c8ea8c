// Compares plans for random running sequences that share blocks with a planner that recounts
// everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "sched/plan_step.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

// A view, and the memory that its spans point to.
class RunningCase {
 public:
  explicit RunningCase(uint32_t seed);

  SchedView view() const { return {.groups = groups_, .running = running_}; }
  const SchedLimits& limits() const { return limits_; }
  StepPlan expected() const;

 private:
  struct Held {
    std::vector<int32_t> table;
    int64_t length = 0;
  };

  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  int64_t blocks_for(int64_t length) const {
    return (length + limits_.block_size - 1) / limits_.block_size;
  }
  void add_sequence(size_t index, SchedRunning& one);
  Held own_blocks(size_t group, const SchedRunning& one);
  void finish();

  int64_t num_free(size_t group, const std::vector<int32_t>& victims) const;
  int64_t holders_left(size_t group, int32_t block, const std::vector<int32_t>& victims) const;
  // Sequences that have released their blocks, and a group and a block for each copy made.
  struct Done {
    const std::vector<int32_t>& victims;
    std::vector<std::pair<size_t, int32_t>> copies = {};
  };
  bool last_is_published(size_t sequence, size_t group) const;
  bool copies_last(size_t sequence, size_t group, const Done& done) const;
  int64_t blocks_taken(size_t sequence, size_t group, int64_t count, const Done& done) const;
  bool plan_slices(StepPlan& plan) const;

  std::mt19937 random_;
  SchedLimits limits_;
  std::vector<SchedGroup> groups_;
  std::vector<std::vector<int32_t>> counts_;  // by group and block
  std::vector<std::vector<bool>> published_;  // likewise
  std::vector<std::vector<Held>> held_;       // by sequence and group
  std::vector<std::vector<SchedBlocks>> blocks_;
  std::vector<SchedRunning> running_;
};

RunningCase::RunningCase(uint32_t seed) : random_(seed) {
  limits_ = {.block_size = 1 + below(4),
             .max_rows = 6 + below(20),
             .max_rows_beside_decode = 1 + below(12),
             .min_prefill_beside_decode = below(2),
             .max_slice = 1 + below(9)};
  for (int64_t g = below(3); g >= 0; --g)
    groups_.push_back({.window = below(2) == 0 ? 0 : 1 + below(8), .num_free = below(5)});
  counts_.resize(groups_.size());
  published_.resize(groups_.size());
  running_.resize(static_cast<size_t>(1 + below(5)));
  held_.resize(running_.size());
  int32_t priority = 0;
  for (size_t i = 0; i < running_.size(); ++i) {
    if (below(4) == 0) ++priority;
    running_[i].priority = priority;
    running_[i].arrival_id = static_cast<int64_t>(i);
    add_sequence(i, running_[i]);
  }
  finish();
}

// As long as the one before and with all its blocks (a fork), or with its first full ones, or with
// none of them.
void RunningCase::add_sequence(size_t index, SchedRunning& one) {
  const int64_t kind = index == 0 ? 2 : below(3);
  one.num_computed = kind == 0 ? running_[index - 1].num_computed : below(11);
  one.num_tokens = one.num_computed + 1 + (below(2) == 0 ? 0 : below(12));
  one.num_output = below(3);
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (kind == 0) {
      held_[index].push_back(held_[index - 1][g]);
    } else {
      held_[index].push_back(own_blocks(g, one));
    }
    Held& held = held_[index].back();
    if (kind == 1) {
      const auto& other = held_[index - 1][g];
      const auto num_full = std::min(held.length, other.length) / limits_.block_size;
      for (size_t i = 0; i < static_cast<size_t>(num_full); ++i) {
        if (held.table[i] >= 0 && other.table[i] >= 0) held.table[i] = other.table[i];
      }
    }
  }
}

RunningCase::Held RunningCase::own_blocks(size_t group, const SchedRunning& one) {
  const int64_t window = groups_[group].window;
  const bool is_reserved = window == 0 && one.num_computed > 0 && below(2) == 0;
  Held held{.table = {}, .length = is_reserved ? one.num_tokens : one.num_computed};
  const int64_t passed =
      window == 0 ? 0 : std::max<int64_t>(0, one.num_computed - window + 1) / limits_.block_size;
  for (int64_t i = 0; i < blocks_for(held.length); ++i) {
    held.table.push_back(i < passed ? -1 : static_cast<int32_t>(counts_[group].size()));
    if (i < passed) continue;
    counts_[group].push_back(0);
    published_[group].push_back(below(4) == 0);
  }
  return held;
}

// Counts the holders, some of them outside of the view, and makes the spans.
void RunningCase::finish() {
  for (const auto& sequence : held_) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const int32_t block : sequence[g].table)
        if (block >= 0) ++counts_[g][static_cast<size_t>(block)];
    }
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (int32_t& count : counts_[g]) count += below(8) == 0 ? 1 : 0;
    groups_[g].reference_counts = counts_[g];
  }
  blocks_.resize(running_.size());
  for (size_t i = 0; i < running_.size(); ++i) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      blocks_[i].push_back({.table = held_[i][g].table,
                            .length = held_[i][g].length,
                            .copies_last = copies_last(i, g, {.victims = {}}),
                            .is_published = last_is_published(i, g)});
    }
    running_[i].groups = blocks_[i];
  }
}

int64_t RunningCase::holders_left(size_t group, int32_t block,
                                  const std::vector<int32_t>& victims) const {
  int64_t left = counts_[group][static_cast<size_t>(block)];
  for (const int32_t victim : victims) {
    const auto& table = held_[static_cast<size_t>(victim)][group].table;
    left -= std::count(table.begin(), table.end(), block);
  }
  return left;
}

int64_t RunningCase::num_free(size_t group, const std::vector<int32_t>& victims) const {
  int64_t free = groups_[group].num_free;
  for (size_t b = 0; b < counts_[group].size(); ++b) {
    const auto block = static_cast<int32_t>(b);
    if (counts_[group][b] > 0 && holders_left(group, block, victims) == 0) ++free;
  }
  return free;
}

bool RunningCase::last_is_published(size_t sequence, size_t group) const {
  const auto& table = held_[sequence][group].table;
  return !table.empty() && table.back() >= 0 &&
         published_[group][static_cast<size_t>(table.back())];
}

bool RunningCase::copies_last(size_t sequence, size_t group, const Done& done) const {
  const Held& held = held_[sequence][group];
  if (held.length % limits_.block_size == 0) return false;
  if (last_is_published(sequence, group)) return true;
  const int32_t last = held.table.back();
  const auto num_copies =
      std::count(done.copies.begin(), done.copies.end(), std::pair{group, last});
  return holders_left(group, last, done.victims) - num_copies > 1;
}

int64_t RunningCase::blocks_taken(size_t sequence, size_t group, int64_t count,
                                  const Done& done) const {
  const Held& held = held_[sequence][group];
  const SchedRunning& one = running_[sequence];
  const int64_t end = groups_[group].window == 0 ? one.num_tokens : one.num_computed + count;
  int64_t blocks = 0;
  for (int64_t p = held.length; p < end; ++p) blocks += p % limits_.block_size == 0;
  return blocks + (end > held.length && copies_last(sequence, group, done) ? 1 : 0);
}

// False when a sequence that isn't among plan.preempted lacks its next row.
bool RunningCase::plan_slices(StepPlan& plan) const {
  plan.slices.clear();
  std::vector<int64_t> free;
  for (size_t g = 0; g < groups_.size(); ++g) free.push_back(num_free(g, plan.preempted));
  Done done{.victims = plan.preempted};
  const auto fits = [&](size_t i, int64_t count) {
    for (size_t g = 0; g < free.size(); ++g)
      if (blocks_taken(i, g, count, done) > free[g]) return false;
    return true;
  };
  const auto take = [&](size_t i, int64_t count) {
    for (size_t g = 0; g < free.size(); ++g) {
      free[g] -= blocks_taken(i, g, count, done);
      const int64_t end =
          groups_[g].window == 0 ? running_[i].num_tokens : running_[i].num_computed + count;
      if (end <= held_[i][g].length || !copies_last(i, g, done)) continue;
      done.copies.emplace_back(g, held_[i][g].table.back());
    }
  };
  int64_t num_decodes = 0, rows = limits_.max_rows;
  for (const bool decodes : {true, false}) {
    if (!decodes && num_decodes > 0) {
      const int64_t beside =
          std::max(limits_.max_rows_beside_decode - num_decodes, limits_.min_prefill_beside_decode);
      rows = std::max<int64_t>(0, std::min(beside, limits_.max_rows - num_decodes));
    }
    for (size_t i = 0; i < running_.size(); ++i) {
      const SchedRunning& one = running_[i];
      const auto index = static_cast<int32_t>(i);
      if ((one.num_tokens - one.num_computed == 1) != decodes) continue;
      if (std::count(plan.preempted.begin(), plan.preempted.end(), index) > 0) continue;
      int64_t count =
          decodes ? 1 : std::min({one.num_tokens - one.num_computed, rows, limits_.max_slice});
      if (count == 0) continue;
      while (count > 0 && !fits(i, count)) --count;
      if (count == 0) return false;
      take(i, count);
      plan.slices.push_back({.sequence = index, .first = one.num_computed, .count = count});
      num_decodes += decodes ? 1 : 0;
      rows -= decodes ? 0 : count;
    }
  }
  return true;
}

StepPlan RunningCase::expected() const {
  StepPlan plan;
  while (!plan_slices(plan)) {
    plan.slices.clear();
    if (plan.preempted.size() + 1 == running_.size()) {
      plan.starved = true;
      break;
    }
    std::vector<int32_t> left;
    for (int32_t i = 0; i < static_cast<int32_t>(running_.size()); ++i)
      if (std::count(plan.preempted.begin(), plan.preempted.end(), i) == 0) left.push_back(i);
    plan.preempted.push_back(*std::max_element(left.begin(), left.end(), [&](int32_t a, int32_t b) {
      const SchedRunning& first = running_[static_cast<size_t>(a)];
      const SchedRunning& second = running_[static_cast<size_t>(b)];
      if (first.priority != second.priority) return first.priority < second.priority;
      if (first.num_output != second.num_output) return first.num_output > second.num_output;
      return first.arrival_id < second.arrival_id;
    }));
  }
  return plan;
}

TEST(RunningProperty, SlicesAndVictimsAreThoseOfACountFromScratch) {
  const int num_cases = scaled(20'000, 2'000'000);
  int num_preempting = 0;
  PlanScratch scratch;
  StepPlan plan;
  for (int seed = 0; seed < num_cases; ++seed) {
    const RunningCase c(static_cast<uint32_t>(seed));
    const StepPlan expected = c.expected();
    plan_step(c.view(), c.limits(), scratch, plan);
    ASSERT_EQ(plan.preempted, expected.preempted) << "seed " << seed;
    ASSERT_EQ(plan.slices, expected.slices) << "seed " << seed;
    ASSERT_EQ(plan.starved, expected.starved) << "seed " << seed;
    num_preempting += plan.preempted.empty() ? 0 : 1;
  }
  EXPECT_GT(num_preempting, num_cases / 20);
}

}  // namespace
}  // namespace paceline::testing
