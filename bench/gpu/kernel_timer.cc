#include "bench/gpu/kernel_timer.h"

#include <algorithm>
#include <cmath>

#include "bench/gpu/median_time.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "tests/cuda/older_device.h"

namespace paceline {
namespace {

constexpr double kRotatedBytes = 200e6;  // several times the second-level cache of any GPU
constexpr double kBatchSeconds = 0.01;

}  // namespace

KernelTimer::KernelTimer(cuda::CudaDevice& gpu, const Ceilings& ceilings,
                         const CheckOptions& options, CheckReport& report)
    : device_(gpu),
      ceilings_(ceilings),
      is_small_(options.is_small),
      deadline_(options.seconds),
      report_(report),
      backend_(cuda::make_cuda_backend(gpu, threads_)) {}

void KernelTimer::time(std::string_view name, const OperationCost& cost,
                       const std::function<void(int64_t)>& run) {
  if (is_over()) return;
  const double seconds = median_seconds(device_, is_small_ ? 0 : kBatchSeconds, run);
  const double at_best =
      std::max(cost.bytes / ceilings_.bytes_per_s, cost.flops / ceilings_.flops_per_s);
  report_.measured("kernels", name, [&](JsonWriter& json) {
    json.member("microseconds", seconds * 1e6);
    json.member("bytes_per_second", cost.bytes / seconds);
    json.member("flops_per_second", cost.flops / seconds);
    json.member("share_of_ceiling", at_best / seconds);
  });
}

int64_t KernelTimer::num_rotated(double bytes) const {
  if (is_small_) return 2;
  return std::clamp(static_cast<int64_t>(std::ceil(kRotatedBytes / bytes)), int64_t{1},
                    int64_t{64});
}

void measure_kernels(cuda::CudaDevice& device, const Ceilings& ceilings,
                     const CheckOptions& options, CheckReport& report) {
  KernelTimer timer(device, ceilings, options, report);
  time_products(timer);
  time_attention(timer);
  time_row_operations(timer);
}

void measure_tiles(cuda::CudaDevice& device, const Ceilings& ceilings, const CheckOptions& options,
                   CheckReport& report) {
  KernelTimer timer(device, ceilings, options, report);
  time_tiles(timer);
}

void measure_prompt_products(cuda::CudaDevice& device, const Ceilings& ceilings,
                             const CheckOptions& options, CheckReport& report) {
  KernelTimer timer(device, ceilings, options, report);
  time_prompt_products(timer);
}

void measure_prompt_attention(cuda::CudaDevice& device, const Ceilings& ceilings,
                              const CheckOptions& options, CheckReport& report) {
  KernelTimer timer(device, ceilings, options, report);
  time_prompt_attention(timer, "");
  cuda::OlderDevice older(device);
  KernelTimer by_warps(older, ceilings, options, report);
  time_prompt_attention(by_warps, ", by mma.sync");
}

}  // namespace paceline
