// ConstraintWorker finds what constraints allow on a thread of its own, while the forward runs.
#pragma once

#include <condition_variable>
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

 private:
  struct Job {
    SequenceConstraint* constraint = nullptr;
    std::vector<TokenId> draft;
  };

  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  SequenceConstraint* current_ = nullptr;  // the worker is at it
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace paceline
