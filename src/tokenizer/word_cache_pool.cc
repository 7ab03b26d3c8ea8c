#include "tokenizer/word_cache_pool.h"

#include <utility>

namespace paceline {

std::unique_ptr<WordCache> WordCachePool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!kept_.empty()) {
      std::unique_ptr<WordCache> cache = std::move(kept_.back());
      kept_.pop_back();
      return cache;
    }
  }
  return std::make_unique<WordCache>();
}

void WordCachePool::give_back(std::unique_ptr<WordCache> cache) {
  const std::lock_guard lock(mutex_);
  if (kept_.size() < kMaxKept) kept_.push_back(std::move(cache));
}

}  // namespace paceline
