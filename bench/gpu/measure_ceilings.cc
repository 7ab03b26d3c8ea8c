#include <cstring>

#include "bench/gpu/checks.h"
#include "bench/gpu/median_time.h"
#include "kernels/cuda/code/ceilings.h"
#include "kernels/cuda/device_memory_source.h"
#include "kernels/cuda/launch.h"
#include "tensor/buffer.h"

namespace paceline {
namespace {

using cuda::CopyWords;
using cuda::MmaRate;
using cuda::Words4;

constexpr double kCeilingSeconds = 0.02;

struct Rate {
  double per_s = 0;
  bool is_right = false;  // whether the kernel computed what it should
};

Rate copy_bytes(cuda::CudaDevice& device, Memory& memory, bool is_small) {
  const size_t bytes = size_t{1} << (is_small ? 16 : 30);
  const Buffer from(memory, bytes), to(memory, bytes);
  auto* const last = static_cast<std::byte*>(to.get()) + bytes - sizeof(Words4);
  const Words4 words{{1, 2, 3, 4}};
  device.copy_to_device(static_cast<std::byte*>(from.get()) + bytes - sizeof words, &words,
                        sizeof words);
  const CopyWords::Params params{static_cast<const Words4*>(from.get()),
                                 static_cast<Words4*>(to.get()),
                                 static_cast<int64_t>(bytes / sizeof(Words4))};
  const auto blocks = static_cast<uint32_t>(device.info().multiprocessors) * (is_small ? 1 : 16);
  const double seconds = median_seconds(device, kCeilingSeconds, [&](int64_t) {
    cuda::launch<CopyWords>(device, {.x = blocks}, params);
  });
  Words4 copied{};
  device.copy_from_device(&copied, last, sizeof copied);
  return {2.0 * static_cast<double>(bytes) / seconds,
          std::memcmp(&copied, &words, sizeof words) == 0};
}

Rate multiply(cuda::CudaDevice& device, Memory& memory, bool is_small) {
  const uint32_t blocks = is_small ? 2u : static_cast<uint32_t>(device.info().multiprocessors) * 8u;
  const int64_t rounds = is_small ? 4 : 4096;
  const int64_t threads = int64_t{blocks} * MmaRate::kThreads;
  const Buffer out(memory, static_cast<size_t>(threads) * sizeof(float));
  const double seconds = median_seconds(device, kCeilingSeconds, [&](int64_t) {
    cuda::launch<MmaRate>(device, {.x = blocks}, {static_cast<float*>(out.get()), rounds});
  });
  float sum = 0;
  device.copy_from_device(&sum, static_cast<float*>(out.get()) + threads - 1, sizeof sum);
  const int64_t instructions = threads / cuda::kWarpLanes * rounds * MmaRate::kChains;
  return {static_cast<double>(instructions * MmaRate::kOperations) / seconds,
          sum == static_cast<float>(16 * rounds * MmaRate::kChains)};
}

}  // namespace

Ceilings measure_ceilings(cuda::CudaDevice& device, const CheckOptions& options,
                          CheckReport& report) {
  cuda::DeviceMemorySource source(device);
  Memory memory(source);
  const Rate copies = copy_bytes(device, memory, options.is_small);
  report.check("ceilings", "copies", copies.is_right,
               [&](JsonWriter& json) { json.member("bytes_per_second", copies.per_s); });
  const Rate products = multiply(device, memory, options.is_small);
  report.check("ceilings", "matrix instructions", products.is_right,
               [&](JsonWriter& json) { json.member("flops_per_second", products.per_s); });
  return {copies.per_s, products.per_s};
}

}  // namespace paceline
