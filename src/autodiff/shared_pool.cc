#include "autodiff/shared_pool.h"

#include "paceline/error.h"

namespace paceline::autodiff {

void SharedPool::set_num_threads(int num_threads) {
  auto pool = std::make_unique<ThreadPool>(num_threads);
  const std::lock_guard turn(mutex_);
  num_threads_ = pool->num_threads();
  pool_.swap(pool);
}

int SharedPool::num_threads() {
  const std::lock_guard turn(mutex_);
  return num_threads_ == 0 ? usable_cores() : num_threads_;
}

ThreadPool* SharedPool::started() {
  if (pool_ != nullptr) return pool_.get();
  try {
    pool_ = std::make_unique<ThreadPool>(num_threads_);
  } catch (const Error&) {
    pool_ = std::make_unique<ThreadPool>(1);
  }
  return pool_.get();
}

}  // namespace paceline::autodiff
