#include <fmt/format.h>

#include "bench/gpu/checks.h"
#include "kernels/cuda/kernel_binary.h"

namespace paceline {

void report_device(cuda::CudaDevice& device, CheckReport& report) {
  const cuda::CudaDeviceInfo info = device.info();
  report.measured("device", info.name, [&](JsonWriter& json) {
    json.member("capability", fmt::format("{}.{}", info.capability / 10, info.capability % 10));
    json.member("multiprocessors", info.multiprocessors);
    json.member("shared_bytes", info.shared_bytes);
    json.member("total_bytes", info.total_bytes).member("free_bytes", info.free_bytes);
    json.member("driver", info.driver).member("kernels_for", cuda::kernel_binary().architectures);
  });
}

}  // namespace paceline
