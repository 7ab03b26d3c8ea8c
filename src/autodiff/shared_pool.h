// SharedPool is a thread pool that several threads use in turn: one that finds it taken computes
// alone.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "base/thread_pool.h"

namespace paceline::autodiff {

// Thread-safe. Results don't depend on who has the pool. Threads start with the first work that is
// large enough to be shared; where the system refuses them, callers compute alone.
class SharedPool {
 public:
  // 0: one thread per usable core.
  explicit SharedPool(int num_threads = 0) : num_threads_(num_threads) {}

  // Waits for work in progress. Throws Error invalid for a count that ThreadPool refuses.
  void set_num_threads(int num_threads);
  int num_threads();

  // Calls body(begin, end) for parts of [0, count).
  template <class Body>
  void parallel_for(int64_t count, int64_t grain, Body&& body) {
    const std::unique_lock turn(mutex_, std::try_to_lock);
    ThreadPool* const pool = turn.owns_lock() ? started() : nullptr;
    if (pool == nullptr) {
      body(int64_t{0}, count);
      return;
    }
    pool->parallel_for(count, grain, [&](int64_t begin, int64_t end, int) { body(begin, end); });
  }

 private:
  ThreadPool* started();  // with the lock

  std::mutex mutex_;
  int num_threads_;
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace paceline::autodiff
