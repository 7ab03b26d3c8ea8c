// EmulatedDevice runs kernels on the CPU, thread by thread, and reports what a GPU leaves
// undefined.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/emulation/block_run.h"
#include "kernels/cuda/emulation/device_memory.h"
#include "kernels/cuda/emulation/early_launch.h"

namespace paceline::cuda::emulation {

// Every call is done when it returns, but for graphs: one runs as late as it may, when the CPU
// waits for it or another call needs its results. So what reads too early reads old bytes. The same
// goes for the last few launches where kernels begin early. A report spoils the device.
class EmulatedDevice final : public CudaDevice {
 public:
  explicit EmulatedDevice(const EmulationOptions& options);

  CudaDeviceInfo info() const override;
  void* allocate(size_t bytes) override;
  void release(void* block, size_t bytes) noexcept override;
  void will_cache() noexcept override;
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

  // "kernels/cuda/code/norms.h:31": every barrier, warp barrier and wait that launches have met.
  std::vector<std::string> sync_sites() const;

 private:
  using Recording = std::vector<std::function<void()>>;
  struct Graph;
  struct Event;

  void do_launch(const KernelEntry& entry, Grid grid, std::span<const std::byte> params) override;
  void do_begin_capture() override;
  std::unique_ptr<CudaGraph> do_end_capture() override;
  // Throws if the device is spoiled. Records the work where a graph is captured, else does it
  // behind all graphs.
  void run_or_record(std::function<void()> work);
  // Runs the graphs before this place in the order of launches.
  void run_graphs(int64_t end);
  void run_all_graphs() { run_graphs(num_launched_); }
  void launch_work(const LaunchWork& work, const std::shared_ptr<const void>& params);
  // Lets the oldest launch that has begun early end, or all of them.
  void finish_launch();
  void finish_launches();
  // Runs all graphs and ends all launches.
  void settle();
  // The launch's blocks but the first `num_done`.
  void run_blocks(const LaunchWork& work, int64_t num_done);
  void check_not_spoiled() const;
  [[noreturn]] void spoil(const std::string& message);

  EmulationOptions options_;
  DeviceMemory memory_;
  DeviceMemory pinned_memory_;
  ThreadPool threads_;
  std::vector<std::unique_ptr<BlockRun>> runs_;  // by the CPU's thread
  SpareRuns spare_runs_;
  std::deque<std::unique_ptr<EarlyLaunch>> early_launches_;  // in their order
  std::string failure_;
  Recording recording_;
  bool released_in_capture_ = false;
  std::deque<std::shared_ptr<const Recording>> graphs_;  // launched, and still to run
  int64_t num_launched_ = 0;                             // graphs so far
};

}  // namespace paceline::cuda::emulation
