// EmulatedDevice runs kernels on the CPU, thread by thread, and reports what a GPU leaves
// undefined.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/emulation/block_run.h"
#include "kernels/cuda/emulation/device_memory.h"

namespace paceline::cuda::emulation {

// Every call is done when it returns. A report spoils the device.
class EmulatedDevice final : public CudaDevice {
 public:
  explicit EmulatedDevice(const EmulationOptions& options);

  CudaDeviceInfo info() const override;
  void* allocate(size_t bytes) override;
  void release(void* block, size_t bytes) noexcept override;
  void* allocate_pinned(size_t bytes) override;
  void release_pinned(void* block, size_t bytes) noexcept override;
  void clear(void* block, size_t bytes) override;
  void copy_to_device(void* to, const void* from, size_t bytes) override;
  void copy_from_device(void* to, const void* from, size_t bytes) override;
  void copy_within_device(void* to, const void* from, size_t bytes) override;
  void synchronize() override;

  // "kernels/cuda/code/norms.h:31": every barrier, warp barrier and wait that launches have met.
  std::vector<std::string> sync_sites() const;

 private:
  void do_launch(const KernelEntry& entry, Grid grid, std::span<const std::byte> params) override;
  void run_blocks(const LaunchWork& work);
  void check_not_spoiled() const;
  [[noreturn]] void spoil(const std::string& message);

  EmulationOptions options_;
  DeviceMemory memory_;
  ThreadPool threads_;
  std::vector<std::unique_ptr<BlockRun>> runs_;  // by the CPU's thread
  std::string failure_;
};

}  // namespace paceline::cuda::emulation
