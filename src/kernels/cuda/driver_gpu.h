// DriverGpu is a GPU behind NVIDIA's driver: its primary context, one stream, one module.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "kernels/cuda/device.h"
#include "kernels/cuda/driver_api.h"
#include "kernels/cuda/kernel_binary.h"

namespace paceline::cuda {

class DriverGpu final : public CudaDevice {
 public:
  // The binary's bytes are what cuModuleLoadData takes. Throws Error unsupported where there is no
  // GPU `index`, the binary has no kernels for it, or the driver is older than they are. The API
  // must outlive it.
  DriverGpu(const DriverApi& api, int index, const KernelBinary& binary);
  ~DriverGpu() override;
  DriverGpu(const DriverGpu&) = delete;
  DriverGpu& operator=(const DriverGpu&) = delete;

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
  void launch(const CudaGraph& graph) override;
  std::unique_ptr<CudaEvent> make_event() override;
  void record(CudaEvent& event) override;
  void wait(const CudaEvent& event) override;
  using CudaDevice::launch;

 private:
  class Graph;
  class Event;

  void do_begin_capture() override;
  std::unique_ptr<CudaGraph> do_end_capture() override;
  void do_launch(const KernelEntry& kernel, Grid grid, std::span<const std::byte> params) override;
  DriverFunction find_function(const KernelEntry& kernel);
  bool begins_early(const KernelEntry& kernel, Grid grid) const;
  void load(const KernelBinary& binary);
  void close() noexcept;
  // The context belongs to the calling thread until the next call.
  void enter() const;
  // Throws Error internal, or DeviceLost, with what was done and the driver's words.
  void check(DriverResult result, std::string_view what) const;
  bool is_pinned(const void* address) const;

  const DriverApi& api_;
  DriverDevice device_ = 0;
  DriverContext context_ = nullptr;
  DriverStream stream_ = nullptr;
  DriverModule module_ = nullptr;
  CudaDeviceInfo info_;
  std::map<std::string, DriverFunction, std::less<>> functions_;  // by the kernel's name
  std::map<const std::byte*, size_t> pinned_;                     // bytes by address
};

}  // namespace paceline::cuda
