// ConstraintWorker finds what constraints allow on a thread of its own, while the forward runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "engine/sequence_constraint.h"

namespace paceline {

// One thread calls its members. The worker thread begins with the first job.
class ConstraintWorker {
 public:
  ConstraintWorker() = default;
  ~ConstraintWorker();
  ConstraintWorker(const ConstraintWorker&) = delete;
  ConstraintWorker& operator=(const ConstraintWorker&) = delete;

  // Has find_rules(draft) called. Until finish() or finish_all() the constraint is the worker's.
  void begin(SequenceConstraint& constraint, std::span<const TokenId> draft);
  // Returns when its rules have been found: here, if the worker hasn't come to it.
  void finish(SequenceConstraint& constraint);
  // Drops what hasn't begun, and waits for the rest.
  void finish_all();

  // Calls of find_rules() so far, and how long they took.
  int64_t num_found() const { return num_found_.load(std::memory_order_relaxed); }
  double seconds() const {
    return 1e-9 * static_cast<double>(nanoseconds_.load(std::memory_order_relaxed));
  }

 private:
  struct Job {
    SequenceConstraint* constraint = nullptr;
    std::vector<TokenId> draft;
  };

  void work();
  void find(const Job& job);

  std::atomic<int64_t> num_found_ = 0;
  std::atomic<int64_t> nanoseconds_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  SequenceConstraint* current_ = nullptr;  // the worker is at it
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace paceline
