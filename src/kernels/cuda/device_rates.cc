#include "kernels/cuda/device_rates.h"

#include <algorithm>
#include <chrono>

#include "kernels/cuda/code/ceilings.h"
#include "kernels/cuda/launch.h"

namespace paceline::cuda {
namespace {

// Several times the second-level cache of any GPU, where there is room; little in the emulation,
// whose memory is smaller than any GPU's.
size_t bytes_to_copy(const CudaDeviceInfo& info) {
  constexpr size_t kMost = size_t{256} << 20, kLeast = size_t{64} << 10;
  constexpr size_t kSmallestGpu = size_t{2} << 30;
  if (info.total_bytes < kSmallestGpu) return kLeast;
  return std::clamp(info.free_bytes / 8 / kLeast * kLeast, kLeast, kMost);
}

uint32_t blocks(const CudaDeviceInfo& info, int of_multiprocessor) {
  return static_cast<uint32_t>(info.multiprocessors * of_multiprocessor);
}

}  // namespace

DeviceRates::DeviceRates(CudaDevice& device)
    : device_(device),
      info_(device.info()),
      bytes_(bytes_to_copy(info_)),
      from_(device.allocate(bytes_)),
      to_(device.allocate(bytes_)) {
  device.clear(from_, bytes_);
}

DeviceRates::~DeviceRates() {
  device_.release(from_, bytes_);
  device_.release(to_, bytes_);
}

double DeviceRates::rate_of(double seconds, const std::function<void(int64_t)>& run) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kMost = int64_t{1} << 30, kGrowth = 4;
  for (int64_t times = 1;; times *= kGrowth) {
    device_.synchronize();
    const auto begin = Clock::now();
    run(times);
    device_.synchronize();
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    if (took * kGrowth > seconds || times >= kMost) return static_cast<double>(times) / took;
  }
}

double DeviceRates::copied_bytes_per_s(double seconds) {
  constexpr int kBlocks = 16;
  const CopyWords::Params params{static_cast<const Words4*>(from_), static_cast<Words4*>(to_),
                                 static_cast<int64_t>(bytes_ / sizeof(Words4))};
  const auto copy = [&](int64_t times) {
    for (int64_t i = 0; i < times; ++i) {
      launch<CopyWords>(device_, {.x = blocks(info_, kBlocks)}, params);
    }
  };
  return 2.0 * static_cast<double>(bytes_) * rate_of(seconds, copy);
}

double DeviceRates::mma_flops_per_s(double seconds) {
  constexpr int kBlocks = 8;
  const uint32_t count = blocks(info_, kBlocks);
  auto* const out = static_cast<float*>(to_);
  const auto multiply = [&](int64_t rounds) {
    launch<MmaRate>(device_, {.x = count}, {out, rounds});
  };
  const double instructions =
      static_cast<double>(count) * (MmaRate::kThreads / kWarpLanes) * MmaRate::kChains;
  return instructions * MmaRate::kOperations * rate_of(seconds, multiply);
}

}  // namespace paceline::cuda
