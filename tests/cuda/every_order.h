// What a kernel must compute whatever the order of its threads, and without which of its barriers
// it would not.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/device.h"

namespace paceline::cuda::testing {

// Launches kernels on a new device and returns the bytes that they computed.
using DeviceRun = std::function<std::vector<std::byte>(CudaDevice&)>;

// Orders of threads and blocks, one and two threads of the CPU, copies that land early and late,
// kernels that begin early and in turn.
std::vector<EmulationOptions> every_order();
std::string name_of(const EmulationOptions& options);

// The bytes of `run`, which every order must give; guarded memory.
std::vector<std::byte> same_in_every_order(const DeviceRun& run);

// The barriers and waits that `run` meets and that could be missing: without them every order gives
// the same bytes, and nothing is reported. Of one source of kernels, if it is named.
std::vector<std::string> needless_syncs(const DeviceRun& run, std::string_view source = "");

// A block of the device's memory that holds `values`; the device frees it at its end.
template <class T>
T* to_device(CudaDevice& device, std::span<const T> values) {
  auto* const block = static_cast<T*>(device.allocate(values.size_bytes()));
  device.copy_to_device(block, values.data(), values.size_bytes());
  return block;
}
template <class T>
T* to_device(CudaDevice& device, const std::vector<T>& values) {
  return to_device(device, std::span<const T>(values));
}
template <class T>
std::vector<T> from_device(CudaDevice& device, const T* block, size_t count) {
  std::vector<T> values(count);
  device.copy_from_device(values.data(), block, count * sizeof(T));
  return values;
}
template <class T>
std::vector<std::byte> bytes_from_device(CudaDevice& device, const T* block, size_t count) {
  return from_device(device, reinterpret_cast<const std::byte*>(block), count * sizeof(T));
}

}  // namespace paceline::cuda::testing
