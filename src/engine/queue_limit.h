// QueueLimit counts the requests that wait and their prompts' tokens, and says when that is enough.
#pragma once

#include <atomic>
#include <cstdint>

namespace paceline {

// Any thread.
class QueueLimit {
 public:
  QueueLimit(int64_t max_requests, int64_t max_tokens)
      : max_requests_(max_requests), max_tokens_(max_tokens) {}

  // False when there is no room; a prompt longer than all of it finds room in an empty queue.
  bool try_add(int64_t num_tokens) {
    if (num_requests_.fetch_add(1, std::memory_order_relaxed) >= max_requests_) {
      num_requests_.fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
    const int64_t before = num_tokens_.fetch_add(num_tokens, std::memory_order_relaxed);
    if (before == 0 || before + num_tokens <= max_tokens_) return true;
    remove(num_tokens);
    return false;
  }
  // What is to wait whether there is room or not: it was here before.
  void add(int64_t num_tokens) {
    num_requests_.fetch_add(1, std::memory_order_relaxed);
    num_tokens_.fetch_add(num_tokens, std::memory_order_relaxed);
  }
  void remove(int64_t num_tokens) {
    num_requests_.fetch_sub(1, std::memory_order_relaxed);
    num_tokens_.fetch_sub(num_tokens, std::memory_order_relaxed);
  }

  int64_t num_tokens() const { return num_tokens_.load(std::memory_order_relaxed); }
  int64_t max_tokens() const { return max_tokens_; }

 private:
  const int64_t max_requests_;
  const int64_t max_tokens_;
  std::atomic<int64_t> num_requests_ = 0;
  std::atomic<int64_t> num_tokens_ = 0;
};

}  // namespace paceline
