// QueueLimit bounds the number of waiting sequences and of their prompts' tokens.
#pragma once

#include <atomic>
#include <cstdint>

namespace paceline {

// Any thread.
class QueueLimit {
 public:
  QueueLimit(int64_t max_sequences, int64_t max_tokens)
      : max_sequences_(max_sequences), max_tokens_(max_tokens) {}

  // False when there is no room. An empty queue takes a request of any size.
  bool try_add(int64_t num_sequences, int64_t num_tokens) {
    const int64_t others = num_sequences_.fetch_add(num_sequences, std::memory_order_relaxed);
    if (others > 0 && others + num_sequences > max_sequences_) {
      num_sequences_.fetch_sub(num_sequences, std::memory_order_relaxed);
      return false;
    }
    const int64_t before = num_tokens_.fetch_add(num_tokens, std::memory_order_relaxed);
    if (before == 0 || before + num_tokens <= max_tokens_) return true;
    remove(num_sequences, num_tokens);
    return false;
  }
  // Without a check, for sequences that were admitted before.
  void add(int64_t num_sequences, int64_t num_tokens) {
    num_sequences_.fetch_add(num_sequences, std::memory_order_relaxed);
    num_tokens_.fetch_add(num_tokens, std::memory_order_relaxed);
  }
  void remove(int64_t num_sequences, int64_t num_tokens) {
    num_sequences_.fetch_sub(num_sequences, std::memory_order_relaxed);
    num_tokens_.fetch_sub(num_tokens, std::memory_order_relaxed);
  }

  int64_t num_sequences() const { return num_sequences_.load(std::memory_order_relaxed); }
  int64_t num_tokens() const { return num_tokens_.load(std::memory_order_relaxed); }
  int64_t max_tokens() const { return max_tokens_; }

 private:
  const int64_t max_sequences_;
  const int64_t max_tokens_;
  std::atomic<int64_t> num_sequences_ = 0;
  std::atomic<int64_t> num_tokens_ = 0;
};

}  // namespace paceline
