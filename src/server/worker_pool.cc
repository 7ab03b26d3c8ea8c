#include "server/worker_pool.h"

#include <utility>

#include "base/start_thread.h"
#include "paceline/error.h"

namespace paceline {

WorkerPool::WorkerPool(size_t num_threads, size_t max_queued) : max_queued_(max_queued) {
  threads_.reserve(num_threads);
  try {
    for (size_t i = 0; i < num_threads; ++i) threads_.push_back(start_thread([this] { work(); }));
  } catch (const Error&) {
    stop();
    throw;
  }
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  came_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkerPool::try_run(std::function<void()> job) {
  if (threads_.empty()) {
    job();
    return true;
  }
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() >= max_queued_) return false;
    jobs_.push_back(std::move(job));
  }
  came_.notify_one();
  return true;
}

void WorkerPool::work() {
  while (true) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      came_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace paceline
