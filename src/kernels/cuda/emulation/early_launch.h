// EarlyLaunch is a launch whose first blocks begin while earlier kernels have not run.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/cuda/emulation/block_order.h"
#include "kernels/cuda/emulation/block_run.h"
#include "kernels/cuda/emulation/shared_memory.h"

namespace paceline::cuda::emulation {

// Runs that no block uses: each has stacks, which take long to make.
class SpareRuns {
 public:
  std::unique_ptr<BlockRun> take();
  void give_back(std::unique_ptr<BlockRun> run) { runs_.push_back(std::move(run)); }
  const std::vector<std::unique_ptr<BlockRun>>& runs() const { return runs_; }

 private:
  std::vector<std::unique_ptr<BlockRun>> runs_;
};

// Throws Error internal where a block wrote behind its shared memory.
void check_shared_memory(const LaunchWork& work, Index3 block_index, const SharedMemory& shared);

class EarlyLaunch {
 public:
  // `params` owns what work.params points to.
  EarlyLaunch(const LaunchWork& work, std::shared_ptr<const void> params, SpareRuns& spare)
      : work_(work), params_(std::move(params)), spare_(spare) {}
  ~EarlyLaunch();
  EarlyLaunch(const EarlyLaunch&) = delete;
  EarlyLaunch& operator=(const EarlyLaunch&) = delete;

  const LaunchWork& work() const { return work_; }

  // Runs its first blocks until they wait for earlier kernels. Throws Error internal.
  void begin();
  // Runs them to their end, and returns how many that were. None on another thread of the CPU,
  // where fibers can't go on: what they did is forgotten. Throws Error internal.
  int64_t finish();

 private:
  struct Block {
    Index3 index;
    std::unique_ptr<BlockRun> run;
    std::unique_ptr<SharedMemory> shared;
  };

  LaunchWork work_;
  std::shared_ptr<const void> params_;
  SpareRuns& spare_;
  std::vector<Block> blocks_;
  std::thread::id thread_;  // that began them
};

}  // namespace paceline::cuda::emulation
