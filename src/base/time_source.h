// TimeSource is where time is asked: the machine's clocks, or what a test or a simulation says.
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

}  // namespace paceline
