// TickGrid is the schedule of decode steps, known to server and client: tick k is k periods after
// the monotonic clock's zero.
#pragma once

#include <chrono>
#include <cstdint>

namespace paceline::traffic {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, one for all processes of a machine

class TickGrid {
 public:
  // `rate`: ticks per second.
  explicit TickGrid(double rate) : period_ns_(1e9 / rate) {}

  double period_seconds() const { return 1e-9 * period_ns_; }
  Clock::time_point at(int64_t tick) const {
    return Clock::time_point(
        std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(tick) * period_ns_)));
  }
  // The last tick up to `time`.
  int64_t before(Clock::time_point time) const {
    const auto ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
    const auto tick = static_cast<int64_t>(static_cast<double>(ns) / period_ns_);
    return at(tick) > time ? tick - 1 : tick;
  }

 private:
  double period_ns_;
};

}  // namespace paceline::traffic
