#include "bench/gpu/median_time.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace paceline {

double median_seconds(cuda::CudaDevice& device, double batch_seconds,
                      const std::function<void(int64_t)>& run) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kMostCalls = 1000;
  int64_t index = 0;
  const auto time_calls = [&](int64_t count) {
    const auto begin = Clock::now();
    for (int64_t i = 0; i < count; ++i) run(index++);
    device.synchronize();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  time_calls(1);
  const double once = std::max(time_calls(1), 1e-9);
  const double wanted = std::clamp(batch_seconds / once, 1.0, double{kMostCalls});
  const auto count = static_cast<int64_t>(wanted);
  std::array<double, 5> batches;
  for (double& seconds : batches) seconds = time_calls(count);
  std::sort(batches.begin(), batches.end());
  return batches[batches.size() / 2] / static_cast<double>(count);
}

}  // namespace paceline
