// plan_step decides what one step computes: a pure function from a view of all sequences to a plan.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace paceline {

// A cache group as the policy sees it. Layers with one attention window share a group.
struct SchedGroup {
  int64_t window = 0;                         // 0: blocks are held to the end
  bool is_recurrent = false;                  // a block is a whole sequence's
  int64_t num_free = 0;                       // blocks to acquire now, cached ones included
  std::span<const int32_t> reference_counts;  // by block
};

// What a running sequence holds in one group.
struct SchedBlocks {
  std::span<const int32_t> table;  // block ids; negative where the window has passed
  int64_t length = 0;              // reserved token slots
  bool copies_last = false;        // growing into the last block's slack costs one block more
  bool is_published = false;       // it does whether or not others hold that block
};

struct SchedRunning {
  int64_t arrival_id = 0;
  int32_t priority = 0;  // class; smaller is served first
  int64_t num_tokens = 0;
  int64_t num_computed = 0;  // tokens whose keys and values are in the cache
  int64_t num_output = 0;    // tokens it has drawn
  int64_t num_wished = 0;  // drafted tokens that it would like to have checked; 0 unless it decodes
  // Steps that it could take without a plan in between while it decodes; 0: it needs one for each.
  int64_t num_run_steps = 0;
  int32_t adapter = 0;  // a number of this view; 0: none
  std::span<const SchedBlocks> groups;
};

struct SchedWaiting {
  int64_t arrival_id = 0;
  int32_t priority = 0;
  int64_t waiting_since = 0;  // step
  int64_t num_tokens = 0;
  // Its tokens are computed in one step: it is admitted with all of them, whatever max_slice is, or
  // waits. It has no prefix.
  bool is_whole = false;
  int32_t adapter = 0;
  int64_t prefix_length = 0;                // tokens it would find in the cache, below num_tokens
  std::span<const int64_t> prefix_revived;  // per group: their blocks that count as free now
  // A sequence that runs, or is served earlier, computes more of this prefix than the cache has:
  // waiting for it saves that work.
  bool prefix_is_coming = false;
};

struct SchedLimits {
  int64_t block_size = 16;
  int64_t max_sequences = 256;
  int64_t max_adapters = 256;             // of the sequences computed at once, different ones
  int64_t max_rows = 512;                 // of a step in which nothing decodes
  int64_t max_rows_beside_decode = 512;   // of a step with a decoding sequence
  int64_t min_prefill_beside_decode = 1;  // of these, the prefill rows that are guaranteed
  int64_t max_slice = 512;                // rows of one sequence
  int64_t max_steps = 1;                  // of a plan, where nothing comes between them
  int64_t aging_steps = 1000;             // of waiting that raise a sequence by one class
};

// `running` is in the order (priority, arrival id), `waiting` in the order in which it is served
// (order_waiting): a sequence may reuse a prefix of one that is served earlier.
struct SchedView {
  int64_t step = 0;
  std::span<const SchedGroup> groups;
  std::span<const SchedRunning> running;
  std::span<const SchedWaiting> waiting;
};

// `count` tokens of a sequence from its first uncomputed one on: of running[sequence], or of
// admitted[sequence - running.size()]. The last `num_drafted` of them are drafted tokens.
struct PlannedSlice {
  int32_t sequence = 0;
  int64_t first = 0;
  int64_t count = 0;
  int64_t num_drafted = 0;
  bool operator==(const PlannedSlice&) const = default;
};

struct PlannedAdmission {
  int32_t waiting = 0;        // index in the view
  int64_t prefix_length = 0;  // taken from the cache
  bool operator==(const PlannedAdmission&) const = default;
};

// The step's actions, in this order: preempt, admit, then reserve and compute the slices. A group
// without a window reserves all of a sequence's current length and its drafted tokens, a windowed
// one up to the slice's end.
struct StepPlan {
  std::vector<int32_t> preempted;  // indices in running, in the order of eviction
  std::vector<PlannedAdmission> admitted;
  std::vector<PlannedSlice> slices;  // decodes first, then prefills, then admitted ones
  // The plan is one for this many steps of its slices, each of the next token: a sequence reserves
  // as many slots as the steps that it takes of them.
  int64_t num_steps = 1;
  // There is work but too few blocks, and no sequence of the view could release them.
  bool starved = false;
  bool lacks_blocks = false;    // the first waiting sequence that is left needs more than are free
  bool lacks_adapters = false;  // its adapter would be one too many

  bool empty() const { return slices.empty(); }
  void clear();
};

// Scratch that is kept between steps, so that planning allocates nothing.
struct PlanScratch {
  std::vector<int64_t> num_free;                       // per group
  std::vector<int32_t> candidates;                     // running sequences still in
  std::vector<std::vector<int32_t>> reference_counts;  // per group, copied when one is preempted
  std::vector<std::pair<size_t, int32_t>> copies;      // group and block, of the sequences planned
  std::vector<int64_t> num_wished;                     // per slice of a decoding sequence
  std::vector<int32_t> adapters;                       // of the sequences in the step
};

// The policy. Decodes come first and each gets its slot; prefills share what the budget leaves, cut
// into chunks, in order. When blocks run out the least progressed sequence (fewest output tokens,
// ties to the higher id) of the last class is preempted, counting only blocks without other
// holders; the last running one never is. Then, if nothing was preempted, waiting sequences are
// admitted in the order (class risen with waiting, arrival id): each reserves its whole current
// length or nothing, and none overtakes the first one that doesn't fit. One whose adapter would be
// one too many waits likewise, until all sequences of another adapter have ended: those that came
// later wait behind it, so an adapter that is in use can't keep it out. A whole sequence waits
// likewise for a step with enough rows. Drafted tokens get rows and blocks that are left after all
// of this, one row a sequence in turn; none when a sequence was preempted or lacks blocks.
// A plan covers several steps when all sequences decode without drafts, and waiting sequences lack
// blocks or an adapter: max_steps, or a half, a quarter and so on if there are fewer blocks.
void plan_step(const SchedView& view, const SchedLimits& limits, PlanScratch& scratch,
               StepPlan& plan);

// The order in which waiting sequences are served, as indices: (class risen with waiting up to the
// first one present, arrival id). `waiting` is in the order (priority, arrival id).
void order_waiting(std::span<const SchedWaiting> waiting, int64_t step, int64_t aging_steps,
                   std::vector<int32_t>& order);

// Blocks that are missing for `length` reserved slots, of a block size that holds any length in
// groups of states.
int64_t blocks_to_grow(const SchedBlocks& held, int64_t length, int64_t block_size);

}  // namespace paceline
