// BlockRun runs the threads of a block as fibers on one thread of the CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/emulation/call_site.h"
#include "kernels/cuda/emulation/copy_barriers.h"
#include "kernels/cuda/emulation/fiber.h"
#include "kernels/cuda/emulation/fiber_stacks.h"
#include "kernels/cuda/emulation/group_products.h"
#include "kernels/cuda/emulation/kernel_table.h"
#include "kernels/cuda/emulation/pending_copies.h"
#include "kernels/cuda/emulation/thread_state.h"
#include "kernels/cuda/emulation/warp.h"

namespace paceline::cuda::emulation {

class DeviceMemory;

struct LaunchWork {
  const EmulatedKernel* kernel = nullptr;
  const void* params = nullptr;
  Grid grid;
  uint32_t num_threads = 0;  // of a block
  ThreadOrder order = ThreadOrder::ascending;
  uint64_t seed = 0;
  bool lands_copies_early = false;
  bool begins_early = false;  // each block waits for the kernels before it
  SkippedSite skipped;
  std::vector<const DeviceMemory*> memories;  // that copies may read; none: any
};

// A thread runs until it waits; then the next one that waits for nothing does: lane by lane in
// rounds of a warp, warp by warp. Waiting that can't end is reported.
class BlockRun {
 public:
  BlockRun() = default;
  BlockRun(const BlockRun&) = delete;
  BlockRun& operator=(const BlockRun&) = delete;

  // `shared` is the block's memory. Throws Error internal with the kernel's name, the block and the
  // lines where its threads wait.
  void run(const LaunchWork& work, Index3 block_index, void* shared);
  // The same in two parts: until all threads that can go on wait for earlier kernels, and then, on
  // the same thread of the CPU, to the end. `work` and `shared` stay until then.
  void begin(const LaunchWork& work, Index3 block_index, void* shared);
  void finish();

  // What the running thread calls (thread_state.h).
  void sync_block(CallSite site);
  void publish_writes(CallSite site);
  void sync_warp(CallSite site);
  void wait_for_earlier_kernels(CallSite site);
  LaneSlot& warp_slot();
  void wait_for_warp(WarpOperation operation, CallSite site);
  void copy_async(void* to, const void* from, bool is_present, CallSite site);
  void commit_copies();
  void wait_copies(int pending, CallSite site);
  void init_barrier(const void* place, uint32_t arrivals);
  // An arrival, after which the phase waits for `bytes` more of copies.
  void arrive(const void* place, uint32_t bytes, CallSite site);
  void wait_barrier(const void* place, uint32_t parity, CallSite site);
  void copy_bulk(void* to, const void* from, uint32_t bytes, const void* place, CallSite site);
  GroupProducts& group_products() { return current().products; }
  void multiply_group(const GroupProduct& product);
  void wait_products(uint32_t pending, CallSite site);
  // Ends the block where a place isn't in its shared memory at a multiple of 16 bytes.
  void check_shared(const void* place, size_t bytes, std::string_view what, CallSite site);
  // The same where memory is not in one block of the device's or pinned memory.
  void check_source(const void* from, size_t bytes, CallSite site);
  // abandon() ends the block, and run() throws the message.
  void fail(std::string_view message);
  [[noreturn]] void abandon();

  // Barriers and waits that it has met, each once.
  const std::vector<CallSite>& sync_sites() const { return sync_sites_; }

 private:
  enum class Waiting : uint8_t { nothing, warp, block, copies, earlier_kernels, done };
  struct Thread {
    ThreadState state;
    Fiber fiber;
    Waiting waiting = Waiting::nothing;
    CallSite site;
    PendingCopies copies;
    const void* barrier = nullptr;  // that it waits for
    GroupProducts products;
  };

  static void enter_thread();
  void prepare(const LaunchWork& work, Index3 block_index);
  // Lets threads run until all have ended, or the others wait for earlier kernels.
  void run_threads();
  // No thread can go on: a failure unless some wait for earlier kernels.
  void judge_standstill();
  Thread& current();
  Warp& warp_of(const Thread& thread) { return warps_[thread.state.index / 32]; }
  void wait(Waiting what, CallSite site);
  bool skips(CallSite site);
  CopyBarriers::Barrier& barrier_at(const void* place, CallSite site);
  // Lets the phase pass where threads wait for it and it can, and those threads run.
  void pass_phase(CopyBarriers::Barrier& barrier);
  void finish_thread();
  // Computes products that the running thread's warp waits for.
  void compute_products(size_t num_groups, CallSite site);
  // What the threads of a warpgroup did not do alike; empty: nothing.
  std::string product_fault() const;
  void release_barrier();
  Thread* next_thread();
  void choose_warp();
  void begin_round(Warp& warp);
  uint32_t random();
  void resume(Thread& self);
  std::string waiting_threads() const;

  std::unique_ptr<FiberStacks> stacks_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Warp> warps_;
  Fiber owner_;
  BlockState block_;
  const LaunchWork* work_ = nullptr;
  void* shared_ = nullptr;
  CopyBarriers barriers_;
  std::span<const std::byte> copied_from_;  // a block of `memories`
  uint32_t num_warps_ = 0;
  uint32_t warp_ = 0;  // that runs
  uint32_t num_at_barrier_ = 0;
  uint32_t num_done_ = 0;
  bool is_behind_earlier_ = true;  // earlier kernels have ended
  bool has_waited_ = false;        // a thread, for earlier kernels
  uint32_t num_waiting_for_earlier_ = 0;
  uint64_t random_state_ = 0;
  std::string failure_;
  std::vector<CallSite> sync_sites_;
};

}  // namespace paceline::cuda::emulation
