// Engine computes all requests together, one step of the runner at a time; requests come and go
// between steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/batch_builder.h"
#include "engine/mailbox.h"
#include "engine/queue_limit.h"
#include "engine/request.h"
#include "engine/runner.h"
#include "engine/sequence.h"
#include "engine/step_budget.h"
#include "engine/step_record.h"
#include "engine/step_view.h"
#include "kv/kv_cache.h"
#include "sampling/sampler.h"
#include "sched/plan_step.h"

namespace paceline {

// What a token adds to the output's text; nothing without a tokenizer.
struct TokenText {
  std::string_view bytes = {};
  bool is_special = false;
};
// Of any id of the runner's vocabulary, on any thread; without one there is no text.
using TokenTexts = std::function<TokenText(TokenId)>;

struct EngineCounters {
  int64_t steps = 0;
  int64_t preemptions = 0;
  int64_t late_cancellations = 0;  // of requests that had ended
  int64_t dropped_holds = 0;       // held prefixes given up for want of blocks
};

// submit, cancel, release and the members marked so may be called from any thread; one thread calls
// step(). Everything referred to must outlive it.
class Engine {
 public:
  Engine(Runner& runner, Backend& backend, Memory& memory, KvCache& cache, EngineLimits limits,
         TokenTexts token_texts);
  ~Engine();

  // Any thread. Checks the request (Error invalid names the field at fault, or exhausted when it
  // could never fit the cache) and leaves it for the next step; nothing when the queue is full. Its
  // events go to `channel` with `tag`.
  std::optional<RequestId> submit(GenerateRequest request, std::shared_ptr<Channel> channel,
                                  int64_t tag = 0);
  // Any thread. Takes effect in the next step; a request that has ended is not minded.
  void cancel(RequestId id);
  // Any thread. Lets go of what a request with `hold` holds.
  void release(RequestId id);

  // Any thread. Calls `look` on the engine's thread before the next step, unless there is none; it
  // must neither block nor throw.
  void inspect(EngineInspection look);

  // One step: false when nothing is left to do.
  bool step();
  // Waits for mail at most so long; how many requests came.
  size_t wait_for_mail(std::chrono::milliseconds timeout, size_t at_least = 1) {
    return mailbox_.wait(timeout, at_least);
  }
  void wake() { mailbox_.wake(); }
  // Ends every request, as cancelled: no further step will come.
  void end_all();

  // Any thread. What submit would throw, thrown; the request may be clamped to what there is room
  // for.
  void check(GenerateRequest& request) const;

  // Any thread, and constant.
  const EngineLimits& limits() const { return limits_; }
  int64_t vocab_size() const { return runner_.vocab_size(); }
  std::string_view token_bytes(TokenId id, SpecialTokens specials) const {
    if (!token_texts_) return {};
    const TokenText text = token_texts_(id);
    return text.is_special && specials == SpecialTokens::hidden ? std::string_view() : text.bytes;
  }

  // Any thread, as of the last step.
  int64_t num_running() const { return num_running_.load(std::memory_order_relaxed); }
  const QueueLimit& queue() const { return queue_; }
  int64_t num_waiting() const { return num_waiting_.load(std::memory_order_relaxed); }

  // The engine's thread.
  const KvCache& cache() const { return cache_; }
  std::span<const std::unique_ptr<Sequence>> running() const { return running_; }
  std::span<const std::unique_ptr<Sequence>> waiting() const { return waiting_; }
  const EngineCounters& counters() const { return counters_; }
  const StepBudget& budget() const { return budget_; }
  void set_observer(StepObserver* observer) { observer_ = observer; }
  // PL_CHECKs the cache against all that the engine holds.
  void check_integrity() const;

 private:
  using SequencePtr = std::unique_ptr<Sequence>;

  // In the order of the step.
  void take_in();
  void enqueue(SequencePtr sequence);
  void cancel_request(RequestId id);
  void end_cancelled();

  void decide();

  void apply();
  void preempt(size_t index);
  void admit(const PlannedAdmission& admission);
  bool give_up_a_hold();
  void fail_what_cannot_fit();

  void build_batch();
  void compute();
  void fail_batch(ErrorCode code, const std::string& message);

  void commit();
  void commit_slice(const BatchSlice& slice, std::span<const uint8_t> finite_rows);
  void commit_rows();
  void commit_columns();
  void score(const BatchOutput& output, std::span<const float> row);
  void commit_last_row(Sequence& sequence, std::span<const float> row);
  void fork_choices(Sequence& sequence);
  void draw(Sequence& sequence, std::span<const float> row);
  void accept(Sequence& sequence, TokenEvent& event);

  void retire(Sequence& sequence, const Finish& finish);
  void fail(Sequence& sequence, ErrorCode code, std::string message);
  void end(Sequence& sequence, TokenEvent&& event, const Finish& finish);
  void post(const Sequence& sequence, TokenEvent&& event);

  void publish();
  void remove_finished();
  void record_step();
  void show_record();

  Runner& runner_;
  KvCache& cache_;
  EngineLimits limits_;
  TokenTexts token_texts_;
  Sampler sampler_;
  Mailbox mailbox_;

  std::atomic<RequestId> next_id_ = 1;
  std::atomic<int64_t> num_running_ = 0;
  std::atomic<int64_t> num_waiting_ = 0;
  QueueLimit queue_;  // submitted and not yet admitted

  // What follows belongs to the thread that steps, and is reused from step to step.
  std::vector<SequencePtr> running_;                         // by (priority, arrival id)
  std::vector<SequencePtr> waiting_;                         // likewise
  std::vector<SequencePtr> forked_;                          // choices that join after this step
  std::vector<std::pair<RequestId, SequenceBlocks>> holds_;  // oldest first
  Mail mail_;
  StepView view_;
  SchedLimits plan_limits_;
  PlanScratch scratch_;
  StepPlan plan_;
  std::vector<SequencePtr> admitted_;
  BatchBuilder builder_;
  StepBudget budget_;
  std::vector<std::shared_ptr<Channel>> touched_;  // channels with new events
  EngineClock::time_point computed_at_;            // when the step's forward ended
  StepRecord record_;
  StepObserver* observer_ = nullptr;
  EngineCounters counters_;
};

}  // namespace paceline
