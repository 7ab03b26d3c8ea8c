#include "server/tickets.h"

namespace paceline {

bool Tickets::has_room_again() const {
  constexpr int64_t kLow = 4, kParts = 5;
  return *num_taken_ < limit_ && *num_taken_ * kParts <= limit_ * kLow;
}

std::chrono::duration<double> Tickets::full_for() const {
  if (!shedding_ || has_room_again()) return std::chrono::duration<double>(0);
  return std::chrono::steady_clock::now() - full_since_;
}

std::shared_ptr<void> Tickets::take() {
  if (*num_taken_ >= limit_) {
    if (full_for().count() == 0) full_since_ = std::chrono::steady_clock::now();
    shedding_ = true;
  } else if (has_room_again()) {
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
