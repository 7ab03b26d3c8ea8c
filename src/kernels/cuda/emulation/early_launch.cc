#include "kernels/cuda/emulation/early_launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace paceline::cuda::emulation {
namespace {

constexpr int64_t kMostBlocks = 2;  // that begin early

}  // namespace

std::unique_ptr<BlockRun> SpareRuns::take() {
  if (runs_.empty()) return std::make_unique<BlockRun>();
  std::unique_ptr<BlockRun> run = std::move(runs_.back());
  runs_.pop_back();
  return run;
}

void check_shared_memory(const LaunchWork& work, Index3 block_index, const SharedMemory& shared) {
  if (shared.is_intact()) return;
  throw Error(ErrorCode::internal,
              fmt::format("kernel {}, block ({}, {}, {}): wrote behind its {} bytes of shared "
                          "memory",
                          work.kernel->name, block_index.x, block_index.y, block_index.z,
                          work.kernel->shared_bytes));
}

EarlyLaunch::~EarlyLaunch() {
  for (Block& block : blocks_) spare_.give_back(std::move(block.run));
}

void EarlyLaunch::begin() {
  thread_ = std::this_thread::get_id();
  const BlockOrder order(work_.grid, work_.order, work_.seed);
  for (int64_t place = 0; place < std::min(order.count(), kMostBlocks); ++place) {
    blocks_.push_back({.index = order.block_at(place),
                       .run = spare_.take(),
                       .shared = std::make_unique<SharedMemory>(work_.kernel->shared_bytes,
                                                                work_.kernel->shared_alignment)});
    Block& block = blocks_.back();
    block.shared->poison();
    block.run->begin(work_, block.index, block.shared->get());
  }
}

int64_t EarlyLaunch::finish() {
  if (thread_ != std::this_thread::get_id()) return 0;
  for (Block& block : blocks_) {
    block.run->finish();
    check_shared_memory(work_, block.index, *block.shared);
  }
  return std::ssize(blocks_);
}

}  // namespace paceline::cuda::emulation
