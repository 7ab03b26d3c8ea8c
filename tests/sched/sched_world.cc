#include "tests/sched/sched_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace paceline::testing {
namespace {

int64_t blocks_of(int64_t tokens, int64_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

}  // namespace

SchedWorld::SchedWorld(SchedLimits limits, std::vector<WorldGroup> groups)
    : limits_(limits), groups_(std::move(groups)), none_revived_(groups_.size(), 0) {
  for (const WorldGroup& group : groups_) {
    std::vector<int32_t> free;
    for (int64_t b = group.num_blocks; b-- > 0;) free.push_back(static_cast<int32_t>(b));
    free_.push_back(std::move(free));
    references_.emplace_back(static_cast<size_t>(group.num_blocks), 0);
  }
}

bool SchedWorld::fits_alone(const WorldRequest& request) const {
  if (request.is_whole && request.prompt > limits_.max_rows) return false;
  const int64_t longest = request.prompt + request.output - 1;
  for (const WorldGroup& group : groups_) {
    int64_t needed = blocks_of(longest, limits_.block_size);
    // A window's positions may begin anywhere in a block.
    if (group.window > 0 && !request.is_whole) {
      needed = std::min(needed, (group.window + limits_.block_size - 2) / limits_.block_size + 1);
    }
    if (needed > group.num_blocks) return false;
  }
  return true;
}

void SchedWorld::submit(const WorldRequest& request) {
  enqueue(
      {.request = request, .waiting_since = step_, .groups = std::vector<Held>(groups_.size())});
}

void SchedWorld::enqueue(Sequence sequence) {
  const auto before = [](const Sequence& a, const Sequence& b) {
    if (a.request.priority != b.request.priority) return a.request.priority < b.request.priority;
    return a.request.arrival_id < b.request.arrival_id;
  };
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), sequence, before),
                  std::move(sequence));
}

void SchedWorld::cancel(int64_t arrival_id) {
  for (auto* queue : {&running_, &waiting_}) {
    for (size_t i = 0; i < queue->size(); ++i) {
      if ((*queue)[i].request.arrival_id != arrival_id) continue;
      give_back((*queue)[i]);
      queue->erase(queue->begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
}

std::vector<int64_t> SchedWorld::running_ids() const {
  std::vector<int64_t> ids;
  for (const Sequence& one : running_) ids.push_back(one.request.arrival_id);
  return ids;
}

std::vector<int64_t> SchedWorld::waiting_ids() const {
  std::vector<int64_t> ids;
  for (const Sequence& one : waiting_) ids.push_back(one.request.arrival_id);
  return ids;
}

// A draft of k tokens may give k + 1, and no more than are missing.
int64_t SchedWorld::wished_by(const Sequence& one) const {
  if (one.length() - one.computed != 1 || one.drawn == 0) return 0;
  return std::min(one.request.wished, one.request.output - one.drawn - 1);
}

void SchedWorld::build_view() {
  group_views_.clear();
  running_views_.clear();
  waiting_views_.clear();
  block_views_.clear();
  block_views_.reserve(running_.size() * groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    group_views_.push_back(
        {.window = groups_[g].window, .num_free = num_free(g), .reference_counts = references_[g]});
  }
  for (const Sequence& one : running_) {
    const size_t begin = block_views_.size();
    for (const Held& held : one.groups) {
      block_views_.push_back({.table = held.table, .length = held.length});
    }
    running_views_.push_back({.arrival_id = one.request.arrival_id,
                              .priority = one.request.priority,
                              .num_tokens = one.length(),
                              .num_computed = one.computed,
                              .num_output = one.drawn,
                              .num_wished = wished_by(one),
                              .adapter = one.request.adapter,
                              .groups = std::span(block_views_).subspan(begin, groups_.size())});
  }
  order_queue();
  for (const Sequence& one : waiting_) {
    waiting_views_.push_back({.arrival_id = one.request.arrival_id,
                              .priority = one.request.priority,
                              .waiting_since = one.waiting_since,
                              .num_tokens = one.length(),
                              .is_whole = one.request.is_whole,
                              .adapter = one.request.adapter,
                              .prefix_revived = none_revived_});
  }
  view_ = {
      .step = step_, .groups = group_views_, .running = running_views_, .waiting = waiting_views_};
}

// Orders the queue as the policy serves it, from the order (priority, arrival id).
void SchedWorld::order_queue() {
  std::sort(waiting_.begin(), waiting_.end(), [](const Sequence& a, const Sequence& b) {
    return std::pair(a.request.priority, a.request.arrival_id) <
           std::pair(b.request.priority, b.request.arrival_id);
  });
  std::vector<SchedWaiting> queue;
  for (const Sequence& one : waiting_) {
    queue.push_back({.arrival_id = one.request.arrival_id,
                     .priority = one.request.priority,
                     .waiting_since = one.waiting_since});
  }
  std::vector<int32_t> order;
  order_waiting(queue, step_, limits_.aging_steps, order);
  std::vector<Sequence> served;
  for (const int32_t index : order) served.push_back(waiting_[static_cast<size_t>(index)]);
  waiting_ = std::move(served);
}

void SchedWorld::check_plan() const {
  const auto num_running = static_cast<int32_t>(running_.size());
  const auto num_admitted = static_cast<int32_t>(plan_.admitted.size());
  std::set<int32_t> preempted(plan_.preempted.begin(), plan_.preempted.end());
  ASSERT_EQ(preempted.size(), plan_.preempted.size());
  ASSERT_TRUE(running_.empty() || preempted.size() < running_.size())
      << "the last running sequence is never preempted";
  if (!preempted.empty()) {
    ASSERT_TRUE(plan_.admitted.empty());
  }
  ASSERT_LE(num_running - static_cast<int32_t>(preempted.size()) + num_admitted,
            limits_.max_sequences);
  check_admissions();
  int64_t rows = 0, decodes = 0;
  std::set<int32_t> sliced;
  for (const PlannedSlice& slice : plan_.slices) {
    ASSERT_TRUE(sliced.insert(slice.sequence).second) << "two slices of one sequence";
    ASSERT_LT(slice.sequence, num_running + num_admitted);
    ASSERT_FALSE(preempted.contains(slice.sequence));
    ASSERT_GE(slice.count, 1);
    const bool runs = slice.sequence < num_running;
    const auto index = static_cast<size_t>(slice.sequence - num_running);
    const Sequence& one = runs ? running_[static_cast<size_t>(slice.sequence)]
                               : waiting_[static_cast<size_t>(plan_.admitted[index].waiting)];
    ASSERT_EQ(slice.first, one.computed);
    if (one.request.is_whole) {
      ASSERT_FALSE(runs) << "it was admitted with a part of its tokens";
      ASSERT_EQ(slice.count, one.request.prompt) << "a whole one was cut";
    } else {
      ASSERT_LE(slice.count, limits_.max_slice);
    }
    ASSERT_LE(slice.first + slice.count, one.length() + slice.num_drafted);
    ASSERT_LE(slice.num_drafted, runs ? wished_by(one) : 0);
    if (slice.num_drafted > 0) {
      ASSERT_EQ(slice.count, 1 + slice.num_drafted) << "only a decode has a draft";
    }
    rows += slice.count;
    if (runs && one.length() - one.computed == 1) ++decodes;
  }
  ASSERT_LE(rows, limits_.max_rows);
  if (decodes > 0) {
    ASSERT_LE(rows, std::max(limits_.max_rows_beside_decode,
                             decodes + limits_.min_prefill_beside_decode));
  }
  // Every remaining decoding sequence has its slot.
  for (int32_t i = 0; i < num_running; ++i) {
    const Sequence& one = running_[static_cast<size_t>(i)];
    if (preempted.contains(i) || one.length() - one.computed != 1) continue;
    ASSERT_TRUE(sliced.contains(i)) << "a decode was left out";
  }
  check_drafts();
  check_steps();
}

// None overtakes, and no adapter is one too many. Nobody waits for an adapter that has room.
void SchedWorld::check_admissions() const {
  std::set<int32_t> adapters;
  for (size_t i = 0; i < running_.size(); ++i) {
    if (std::ranges::find(plan_.preempted, static_cast<int32_t>(i)) == plan_.preempted.end()) {
      adapters.insert(running_[i].request.adapter);
    }
  }
  for (size_t i = 0; i < plan_.admitted.size(); ++i) {
    ASSERT_EQ(plan_.admitted[i].waiting, static_cast<int32_t>(i)) << "it overtook another one";
    adapters.insert(waiting_[i].request.adapter);
  }
  adapters.erase(0);
  ASSERT_LE(std::ssize(adapters), limits_.max_adapters);
  if (!plan_.lacks_adapters) return;
  ASSERT_LT(plan_.admitted.size(), waiting_.size());
  const int32_t wanted = waiting_[plan_.admitted.size()].request.adapter;
  ASSERT_NE(wanted, 0);
  ASSERT_FALSE(adapters.contains(wanted));
  ASSERT_EQ(std::ssize(adapters), limits_.max_adapters);
  ASSERT_FALSE(plan_.starved);
}

// The same plan without wishes, with its drafts taken away, is the plan: a draft changes nothing
// for anybody. With rows and blocks left every wish is granted.
void SchedWorld::check_drafts() const {
  std::vector<SchedRunning> running(view_.running.begin(), view_.running.end());
  for (SchedRunning& one : running) one.num_wished = 0;
  SchedView view = view_;
  view.running = running;
  PlanScratch scratch;
  StepPlan plain;
  plan_step(view, limits_, scratch, plain);
  ASSERT_EQ(plain.preempted, plan_.preempted);
  ASSERT_EQ(plain.admitted, plan_.admitted);
  ASSERT_EQ(plain.starved, plan_.starved);
  ASSERT_EQ(plain.lacks_blocks, plan_.lacks_blocks);
  ASSERT_EQ(plain.slices.size(), plan_.slices.size());
  int64_t rows = 0;
  for (size_t i = 0; i < plan_.slices.size(); ++i) {
    PlannedSlice slice = plan_.slices[i];
    rows += slice.count;
    slice.count -= std::exchange(slice.num_drafted, 0);
    ASSERT_EQ(slice, plain.slices[i]);
  }
  if (!plan_.preempted.empty() || plan_.lacks_blocks) {
    for (const PlannedSlice& slice : plan_.slices) ASSERT_EQ(slice.num_drafted, 0);
    return;
  }
  const bool has_blocks = std::all_of(free_.begin(), free_.end(), [this](const auto& free) {
    return std::ssize(free) >= 25 * (std::ssize(running_) + std::ssize(plan_.admitted));
  });
  if (!has_blocks || rows >= std::min(limits_.max_rows, limits_.max_rows_beside_decode)) return;
  for (const PlannedSlice& slice : plan_.slices) {
    if (slice.sequence >= std::ssize(running_)) continue;
    const Sequence& one = running_[static_cast<size_t>(slice.sequence)];
    ASSERT_EQ(slice.num_drafted,
              std::min(wished_by(one), limits_.max_slice - slice.count + slice.num_drafted))
        << "rows and blocks are left, a wish isn't granted";
  }
}

// Whether all running sequences, which decode, find blocks for as many of these steps as they have
// tokens left.
bool SchedWorld::has_blocks_for(int64_t num_steps) const {
  for (size_t g = 0; g < groups_.size(); ++g) {
    int64_t missing = 0;
    for (const Sequence& one : running_) {
      const int64_t taken = std::min(num_steps, one.request.output - one.drawn);
      const int64_t slots = one.length() + taken - 1;
      const int64_t blocks = (slots + limits_.block_size - 1) / limits_.block_size;
      missing += std::max<int64_t>(0, blocks - std::ssize(one.groups[g].table));
    }
    if (missing > num_free(g)) return false;
  }
  return true;
}

// A plan for several steps is that for one, where nothing else could come between them, and has
// blocks for all of them.
void SchedWorld::check_steps() const {
  ASSERT_EQ(plan_.num_steps, 1);
  std::vector<SchedRunning> running(view_.running.begin(), view_.running.end());
  for (size_t i = 0; i < running.size(); ++i) {
    running[i].num_run_steps = running_[i].request.output - running_[i].drawn;
  }
  SchedView view = view_;
  view.running = running;
  SchedLimits limits = limits_;
  limits.max_steps = 6;
  PlanScratch scratch;
  StepPlan plan;
  plan_step(view, limits, scratch, plan);
  ASSERT_EQ(plan.preempted, plan_.preempted);
  ASSERT_EQ(plan.admitted, plan_.admitted);
  ASSERT_EQ(plan.slices, plan_.slices);
  const bool is_alone = std::ranges::all_of(plan.slices, [&](const PlannedSlice& slice) {
    return slice.count == 1 && slice.sequence < std::ssize(running_) &&
           slice.first + 1 == running_[static_cast<size_t>(slice.sequence)].length();
  });
  const bool may_run = is_alone && !plan.slices.empty() && plan.slices.size() == running_.size() &&
                       plan.admitted.empty() && plan.preempted.empty() &&
                       (waiting_.empty() || plan.lacks_blocks || plan.lacks_adapters);
  if (!may_run) {
    ASSERT_EQ(plan.num_steps, 1);
    return;
  }
  int64_t longest = 0;
  for (const SchedRunning& one : running) longest = std::max(longest, one.num_run_steps);
  const int64_t most = std::min(limits.max_steps, longest);
  ASSERT_LE(plan.num_steps, most);
  ASSERT_TRUE(has_blocks_for(plan.num_steps));
  if (plan.num_steps < most) {
    ASSERT_FALSE(has_blocks_for(2 * plan.num_steps + 1));
  }
  num_runs_ += plan.num_steps > 1 ? 1 : 0;
}

void SchedWorld::give_back(Sequence& sequence) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const int32_t block : sequence.groups[g].table) {
      if (block < 0) continue;
      --references_[g][static_cast<size_t>(block)];
      free_[g].push_back(block);
    }
    sequence.groups[g] = {};
  }
  sequence.computed = 0;
}

void SchedWorld::grow(Held& held, size_t group, int64_t length) {
  while (static_cast<int64_t>(held.table.size()) < blocks_of(length, limits_.block_size)) {
    ASSERT_FALSE(free_[group].empty()) << "the plan promised a block that isn't there";
    const int32_t block = free_[group].back();
    free_[group].pop_back();
    ++references_[group][static_cast<size_t>(block)];
    held.table.push_back(block);
  }
  held.length = std::max(held.length, length);
}

// Gives back the slots behind the computed ones.
void SchedWorld::truncate(Sequence& sequence) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    Held& held = sequence.groups[g];
    held.length = std::min(held.length, sequence.computed);
    while (static_cast<int64_t>(held.table.size()) > blocks_of(held.length, limits_.block_size)) {
      const int32_t block = held.table.back();
      held.table.pop_back();
      --references_[g][static_cast<size_t>(block)];
      free_[g].push_back(block);
    }
  }
}

void SchedWorld::finish_slice(Sequence& sequence, const PlannedSlice& slice) {
  const bool draws = sequence.computed + slice.count - slice.num_drafted == sequence.length();
  const int64_t accepted = slice.num_drafted > 0 ? accepted_(slice.num_drafted) : 0;
  ASSERT_LE(accepted, slice.num_drafted);
  sequence.computed += slice.count - slice.num_drafted + accepted;
  num_drafted_ += slice.num_drafted;
  if (slice.num_drafted > 0) truncate(sequence);
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].window == 0) continue;
    Held& held = sequence.groups[g];
    const int64_t seen = std::max<int64_t>(0, sequence.computed - groups_[g].window + 1);
    for (; held.first_kept < seen / limits_.block_size; ++held.first_kept) {
      int32_t& block = held.table[static_cast<size_t>(held.first_kept)];
      --references_[g][static_cast<size_t>(block)];
      free_[g].push_back(block);
      block = -1;
    }
  }
  if (draws) sequence.drawn += 1 + accepted;
}

void SchedWorld::carry_out() {
  const size_t num_running = running_.size();
  std::vector<Sequence> admitted;
  for (const PlannedAdmission& one : plan_.admitted) {
    admitted.push_back(waiting_[static_cast<size_t>(one.waiting)]);
  }
  for (const Sequence& one : admitted) {
    std::erase_if(waiting_, [&](const Sequence& other) {
      return other.request.arrival_id == one.request.arrival_id;
    });
  }
  std::vector<Sequence> evicted;
  for (const int32_t index : plan_.preempted) {
    Sequence& victim = running_[static_cast<size_t>(index)];
    preempted_now_.push_back(victim.request.arrival_id);
    give_back(victim);
    victim.waiting_since = step_;
    evicted.push_back(victim);
  }
  for (const PlannedSlice& slice : plan_.slices) {
    const auto index = static_cast<size_t>(slice.sequence);
    Sequence& one = index < num_running ? running_[index] : admitted[index - num_running];
    for (size_t g = 0; g < groups_.size(); ++g) {
      grow(one.groups[g], g,
           groups_[g].window == 0 ? one.length() + slice.num_drafted : slice.first + slice.count);
    }
  }
  for (const PlannedSlice& slice : plan_.slices) {
    const auto index = static_cast<size_t>(slice.sequence);
    finish_slice(index < num_running ? running_[index] : admitted[index - num_running], slice);
    num_rows_now_ += slice.count;
  }
  for (Sequence& one : admitted) running_.push_back(std::move(one));
  for (const Sequence& one : evicted) {
    std::erase_if(running_, [&](const Sequence& other) {
      return other.request.arrival_id == one.request.arrival_id;
    });
    enqueue(one);
  }
  for (size_t i = 0; i < running_.size();) {
    if (running_[i].drawn < running_[i].request.output) {
      ++i;
      continue;
    }
    finished_.push_back(running_[i].request.arrival_id);
    give_back(running_[i]);
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::sort(running_.begin(), running_.end(), [](const Sequence& a, const Sequence& b) {
    if (a.request.priority != b.request.priority) return a.request.priority < b.request.priority;
    return a.request.arrival_id < b.request.arrival_id;
  });
}

void SchedWorld::check_blocks() const {
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<int32_t> held(references_[g].size(), 0);
    for (const auto* queue : {&running_, &waiting_}) {
      for (const Sequence& one : *queue) {
        for (const int32_t block : one.groups[g].table) {
          if (block >= 0) ++held[static_cast<size_t>(block)];
        }
      }
    }
    int64_t num_held = 0;
    for (const int32_t count : held) {
      ASSERT_LE(count, 1);
      num_held += count;
    }
    ASSERT_EQ(num_held + num_free(g), groups_[g].num_blocks) << "blocks are conserved";
  }
}

bool SchedWorld::step() {
  preempted_now_.clear();
  num_rows_now_ = 0;
  if (running_.empty() && waiting_.empty()) return false;
  build_view();
  plan_step(view_, limits_, scratch_, plan_);
  check_plan();
  carry_out();
  check_blocks();
  ++step_;
  return !running_.empty() || !waiting_.empty();
}

}  // namespace paceline::testing
