// CpuVisibleDevice is a CudaDevice whose memory the CPU may read and write too: pinned memory,
// which a GPU's kernels reach through its bus (unified addressing). So inputs and outputs of the op
// table, which the CPU makes and reads, work on a GPU.
#pragma once

#include <map>

#include "kernels/cuda/device.h"

namespace paceline::cuda {

// Every call is done when it returns; graphs throw Error unsupported.
class CpuVisibleDevice final : public CudaDevice {
 public:
  // The device must outlive it.
  explicit CpuVisibleDevice(CudaDevice& device) : device_(device) {}

  CudaDeviceInfo info() const override { return device_.info(); }
  // Filled with NaNs.
  void* allocate(size_t bytes) override;
  void release(void* block, size_t bytes) noexcept override;
  void* allocate_pinned(size_t bytes) override { return device_.allocate_pinned(bytes); }
  void release_pinned(void* block, size_t bytes) noexcept override {
    device_.release_pinned(block, bytes);
  }
  void clear(void* block, size_t bytes) override;
  void copy_to_device(void* to, const void* from, size_t bytes) override;
  void copy_from_device(void* to, const void* from, size_t bytes) override;
  void copy_within_device(void* to, const void* from, size_t bytes) override;
  void synchronize() override { device_.synchronize(); }
  void launch(const CudaGraph& graph) override;
  std::unique_ptr<CudaEvent> make_event() override { return device_.make_event(); }
  void record(CudaEvent& event) override { device_.record(event); }
  void wait(const CudaEvent& event) override { device_.wait(event); }
  using CudaDevice::launch;

 private:
  void do_begin_capture() override;
  std::unique_ptr<CudaGraph> do_end_capture() override;
  void do_launch(const KernelEntry& kernel, Grid grid, std::span<const std::byte> params) override;

  CudaDevice& device_;
  std::map<void*, void*> blocks_;  // the pinned block by the aligned address in it
};

}  // namespace paceline::cuda
