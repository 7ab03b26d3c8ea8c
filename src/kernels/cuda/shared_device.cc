#include "kernels/cuda/shared_device.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace paceline::cuda {
namespace {

// A recursive lock that a waiting thread gets next: the thread that computes takes it again at
// once.
class FairLock {
 public:
  void lock() {
    if (owner_ == std::this_thread::get_id()) {
      ++depth_;
      return;
    }
    const std::lock_guard turn(next_);
    mutex_.lock();
    owner_ = std::this_thread::get_id();
    depth_ = 1;
  }
  void unlock() {
    if (--depth_ > 0) return;
    owner_ = std::thread::id();
    mutex_.unlock();
  }

 private:
  std::mutex next_;  // held by one that waits
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_;
  int depth_ = 0;
};

class SharedDevice final : public CudaDevice {
 public:
  explicit SharedDevice(std::unique_ptr<CudaDevice> device) : device_(std::move(device)) {}

  CudaDeviceInfo info() const override { return call(&CudaDevice::info); }
  void* allocate(size_t bytes) override { return call(&CudaDevice::allocate, bytes); }
  void release(void* block, size_t bytes) noexcept override {
    call(&CudaDevice::release, block, bytes);
  }
  void* allocate_pinned(size_t bytes) override { return call(&CudaDevice::allocate_pinned, bytes); }
  void release_pinned(void* block, size_t bytes) noexcept override {
    call(&CudaDevice::release_pinned, block, bytes);
  }
  void clear(void* block, size_t bytes) override { call(&CudaDevice::clear, block, bytes); }
  void copy_to_device(void* to, const void* from, size_t bytes) override {
    call(&CudaDevice::copy_to_device, to, from, bytes);
  }
  void copy_from_device(void* to, const void* from, size_t bytes) override {
    call(&CudaDevice::copy_from_device, to, from, bytes);
  }
  void copy_within_device(void* to, const void* from, size_t bytes) override {
    call(&CudaDevice::copy_within_device, to, from, bytes);
  }
  void synchronize() override { call(&CudaDevice::synchronize); }
  using CudaDevice::launch;
  void launch(const CudaGraph& graph) override {
    const std::lock_guard lock(mutex_);
    device_->launch(graph);
  }
  std::unique_ptr<CudaEvent> make_event() override { return call(&CudaDevice::make_event); }
  void record(CudaEvent& event) override {
    const std::lock_guard lock(mutex_);
    device_->record(event);
  }
  void wait(const CudaEvent& event) override {
    const std::lock_guard lock(mutex_);
    device_->wait(event);
  }

 private:
  template <class Method, class... Args>
  std::invoke_result_t<Method, CudaDevice&, Args...> call(Method method, Args... args) const {
    const std::lock_guard lock(mutex_);
    return std::invoke(method, *device_, args...);
  }

  void do_launch(const KernelEntry& kernel, Grid grid, std::span<const std::byte> params) override {
    const std::lock_guard lock(mutex_);
    device_->launch(kernel, grid, params);
  }
  // The lock is held until the capture ends.
  void do_begin_capture() override {
    std::unique_lock lock(mutex_);
    device_->begin_capture();
    capturing_ = std::move(lock);
  }
  std::unique_ptr<CudaGraph> do_end_capture() override {
    const std::unique_lock lock = std::move(capturing_);
    return device_->end_capture();
  }

  std::unique_ptr<CudaDevice> device_;
  mutable FairLock mutex_;
  std::unique_lock<FairLock> capturing_;
};

}  // namespace

std::unique_ptr<CudaDevice> share_device(std::unique_ptr<CudaDevice> device) {
  return std::make_unique<SharedDevice>(std::move(device));
}

}  // namespace paceline::cuda
