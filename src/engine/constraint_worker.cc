#include "engine/constraint_worker.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/start_thread.h"
#include "base/time_source.h"
#include "paceline/error.h"

namespace paceline {

ConstraintWorker::~ConstraintWorker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    jobs_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ConstraintWorker::begin(SequenceConstraint& constraint, std::span<const TokenId> draft) {
  if (!thread_.joinable()) {
    try {
      thread_ = start_thread([this] { work(); });
    } catch (const Error&) {
      // finish() finds the rules of jobs that no thread has taken.
    }
  }
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({&constraint, {draft.begin(), draft.end()}});
  }
  changed_.notify_all();
}

void ConstraintWorker::finish(SequenceConstraint& constraint) {
  std::unique_lock lock(mutex_);
  const auto job = std::find_if(jobs_.begin(), jobs_.end(),
                                [&](const Job& one) { return one.constraint == &constraint; });
  if (job == jobs_.end()) {
    changed_.wait(lock, [&] { return current_ != &constraint; });
    return;
  }
  const Job taken = std::move(*job);
  jobs_.erase(job);
  lock.unlock();
  find(taken);
}

void ConstraintWorker::finish_all() {
  std::unique_lock lock(mutex_);
  jobs_.clear();
  changed_.wait(lock, [&] { return current_ == nullptr; });
}

void ConstraintWorker::find(const Job& job) {
  const auto begin = Clock::now();
  job.constraint->find_rules(job.draft);
  const auto time = Clock::now() - begin;
  ++num_found_;
  nanoseconds_ += std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

void ConstraintWorker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
    if (ends_) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    current_ = job.constraint;
    lock.unlock();
    find(job);
    lock.lock();
    current_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace paceline
