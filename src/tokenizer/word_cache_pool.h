// WordCachePool keeps a tokenizer's word caches between calls, for any number of threads.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tokenizer/word_cache.h"

namespace paceline {

class WordCachePool {
 public:
  static constexpr size_t kMaxKept = 16;

  // The cache of one call, returned to the pool at its end.
  class Lease {
   public:
    explicit Lease(WordCachePool& pool) : pool_(pool), cache_(pool.take()) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { pool_.give_back(std::move(cache_)); }
    WordCache* operator->() { return cache_.get(); }

   private:
    WordCachePool& pool_;
    std::unique_ptr<WordCache> cache_;
  };

  WordCachePool() { kept_.reserve(kMaxKept); }

 private:
  std::unique_ptr<WordCache> take();
  void give_back(std::unique_ptr<WordCache> cache);

  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> kept_;
};

}  // namespace paceline
