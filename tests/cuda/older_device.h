// OlderDevice is a GPU whose backend leaves the instructions of Hopper's warpgroups unused, so that
// its kernels for other GPUs can be measured beside them.
#pragma once

#include "kernels/cuda/device.h"

namespace paceline::cuda {

class OlderDevice final : public CudaDevice {
 public:
  // The device must outlive it.
  explicit OlderDevice(CudaDevice& device) : device_(device) {}

  CudaDeviceInfo info() const override {
    CudaDeviceInfo info = device_.info();
    constexpr int kBeforeHopper = 89;
    info.capability = kBeforeHopper;
    return info;
  }
  void* allocate(size_t bytes) override { return device_.allocate(bytes); }
  void release(void* block, size_t bytes) noexcept override { device_.release(block, bytes); }
  void will_cache() noexcept override { device_.will_cache(); }
  void* allocate_pinned(size_t bytes) override { return device_.allocate_pinned(bytes); }
  void release_pinned(void* block, size_t bytes) noexcept override {
    device_.release_pinned(block, bytes);
  }
  void clear(void* block, size_t bytes) override { device_.clear(block, bytes); }
  void copy_to_device(void* to, const void* from, size_t bytes) override {
    device_.copy_to_device(to, from, bytes);
  }
  void copy_from_device(void* to, const void* from, size_t bytes) override {
    device_.copy_from_device(to, from, bytes);
  }
  void copy_within_device(void* to, const void* from, size_t bytes) override {
    device_.copy_within_device(to, from, bytes);
  }
  void synchronize() override { device_.synchronize(); }
  void launch(const CudaGraph& graph) override { device_.launch(graph); }
  std::unique_ptr<CudaEvent> make_event() override { return device_.make_event(); }
  void record(CudaEvent& event) override { device_.record(event); }
  void wait(const CudaEvent& event) override { device_.wait(event); }
  using CudaDevice::launch;

 private:
  void do_begin_capture() override { device_.begin_capture(); }
  std::unique_ptr<CudaGraph> do_end_capture() override { return device_.end_capture(); }
  void do_launch(const KernelEntry& kernel, Grid grid, std::span<const std::byte> params) override {
    device_.launch(kernel, grid, params);
  }

  CudaDevice& device_;
};

}  // namespace paceline::cuda
