// EngineCore implements Engine: the state of all requests and the parts of a step.
#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "base/time_source.h"
#include "engine/constraint_worker.h"
#include "engine/decode_run.h"
#include "engine/engine.h"
#include "engine/mailbox.h"
#include "engine/pooling_step.h"
#include "engine/queue_limit.h"
#include "engine/row_draws.h"
#include "engine/sequence.h"
#include "engine/speculation.h"
#include "engine/step_batch.h"
#include "engine/step_budget.h"
#include "engine/step_record.h"
#include "engine/step_view.h"
#include "kv/kv_cache.h"
#include "runner/runner.h"
#include "sampling/sampler.h"
#include "sched/plan_step.h"

namespace paceline {

// Engine's public members, and the parts of step(). Its sources: engine_core.cc (the step),
// intake.cc (requests come and go), commit.cc (results).
class EngineCore {
 public:
  EngineCore(const Engine& engine, Runner& runner, Memory& memory, KvCache& cache,
             EngineLimits limits, TokenTexts token_texts, Drafter* drafter);
  ~EngineCore();

  // As Engine's.
  std::optional<RequestId> submit(GenerateRequest request, std::shared_ptr<Channel> channel,
                                  int64_t tag);
  bool step();
  const std::string& lost_device() const { return lost_device_; }
  void end_all();
  void check(GenerateRequest& request) const;
  std::string_view token_bytes(TokenId id, SpecialTokens specials) const;
  void check_integrity() const;

  Mailbox& mailbox() { return mailbox_; }
  const EngineLimits& limits() const { return limits_; }
  int64_t vocab_size() const { return runner_.vocab_size(); }
  int64_t num_running() const { return num_running_.load(std::memory_order_relaxed); }
  int64_t num_waiting() const { return num_waiting_.load(std::memory_order_relaxed); }
  const QueueLimit& queue() const { return queue_; }
  const KvCache& cache() const { return cache_; }
  std::span<const std::unique_ptr<Sequence>> running() const { return running_; }
  std::span<const std::unique_ptr<Sequence>> waiting() const { return waiting_; }
  const EngineCounters& counters() const { return counters_; }
  void set_observer(StepObserver* observer) { observer_ = observer; }

 private:
  using SequencePtr = std::unique_ptr<Sequence>;
  static bool is_served_before(const SequencePtr& a, const SequencePtr& b) {
    return a->is_served_before(*b);
  }

  // In the order of the step.
  void take_in();
  void enqueue(SequencePtr sequence);
  void cancel_request(RequestId id);
  void end_cancelled();
  void change(Deferral deferral);
  void give_way();

  void decide();

  void draft();

  void apply();
  void preempt(size_t index);
  void admit(const PlannedAdmission& admission);
  void save_states();
  void keep_state(Sequence& sequence);
  bool drop_oldest_hold();
  void fail_starved_sequence();

  void build_batch();
  void order_slices();
  void compute();
  void go_on_running();
  bool could_admit();
  void take_run_step(bool ends);
  void end_run();
  void fail_batch(ErrorCode code, const std::string& message);

  void commit();
  void draw_rows();
  bool may_draw(const StepOutput& output);
  void add_draw(const StepOutput& output);
  void commit_slice(const StepSlice& slice);
  void commit_run(std::span<const DecodedToken> tokens);
  void keep_rows(Sequence& sequence, int64_t first_row, int64_t count);
  void keep_rows(Sequence& sequence, std::span<const uint8_t> finite);
  void commit_rows();
  void commit_logits(int64_t first, int64_t count);
  void commit_row(const StepOutput& output, LogitsRow& row, int64_t row_index);
  bool takes_row(const StepOutput& output);
  void commit_columns();
  void commit_pooled();
  void settle_drafts();
  void score(const StepOutput& output, const LogitsRow& row);
  void commit_last_row(Sequence& sequence, const LogitsRow& row);
  void fork_choices(Sequence& sequence);
  void draw(Sequence& sequence, const LogitsRow& row);
  void commit_sample(Sequence& sequence, Sample sample);
  const TokenRule* rule_of(Sequence& sequence);
  Sample constrained_sample(Sequence& sequence, const LogitsRow& row);
  void fail_draw(Sequence& sequence, SampleStatus status);
  Sample next_sample(Sequence& sequence, const LogitsRow& row);
  void accept(Sequence& sequence, TokenEvent& event);
  bool follow_constraint(Sequence& sequence, TokenEvent& event);

  void retire(Sequence& sequence, const Finish& finish);
  void fail(Sequence& sequence, ErrorInfo error);
  void end(Sequence& sequence, TokenEvent&& event, const Finish& finish);
  void post(const Sequence& sequence, TokenEvent&& event);

  void publish();
  void remove_finished();
  void record_step();
  void show_record();

  const Engine& engine_;  // for inspections
  Runner& runner_;
  KvCache& cache_;
  EngineLimits limits_;
  TokenTexts token_texts_;
  Sampler sampler_;
  Distribution distribution_;  // of a drafted token's row
  PoolingStep pooling_;
  Mailbox mailbox_;

  std::atomic<RequestId> next_id_ = 1;
  std::atomic<int64_t> num_running_ = 0;
  std::atomic<int64_t> num_waiting_ = 0;
  QueueLimit queue_;  // submitted and not yet admitted

  // What follows belongs to the thread that steps, and is reused from step to step.
  std::vector<SequencePtr> running_;                         // in the order is_served_before
  std::vector<SequencePtr> waiting_;                         // likewise
  std::vector<SequencePtr> forked_;                          // choices that join after this step
  std::vector<std::pair<RequestId, SequenceBlocks>> holds_;  // oldest first
  Mail mail_;
  StepView view_;
  SchedLimits plan_limits_;
  PlanScratch scratch_;
  StepPlan plan_;
  StepPlan plan_without_run_;  // of could_admit()
  std::vector<SequencePtr> admitted_;
  std::vector<int32_t> slice_order_;  // indices of the plan's slices, as the batch has them
  StepBatch batch_;
  RowDraws row_draws_;                  // of the step's outputs that the runner draws from
  std::vector<int64_t> drawn_outputs_;  // which these are, ascending
  std::vector<Sample> samples_;         // what it drew
  StepBudget budget_;
  Speculation speculation_;
  DecodeRun run_;
  int64_t num_decodes_ = 0;  // in the step
  std::string lost_device_;
  ConstraintWorker constraint_worker_;
  std::vector<std::shared_ptr<Channel>> touched_;  // channels with new events
  Clock::time_point computed_at_;                  // when the step's forward ended
  const Clock::time_point created_ = Clock::now();
  Clock::time_point step_began_;
  StepRecord record_;
  StepObserver* observer_ = nullptr;
  EngineCounters counters_;
};

}  // namespace paceline
