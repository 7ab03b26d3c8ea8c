#include "base/time_source.h"

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

}  // namespace

const TimeSource& machine_time() {
  static const MachineTime time;
  return time;
}

}  // namespace paceline
