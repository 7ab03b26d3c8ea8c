#include "server/tickets.h"

namespace paceline {

std::shared_ptr<void> Tickets::take() {
  constexpr int64_t kLow = 4, kParts = 5;
  if (*num_taken_ >= limit_) {
    shedding_ = true;
  } else if (*num_taken_ * kParts <= limit_ * kLow) {
    shedding_ = false;
  }
  if (shedding_) return nullptr;
  ++*num_taken_;
  // The holder's deleter keeps the count alive, and works on the counter, not on this.
  return std::shared_ptr<void>(num_taken_.get(), [count = num_taken_](void*) { --*count; });
}

std::shared_ptr<void> BodyBytes::take(int64_t num_bytes) {
  if (*num_taken_ > 0 && *num_taken_ + num_bytes > limit_) return nullptr;
  *num_taken_ += num_bytes;
  return std::shared_ptr<void>(num_taken_.get(),
                               [count = num_taken_, num_bytes](void*) { *count -= num_bytes; });
}

}  // namespace paceline
