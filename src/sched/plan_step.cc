#include "sched/plan_step.h"

#include <algorithm>

#include "base/divide_up.h"
#include "base/error.h"

namespace paceline {
namespace {

// A state's block has room for any number of positions.
constexpr int64_t kWholeSequence = int64_t{1} << 62;

class Planner {
 public:
  Planner(const SchedView& view, const SchedLimits& limits, PlanScratch& scratch, StepPlan& plan)
      : view_(view), limits_(limits), scratch_(scratch), plan_(plan) {}

  void run();

 private:
  int64_t num_uncomputed(const SchedRunning& one) const {
    return one.num_tokens - one.num_computed;
  }
  bool decodes(const SchedRunning& one) const { return num_uncomputed(one) == 1; }
  // The slots a group must have for a slice that ends at `slice_end`.
  int64_t length_in(size_t group, int64_t num_tokens, int64_t slice_end) const {
    return view_.groups[group].window == 0 ? num_tokens : slice_end;
  }

  int64_t block_size(size_t group) const {
    return view_.groups[group].is_recurrent ? kWholeSequence : limits_.block_size;
  }

  SchedBlocks held_by(const SchedRunning& one, size_t group) const;
  void reset_free();
  bool schedule_running();
  int64_t prefill_budget(int64_t num_decodes) const;
  int64_t fitting_count(const SchedRunning& one, int64_t count) const;
  void take_blocks(const SchedRunning& one, int64_t count);
  int32_t choose_victim() const;
  void preempt(int32_t victim);
  void admit();
  bool takes_adapter(int32_t adapter, int64_t most);
  int64_t admissible_count(const SchedWaiting& one, int64_t budget);
  void grant_drafts();
  bool grant_row(PlannedSlice& slice);
  bool may_repeat() const;
  bool has_blocks_for(int64_t num_steps) const;
  void grant_steps();

  const SchedView& view_;
  const SchedLimits& limits_;
  PlanScratch& scratch_;
  StepPlan& plan_;
  size_t num_decodes_ = 0;  // the first slices
  int64_t rows_left_ = 0;   // for prefills, then for drafts
};

void Planner::reset_free() {
  scratch_.num_free.clear();
  scratch_.copies.clear();
  for (const SchedGroup& group : view_.groups) scratch_.num_free.push_back(group.num_free);
}

// The blocks it needs after the victims so far have released theirs, and the sequences planned so
// far have made their copies: a last block that it shared with these only needs no copy any more.
SchedBlocks Planner::held_by(const SchedRunning& one, size_t group) const {
  SchedBlocks held = one.groups[group];
  if (!held.copies_last || held.is_published) return held;
  const int32_t block = held.table.back();
  const auto last = static_cast<size_t>(block);
  int64_t holders = plan_.preempted.empty() ? view_.groups[group].reference_counts[last]
                                            : scratch_.reference_counts[group][last];
  holders -= std::ranges::count(scratch_.copies, std::pair{group, block});
  held.copies_last = holders > 1;
  return held;
}

// Rows that prefills may have in this step.
int64_t Planner::prefill_budget(int64_t num_decodes) const {
  if (num_decodes == 0) return limits_.max_rows;
  const int64_t beside =
      std::max(limits_.max_rows_beside_decode - num_decodes, limits_.min_prefill_beside_decode);
  return std::max<int64_t>(0, std::min(beside, limits_.max_rows - num_decodes));
}

// At most `count` rows, as many as the free blocks allow; 0 when not even one.
int64_t Planner::fitting_count(const SchedRunning& one, int64_t count) const {
  for (size_t g = 0; g < view_.groups.size(); ++g) {
    const int64_t available = scratch_.num_free[g];
    const SchedBlocks held = held_by(one, g);
    const int64_t length = length_in(g, one.num_tokens, one.num_computed + count);
    if (blocks_to_grow(held, length, block_size(g)) <= available) continue;
    if (view_.groups[g].window == 0) return 0;
    const int64_t room =
        static_cast<int64_t>(held.table.size()) + available - (held.copies_last ? 1 : 0);
    count = std::min(count, room * block_size(g) - one.num_computed);
    if (count <= 0) return 0;
  }
  return count;
}

void Planner::take_blocks(const SchedRunning& one, int64_t count) {
  for (size_t g = 0; g < view_.groups.size(); ++g) {
    const int64_t length = length_in(g, one.num_tokens, one.num_computed + count);
    const SchedBlocks held = held_by(one, g);
    scratch_.num_free[g] -= blocks_to_grow(held, length, block_size(g));
    if (held.copies_last && length > held.length) {
      scratch_.copies.emplace_back(g, held.table.back());
    }
  }
}

// Slices for all candidates; false when one of them can't have its next row.
bool Planner::schedule_running() {
  plan_.slices.clear();
  const auto take = [this](int32_t index, int64_t count) {
    const SchedRunning& one = view_.running[static_cast<size_t>(index)];
    take_blocks(one, count);
    plan_.slices.push_back({.sequence = index, .first = one.num_computed, .count = count});
  };
  for (const int32_t index : scratch_.candidates) {
    const SchedRunning& one = view_.running[static_cast<size_t>(index)];
    if (!decodes(one)) continue;
    if (fitting_count(one, 1) == 0) return false;
    take(index, 1);
  }
  num_decodes_ = plan_.slices.size();
  rows_left_ = prefill_budget(static_cast<int64_t>(num_decodes_));
  for (const int32_t index : scratch_.candidates) {
    const SchedRunning& one = view_.running[static_cast<size_t>(index)];
    if (decodes(one)) continue;
    const int64_t wanted = std::min({num_uncomputed(one), rows_left_, limits_.max_slice});
    if (wanted == 0) continue;
    const int64_t count = fitting_count(one, wanted);
    if (count == 0) return false;
    take(index, count);
    rows_left_ -= count;
  }
  return true;
}

int32_t Planner::choose_victim() const {
  const auto goes_first = [](const SchedRunning& a, const SchedRunning& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.num_output != b.num_output) return a.num_output < b.num_output;
    return a.arrival_id > b.arrival_id;
  };
  int32_t victim = scratch_.candidates.front();
  for (const int32_t index : scratch_.candidates) {
    if (goes_first(view_.running[static_cast<size_t>(index)],
                   view_.running[static_cast<size_t>(victim)])) {
      victim = index;
    }
  }
  return victim;
}

// Frees its blocks that have no other holder; blocks shared with earlier victims count here.
void Planner::preempt(int32_t victim) {
  scratch_.reference_counts.resize(view_.groups.size());
  if (plan_.preempted.empty()) {
    for (size_t g = 0; g < view_.groups.size(); ++g) {
      const auto counts = view_.groups[g].reference_counts;
      scratch_.reference_counts[g].assign(counts.begin(), counts.end());
    }
  }
  reset_free();
  plan_.preempted.push_back(victim);
  std::erase(scratch_.candidates, victim);
  for (size_t g = 0; g < view_.groups.size(); ++g) {
    auto& counts = scratch_.reference_counts[g];
    for (const int32_t block : view_.running[static_cast<size_t>(victim)].groups[g].table) {
      if (block >= 0) --counts[static_cast<size_t>(block)];
    }
    // The victims' blocks without another holder, each counted once.
    for (size_t b = 0; b < counts.size(); ++b) {
      if (counts[b] == 0 && view_.groups[g].reference_counts[b] > 0) ++scratch_.num_free[g];
    }
  }
}

// Rows of its first slice when it is admitted now, its blocks taken; 0 when it has to wait for
// blocks.
int64_t Planner::admissible_count(const SchedWaiting& one, int64_t budget) {
  const int64_t missing = one.num_tokens - one.prefix_length;
  int64_t count = one.is_whole ? missing : std::min({missing, budget, limits_.max_slice});
  const auto needed = [&](size_t g, int64_t slice_end) {
    const int64_t length = length_in(g, one.num_tokens, slice_end);
    const int64_t size = block_size(g);
    return divide_up(length, size) - one.prefix_length / size + one.prefix_revived[g];
  };
  for (size_t g = 0; g < view_.groups.size(); ++g) {
    const int64_t available = scratch_.num_free[g];
    if (needed(g, one.prefix_length + count) <= available) continue;
    if (view_.groups[g].window == 0 || one.is_whole) return 0;
    count = std::min(count, (available - one.prefix_revived[g]) * block_size(g));
    if (count <= 0) return 0;
  }
  for (size_t g = 0; g < view_.groups.size(); ++g) {
    scratch_.num_free[g] -= needed(g, one.prefix_length + count);
  }
  return count;
}

// Counts it among the step's adapters; false where it would be more than `most`.
bool Planner::takes_adapter(int32_t adapter, int64_t most) {
  auto& adapters = scratch_.adapters;
  if (adapter == 0 || std::ranges::find(adapters, adapter) != adapters.end()) return true;
  if (std::ssize(adapters) >= most) return false;
  adapters.push_back(adapter);
  return true;
}

void Planner::admit() {
  auto num_running = std::ssize(scratch_.candidates);
  scratch_.adapters.clear();
  for (const int32_t index : scratch_.candidates) {
    takes_adapter(view_.running[static_cast<size_t>(index)].adapter, num_running);
  }
  for (size_t i = 0; i < view_.waiting.size(); ++i) {
    if (num_running >= limits_.max_sequences || rows_left_ <= 0) return;
    const SchedWaiting& one = view_.waiting[i];
    // Only a sequence that computes can bring the prefix.
    if (one.prefix_is_coming && num_running > 0) return;
    if (!takes_adapter(one.adapter, limits_.max_adapters)) {
      plan_.lacks_adapters = true;
      return;
    }
    if (one.is_whole && one.num_tokens > rows_left_) return;
    const int64_t count = admissible_count(one, rows_left_);
    if (count == 0) {
      plan_.starved = num_running == 0;
      plan_.lacks_blocks = true;
      return;
    }
    const auto slot = static_cast<int32_t>(view_.running.size() + plan_.admitted.size());
    plan_.admitted.push_back(
        {.waiting = static_cast<int32_t>(i), .prefix_length = one.prefix_length});
    plan_.slices.push_back({.sequence = slot, .first = one.prefix_length, .count = count});
    rows_left_ -= count;
    ++num_running;
  }
}

// Adds one drafted row to the slice. Returns false when rows or blocks are short.
bool Planner::grant_row(PlannedSlice& slice) {
  const SchedRunning& one = view_.running[static_cast<size_t>(slice.sequence)];
  if (slice.count >= limits_.max_slice) return false;
  const int64_t end = slice.first + slice.count;
  const auto num_new = [&](size_t g) {
    const SchedBlocks& held = one.groups[g];
    const int64_t size = block_size(g);
    return blocks_to_grow(held, end + 1, size) - blocks_to_grow(held, end, size);
  };
  for (size_t g = 0; g < view_.groups.size(); ++g) {
    if (num_new(g) > scratch_.num_free[g]) return false;
  }
  for (size_t g = 0; g < view_.groups.size(); ++g) scratch_.num_free[g] -= num_new(g);
  ++slice.count;
  ++slice.num_drafted;
  --rows_left_;
  return true;
}

void Planner::grant_drafts() {
  if (!plan_.preempted.empty() || plan_.lacks_blocks) return;
  auto& wished = scratch_.num_wished;
  wished.clear();
  for (size_t i = 0; i < num_decodes_; ++i) {
    wished.push_back(view_.running[static_cast<size_t>(plan_.slices[i].sequence)].num_wished);
  }
  // The first tokens of a draft are accepted most often: everybody's first one goes first.
  for (bool granted = true; granted && rows_left_ > 0;) {
    granted = false;
    for (size_t i = 0; i < num_decodes_ && rows_left_ > 0; ++i) {
      PlannedSlice& slice = plan_.slices[i];
      if (slice.num_drafted >= wished[i]) continue;
      if (grant_row(slice)) {
        granted = true;
      } else {
        wished[i] = slice.num_drafted;
      }
    }
  }
}

// Whether the step's slices are all that the next steps will have.
bool Planner::may_repeat() const {
  if (limits_.max_steps <= 1 || plan_.slices.empty()) return false;
  if (!plan_.preempted.empty() || !plan_.admitted.empty()) return false;
  if (!view_.waiting.empty() && !plan_.lacks_blocks && !plan_.lacks_adapters) return false;
  if (plan_.slices.size() != view_.running.size() || num_decodes_ != view_.running.size()) {
    return false;
  }
  return std::all_of(plan_.slices.begin(), plan_.slices.end(), [this](const PlannedSlice& slice) {
    const SchedRunning& one = view_.running[static_cast<size_t>(slice.sequence)];
    return slice.num_drafted == 0 && one.num_run_steps > 0;
  });
}

bool Planner::has_blocks_for(int64_t num_steps) const {
  for (size_t g = 0; g < view_.groups.size(); ++g) {
    int64_t needed = 0;
    for (const SchedRunning& one : view_.running) {
      const int64_t first = one.num_computed + 1;
      const int64_t last = one.num_computed + std::min(num_steps, one.num_run_steps);
      needed += blocks_to_grow(one.groups[g], last, block_size(g)) -
                blocks_to_grow(one.groups[g], first, block_size(g));
    }
    if (needed > scratch_.num_free[g]) return false;
  }
  return true;
}

void Planner::grant_steps() {
  if (!may_repeat()) return;
  int64_t longest = 0;
  for (const SchedRunning& one : view_.running) longest = std::max(longest, one.num_run_steps);
  plan_.num_steps = std::min(limits_.max_steps, longest);
  while (plan_.num_steps > 1 && !has_blocks_for(plan_.num_steps)) plan_.num_steps /= 2;
}

void Planner::run() {
  PL_CHECK(limits_.max_rows > 0 && limits_.max_slice > 0 && limits_.max_sequences > 0 &&
               limits_.max_adapters > 0,
           "a step has room for a row");
  for (const SchedWaiting& one : view_.waiting) {
    PL_CHECK(!one.is_whole || (one.prefix_length == 0 && one.num_tokens <= limits_.max_rows),
             "a whole sequence fits a step, and has no prefix");
  }
  scratch_.candidates.clear();
  for (size_t i = 0; i < view_.running.size(); ++i) {
    scratch_.candidates.push_back(static_cast<int32_t>(i));
  }
  reset_free();
  while (!schedule_running()) {
    if (scratch_.candidates.size() == 1) {
      plan_.slices.clear();
      plan_.starved = true;
      return;
    }
    preempt(choose_victim());
  }
  if (plan_.preempted.empty()) admit();
  grant_drafts();
  grant_steps();
}

}  // namespace

int64_t blocks_to_grow(const SchedBlocks& held, int64_t length, int64_t block_size) {
  if (length <= held.length) return 0;
  const int64_t more = divide_up(length, block_size) - static_cast<int64_t>(held.table.size());
  return std::max<int64_t>(0, more) + (held.copies_last ? 1 : 0);
}

void order_waiting(std::span<const SchedWaiting> waiting, int64_t step, int64_t aging_steps,
                   std::vector<int32_t>& order) {
  order.clear();
  for (size_t i = 0; i < waiting.size(); ++i) order.push_back(static_cast<int32_t>(i));
  if (waiting.empty() || waiting.front().priority == waiting.back().priority) return;
  const int64_t first_class = waiting.front().priority;
  const auto rank = [&](const SchedWaiting& one) {
    return std::max(first_class, one.priority - (step - one.waiting_since) / aging_steps);
  };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const SchedWaiting& first = waiting[static_cast<size_t>(a)];
    const SchedWaiting& second = waiting[static_cast<size_t>(b)];
    if (rank(first) != rank(second)) return rank(first) < rank(second);
    return first.arrival_id < second.arrival_id;
  });
}

void StepPlan::clear() {
  preempted.clear();
  admitted.clear();
  slices.clear();
  num_steps = 1;
  starved = false;
  lacks_blocks = false;
  lacks_adapters = false;
}

void plan_step(const SchedView& view, const SchedLimits& limits, PlanScratch& scratch,
               StepPlan& plan) {
  plan.clear();
  Planner(view, limits, scratch, plan).run();
}

}  // namespace paceline
