#include "server/in_flight_limit.h"

#include "base/time_source.h"

namespace paceline {

bool InFlightLimit::has_room_again() const {
  constexpr int64_t kLow = 4, kParts = 5;
  return num_in_flight() < limit() && num_in_flight() * kParts <= limit() * kLow;
}

std::chrono::duration<double> InFlightLimit::full_for() const {
  if (!is_shedding_ || has_room_again()) return std::chrono::duration<double>(0);
  return Clock::now() - full_since_;
}

std::shared_ptr<void> InFlightLimit::acquire() {
  if (num_in_flight() >= limit()) {
    if (full_for().count() == 0) full_since_ = Clock::now();
    is_shedding_ = true;
  } else if (has_room_again()) {
    is_shedding_ = false;
  }
  return is_shedding_ ? nullptr : permits_.acquire(1);
}

std::shared_ptr<void> BytesLimit::acquire(int64_t num_bytes) {
  if (*num_held_ > 0 && *num_held_ + num_bytes > limit_) return nullptr;
  *num_held_ += num_bytes;
  // The deleter owns the counter, so the holder may outlive this.
  return std::shared_ptr<void>(num_held_.get(),
                               [count = num_held_, num_bytes](void*) { *count -= num_bytes; });
}

}  // namespace paceline
