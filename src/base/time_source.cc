#include "base/time_source.h"

#include <atomic>

namespace paceline {
namespace {

class MachineTime final : public TimeSource {
 public:
  std::chrono::steady_clock::time_point now() const override {
    return std::chrono::steady_clock::now();
  }
  std::chrono::system_clock::time_point wall_time() const override {
    return std::chrono::system_clock::now();
  }
};

std::atomic<const TimeSource*> overriding_source = nullptr;

const TimeSource& source() {
  const TimeSource* const overriding = overriding_source.load(std::memory_order_acquire);
  return overriding != nullptr ? *overriding : machine_time();
}

}  // namespace

const TimeSource& machine_time() {
  static const MachineTime time;
  return time;
}

Clock::time_point Clock::now() { return source().now(); }
WallClock::time_point WallClock::now() { return source().wall_time(); }

TimeOverride::TimeOverride(const TimeSource& source) { overriding_source = &source; }
TimeOverride::~TimeOverride() { overriding_source = nullptr; }

}  // namespace paceline
