#include "load/device_description.h"

#include <fmt/format.h>

#include "base/system_memory.h"
#include "base/thread_pool.h"
#include "kernels/cuda/device.h"
#include "load/loaded_model.h"
#include "load/processor_name.h"

namespace paceline {

DeviceInfo describe_device(const Machine& machine) {
  DeviceInfo info =
      describe_device(machine.device.get(), machine.isa, machine.threads->num_threads());
  info.note = machine.device_note;
  return info;
}

DeviceInfo describe_device(const cuda::CudaDevice* device, Isa isa, int num_threads) {
  if (device != nullptr) {
    const cuda::CudaDeviceInfo info = device->info();
    return {.name = info.name,
            .instruction_set = fmt::format("sm_{}", info.capability),
            .num_threads = num_threads,
            .total_memory_bytes = info.total_bytes,
            .free_memory_bytes = info.free_bytes};
  }
  const SystemMemory memory = system_memory();
  return {.name = processor_name(),
          .instruction_set = std::string(isa_name(isa)),
          .num_threads = num_threads,
          .total_memory_bytes = static_cast<size_t>(memory.total),
          .free_memory_bytes = static_cast<size_t>(memory.free)};
}

}  // namespace paceline
