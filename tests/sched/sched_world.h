// SchedWorld carries out plans on a naive model of sequences and blocks, and checks each plan.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "sched/plan_step.h"

namespace paceline::testing {

struct WorldRequest {
  int64_t arrival_id = 0;
  int32_t priority = 0;
  int64_t prompt = 1;     // tokens
  int64_t output = 1;     // tokens until it ends
  int64_t wished = 0;     // drafted tokens that it would like while it decodes
  int32_t adapter = 0;    // 0: none
  bool is_whole = false;  // its prompt is computed in one step
};

struct WorldGroup {
  int64_t window = 0;
  int64_t num_blocks = 0;
};

class SchedWorld {
 public:
  SchedWorld(SchedLimits limits, std::vector<WorldGroup> groups);

  void submit(const WorldRequest& request);
  void cancel(int64_t arrival_id);
  // Whether the request would fit alone; submission refuses others.
  bool fits_alone(const WorldRequest& request) const;

  // Plans, checks the plan against the rules, carries it out. False when nothing is left.
  bool step();

  const StepPlan& plan() const { return plan_; }
  int64_t step_number() const { return step_; }
  // Arrival ids, in order of their events.
  const std::vector<int64_t>& finished() const { return finished_; }
  std::vector<int64_t> preempted_now() const { return preempted_now_; }
  std::vector<int64_t> running_ids() const;
  std::vector<int64_t> waiting_ids() const;
  int64_t num_free(size_t group) const { return static_cast<int64_t>(free_[group].size()); }
  int64_t num_rows_now() const { return num_rows_now_; }
  // How many of a step's drafted tokens are accepted: at most this many.
  void set_accepted(std::function<int64_t(int64_t num_drafted)> accepted) {
    accepted_ = std::move(accepted);
  }
  int64_t num_drafted() const { return num_drafted_; }  // in all steps
  int64_t num_runs() const { return num_runs_; }        // plans that could be for several steps

 private:
  struct Held {
    std::vector<int32_t> table;
    int64_t first_kept = 0;
    int64_t length = 0;
  };
  struct Sequence {
    WorldRequest request;
    int64_t drawn = 0;
    int64_t computed = 0;
    int64_t waiting_since = 0;
    std::vector<Held> groups;

    int64_t length() const { return request.prompt + drawn; }
  };

  void build_view();
  void order_queue();
  void check_plan() const;
  void check_admissions() const;
  void check_drafts() const;
  void check_steps() const;
  bool has_blocks_for(int64_t num_steps) const;
  int64_t wished_by(const Sequence& one) const;
  void give_back(Sequence& sequence);
  void grow(Held& held, size_t group, int64_t length);
  void carry_out();
  void finish_slice(Sequence& sequence, const PlannedSlice& slice);
  void truncate(Sequence& sequence);
  void enqueue(Sequence sequence);
  void check_blocks() const;

  SchedLimits limits_;
  std::vector<WorldGroup> groups_;
  std::vector<std::vector<int32_t>> free_;        // per group
  std::vector<std::vector<int32_t>> references_;  // per group, by block
  std::vector<Sequence> running_, waiting_;
  int64_t step_ = 0;
  int64_t num_rows_now_ = 0;
  int64_t num_drafted_ = 0;
  mutable int64_t num_runs_ = 0;
  std::function<int64_t(int64_t)> accepted_ = [](int64_t num_drafted) { return num_drafted; };
  std::vector<int64_t> finished_, preempted_now_;
  SchedView view_;
  std::vector<SchedGroup> group_views_;
  std::vector<SchedBlocks> block_views_;
  std::vector<SchedRunning> running_views_;
  std::vector<SchedWaiting> waiting_views_;
  std::vector<int64_t> none_revived_;
  PlanScratch scratch_;
  StepPlan plan_;
};

}  // namespace paceline::testing
