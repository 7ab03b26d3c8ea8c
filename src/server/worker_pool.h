// WorkerPool runs slow jobs off the I/O thread: parsing, templates, tokenising, large responses.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace paceline {

class WorkerPool {
 public:
  // At most `max_queued` jobs wait for one of the threads. Without threads a job runs in try_run(),
  // so that a simulated server does its work in an order of its own.
  WorkerPool(size_t num_threads, size_t max_queued);
  // Waits for running jobs and drops queued ones.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Any thread. False when the queue is full. `job` must not throw.
  bool try_run(std::function<void()> job);

 private:
  void work();
  void stop();

  const size_t max_queued_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace paceline
