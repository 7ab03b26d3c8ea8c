// TimeSource is where the process asks the time: the machine's clocks, or what a test or a
// simulation says.
#pragma once

#include <chrono>

namespace paceline {

class TimeSource {
 public:
  virtual ~TimeSource() = default;

  virtual std::chrono::steady_clock::time_point now() const = 0;  // never goes back
  virtual std::chrono::system_clock::time_point wall_time() const = 0;
};

// The machine's.
const TimeSource& machine_time();

// Clocks of the standard library's kind (Clock::now()) that ask the process's TimeSource.
struct Clock {
  using rep = std::chrono::steady_clock::rep;
  using period = std::chrono::steady_clock::period;
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr bool is_steady = true;

  static time_point now();
};
struct WallClock {
  using duration = std::chrono::system_clock::duration;
  using time_point = std::chrono::system_clock::time_point;

  static time_point now();
};

// The process's TimeSource while this lives; then the machine's again. Made before the threads that
// ask the time, and destroyed after them.
class TimeOverride {
 public:
  explicit TimeOverride(const TimeSource& source);
  ~TimeOverride();
  TimeOverride(const TimeOverride&) = delete;
  TimeOverride& operator=(const TimeOverride&) = delete;
};

}  // namespace paceline
