// RequestList is the sequences of all requests: they come, are admitted, preempted and forked, and
// end.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/request_intake.h"
#include "engine/sequence.h"
#include "engine/step_record.h"
#include "state/state_cache.h"

namespace paceline {

// The engine's thread. Everything referred to must outlive it.
class RequestList {
 public:
  RequestList(RequestIntake& intake, StateCache& cache, const EngineLimits& limits, StepLog& log);

  // In the order is_served_before. Within a step a preempted sequence leaves null in its place, and
  // admitted and forked sequences come last.
  std::span<const std::unique_ptr<Sequence>> running() const { return running_; }
  std::span<const std::unique_ptr<Sequence>> waiting() const { return waiting_; }
  // The most that may run.
  int64_t max_running() const { return max_running_; }
  int64_t room() const { return max_running_ - std::ssize(running_); }
  // Any thread, as of the last publish().
  int64_t num_running() const { return num_running_.load(std::memory_order_relaxed); }
  int64_t num_waiting() const { return num_waiting_.load(std::memory_order_relaxed); }

  // New requests, cancellations, releases and deferrals. Ends sequences that need no row computed.
  void take_in();
  // Whether the last take_in() had any.
  bool has_news() const { return mail_.changes_requests(); }
  std::span<const EngineInspection> inspections() const { return mail_.inspections; }

  // Makes waiting()[index] the last running one, with that much of it from the prefix cache.
  void admit(size_t index, int64_t prefix_length);
  // Releases the blocks of running()[index] (published ones stay findable); it keeps its arrival id
  // and tokens, and waits.
  void preempt(size_t index);
  // Drops the places that admitted and preempted sequences have left.
  void compact();
  // Adds the other choices, which share the prompt's blocks and its last row. Those beyond
  // max_running() wait, and find the prompt in the prefix cache.
  void fork_choices(Sequence& sequence);
  // Releases the oldest held prefix; false when there is none.
  bool drop_oldest_hold();

  // Every sequence ends by one of these: it releases or holds its blocks, and posts its last event.
  // It exists until publish().
  void end(Sequence& sequence, TokenEvent&& event, const Finish& finish);
  void retire(Sequence& sequence, const Finish& finish) { end(sequence, {}, finish); }
  void fail(Sequence& sequence, ErrorInfo error);
  void post(const Sequence& sequence, TokenEvent&& event);

  // Ends the step: drops ended sequences and hands out the posted events.
  void publish();
  // Ends all requests, as cancelled.
  void end_all();
  // PL_CHECKs the cache against all that the sequences and holds have.
  void check_integrity() const;

 private:
  void enqueue(std::unique_ptr<Sequence> sequence);
  void cancel_request(RequestId id);
  void change(Deferral deferral);
  void end_cancelled();
  void keep_state(Sequence& sequence);
  void take_ended();

  RequestIntake& intake_;
  StateCache& cache_;
  const EngineLimits& limits_;
  StepLog& log_;
  const int64_t max_running_;
  std::vector<std::unique_ptr<Sequence>> running_;
  std::vector<std::unique_ptr<Sequence>> waiting_;           // in the order is_served_before
  std::vector<std::unique_ptr<Sequence>> ended_;             // in this step
  std::vector<std::pair<RequestId, SequenceBlocks>> holds_;  // oldest first
  Mail mail_;
  std::vector<std::shared_ptr<Channel>> touched_;  // channels with new events
  std::atomic<int64_t> num_running_ = 0;
  std::atomic<int64_t> num_waiting_ = 0;
};

}  // namespace paceline
