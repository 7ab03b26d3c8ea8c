// CudaDevice is one GPU, or its emulation on the CPU: memory, copies and launches of kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace paceline::cuda {

// Of a block, on a GPU that has the most: Hopper (CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability"). Those of compute capability 8.6 and 8.9 have 99 KiB.
constexpr uint32_t kMostSharedBytes = 227 * 1024;

struct CudaDeviceInfo {
  std::string name;    // "NVIDIA H200", "emulation"
  int capability = 0;  // 90 of sm_90
  int multiprocessors = 0;
  uint32_t shared_bytes = 0;  // of a block, at most
  size_t total_bytes = 0;
  size_t free_bytes = 0;
  std::string driver;  // its version, "13.0"
};

struct Grid {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
};

// A kernel as the device finds it. `Kernel` of device_code.h makes one of a kernel's type.
struct KernelEntry {
  std::string_view name;
  uint32_t threads = 0;       // of a block
  uint32_t shared_bytes = 0;  // of a block
  bool begins_early = false;  // while the kernel in front of it ends, where the device can
};

// Work that was recorded once and is launched as a whole: a CUDA graph. It holds the addresses that
// its calls had; the device must outlive it.
class CudaGraph {
 public:
  virtual ~CudaGraph() = default;
};

// A place in a device's work, which the CPU can wait for. The device must outlive it.
class CudaEvent {
 public:
  virtual ~CudaEvent() = default;
};

// A device's work is one stream: copies and launches happen in the order of their calls. A call
// returns before the work is done unless it says otherwise. Pointers to the device's memory are
// meaningless to the CPU. One thread at a time may call it.
//
// While a graph is captured, clear, copy_within_device and launches of kernels are recorded instead
// of run. All other calls throw Error internal, and so does end_capture() after a release.
//
// Errors: exhausted (memory, with what was asked and what is free), internal (a launch or a copy
// failed: the kernel's or the call's name and the driver's words). An error that spoils the device
// is a DeviceLost, and thrown again by every later call.
class CudaDevice {
 public:
  virtual ~CudaDevice() = default;

  virtual CudaDeviceInfo info() const = 0;

  // 256-byte aligned, its contents undefined.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* block, size_t bytes) noexcept = 0;
  // A block will be kept for another owner, whose work comes behind all work so far.
  virtual void will_cache() noexcept {}
  // Memory of the CPU that kernels reach too, under the same address, and that copies from and to
  // the device may use while the CPU goes on. What a kernel wrote is there once a later event has
  // been waited for.
  virtual void* allocate_pinned(size_t bytes) = 0;
  virtual void release_pinned(void* block, size_t bytes) noexcept = 0;

  virtual void clear(void* block, size_t bytes) = 0;
  // `from` is the CPU's memory and may be changed when the call returns.
  virtual void copy_to_device(void* to, const void* from, size_t bytes) = 0;
  // Waits for the work before it and for the copy.
  virtual void copy_from_device(void* to, const void* from, size_t bytes) = 0;
  // The ranges don't overlap.
  virtual void copy_within_device(void* to, const void* from, size_t bytes) = 0;

  // Runs grid.x * grid.y * grid.z blocks of `kernel` with the bytes of its parameters.
  void launch(const KernelEntry& kernel, Grid grid, std::span<const std::byte> params);
  // Waits until all work is done; throws what went wrong in it.
  virtual void synchronize() = 0;

  // GraphCapture calls these.
  void begin_capture();
  std::unique_ptr<CudaGraph> end_capture();
  bool is_capturing() const { return is_capturing_; }
  virtual void launch(const CudaGraph& graph) = 0;

  virtual std::unique_ptr<CudaEvent> make_event() = 0;
  // The event's place is behind all work so far.
  virtual void record(CudaEvent& event) = 0;
  // Waits for the work before the event's last place; throws what went wrong in it.
  virtual void wait(const CudaEvent& event) = 0;

 protected:
  // Throws Error internal with the call's name while a graph is captured.
  void refuse_in_capture(std::string_view call) const;

 private:
  virtual void do_begin_capture() = 0;
  virtual std::unique_ptr<CudaGraph> do_end_capture() = 0;
  virtual void do_launch(const KernelEntry& kernel, Grid grid,
                         std::span<const std::byte> params) = 0;

  bool is_capturing_ = false;
};

// Captures a device's calls until finish(); without that they are forgotten.
class GraphCapture {
 public:
  explicit GraphCapture(CudaDevice& device) : device_(device) { device.begin_capture(); }
  ~GraphCapture();
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;

  std::unique_ptr<CudaGraph> finish() { return device_.end_capture(); }

 private:
  CudaDevice& device_;
};

// In which order the emulation runs the threads of a block between two barriers, and its blocks: a
// race between them changes a result's bits from one order to another.
enum class ThreadOrder : uint8_t { ascending, descending, shuffled };

struct EmulationOptions {
  ThreadOrder order = ThreadOrder::ascending;
  uint64_t seed = 0;           // of shuffled
  int num_threads = 1;         // of the CPU, which share the blocks of a launch
  bool guards_memory = false;  // the device's memory is inaccessible outside launches and copies
  // Asynchronous copies land where they begin instead of where they are waited for; a GPU's do so
  // anywhere between.
  bool lands_copies_early = false;
  // Kernels that may begin before earlier ones have ended do so: some blocks run as far as they do
  // without waiting for those. Launches are then done when a later call needs their results.
  bool begins_kernels_early = false;
  // "kernels/cuda/code/norms.h:31": the barrier, warp barrier or wait on this line does nothing, as
  // if it were missing.
  std::string skipped_sync;
  size_t total_bytes = size_t{4} << 30;
  uint32_t shared_bytes = kMostSharedBytes;  // of a block, at most
};

std::unique_ptr<CudaDevice> make_emulated_device(const EmulationOptions& options = {});

// The number of GPUs; 0 where there is no driver.
int num_cuda_devices();
// Throws Error unsupported where there is no driver, no such device, or none that the binary has
// kernels for; it says which.
std::unique_ptr<CudaDevice> open_cuda_device(int index);

}  // namespace paceline::cuda
