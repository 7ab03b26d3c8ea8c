#include "kernels/cuda/emulation/block_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "kernels/cuda/emulation/device_memory.h"
#include "kernels/cuda/emulation/report.h"

namespace paceline::cuda::emulation {

void BlockRun::run(const LaunchWork& work, Index3 block_index, void* shared) {
  shared_ = shared;
  prepare(work, block_index);
  is_behind_earlier_ = true;
  run_threads();
}

void BlockRun::begin(const LaunchWork& work, Index3 block_index, void* shared) {
  shared_ = shared;
  prepare(work, block_index);
  is_behind_earlier_ = false;
  run_threads();
}

void BlockRun::finish() {
  is_behind_earlier_ = true;
  num_waiting_for_earlier_ = 0;
  if (num_done_ == work_->num_threads) return;
  for (uint32_t i = 0; i < work_->num_threads; ++i) {
    Thread& thread = *threads_[i];
    if (thread.waiting != Waiting::earlier_kernels) continue;
    thread.waiting = Waiting::nothing;
    warp_of(thread).ready |= 1u << i % 32;
  }
  run_threads();
}

void BlockRun::run_threads() {
  ThreadState* const outer = current_thread;
  Thread* const first = next_thread();
  current_thread = &first->state;
  owner_.switch_to(first->fiber);
  current_thread = outer;
  if (failure_.empty()) return;
  throw Error(
      ErrorCode::internal,
      fmt::format("kernel {}, block ({}, {}, {}): {}", work_->kernel->name, block_.block_index.x,
                  block_.block_index.y, block_.block_index.z, failure_));
}

void BlockRun::prepare(const LaunchWork& work, Index3 block_index) {
  if (stacks_ == nullptr) stacks_ = std::make_unique<FiberStacks>(1024);
  while (threads_.size() < work.num_threads) {
    auto thread = std::make_unique<Thread>();
    thread->state = {.block = &block_, .index = static_cast<uint32_t>(threads_.size())};
    thread->fiber.set_stack(stacks_->bottom(threads_.size()), FiberStacks::bytes(threads_.size()));
    threads_.push_back(std::move(thread));
  }
  owner_.set_stack(nullptr, 0);  // another thread of the CPU may have run the last block
  work_ = &work;
  block_ = {.run = this,
            .block_index = block_index,
            .grid_size = {work.grid.x, work.grid.y, work.grid.z}};
  num_warps_ = work.num_threads / 32;
  if (warps_.size() < num_warps_) warps_.resize(num_warps_);
  for (uint32_t i = 0; i < work.num_threads; ++i) {
    threads_[i]->fiber.restart(&BlockRun::enter_thread);
    threads_[i]->waiting = Waiting::nothing;
    threads_[i]->copies.clear();
    threads_[i]->products.clear();
  }
  for (Warp& warp : warps_) warp.arrived = 0;
  barriers_.clear();
  copied_from_ = {};
  num_done_ = 0;
  has_waited_ = false;
  num_waiting_for_earlier_ = 0;
  failure_.clear();
  random_state_ = work.seed * 0x9E3779B97F4A7C15u + block_index.x + 1;
  release_barrier();
}

BlockRun::Thread& BlockRun::current() { return *threads_[current_thread->index]; }

void BlockRun::enter_thread() {
  BlockRun& run = *current_thread->block->run;
  Fiber::begin(run.owner_);
  run.work_->kernel->run(run.work_->params, run.shared_);
  run.finish_thread();
}

void BlockRun::finish_thread() {
  Thread& self = current();
  if (const CallSite* const site = self.copies.first_site()) {
    failure_ = fmt::format("thread {} ends without waiting for the copy that began at {}",
                           self.state.index, text_of(*site));
    abandon();
  }
  failure_ = self.products.fault_at_end();
  if (!failure_.empty()) {
    failure_ = fmt::format("thread {} {}", self.state.index, failure_);
    abandon();
  }
  self.waiting = Waiting::done;
  warp_of(self).ready &= ~(1u << self.state.index % 32);
  if (++num_done_ == work_->num_threads) {
    if (const CallSite* const site = barriers_.first_site()) {
      failure_ = fmt::format("no thread waits for the copy that began at {}", text_of(*site));
    } else if (work_->begins_early && !has_waited_) {
      failure_ = "no thread waits for the kernels before it";
    } else {
      failure_ = product_fault();
    }
    self.fiber.finish_with(owner_);
  }
  Thread* const next = next_thread();
  if (next == nullptr) {
    judge_standstill();
    self.fiber.finish_with(owner_);
    __builtin_unreachable();
  }
  current_thread = &next->state;
  self.fiber.finish_with(next->fiber);
  __builtin_unreachable();
}

void BlockRun::judge_standstill() {
  if (num_waiting_for_earlier_ == 0) failure_ = waiting_threads();
}

void BlockRun::fail(std::string_view message) { failure_ = message; }

// Leaves the block for run(), which throws the failure. What the fiber's stack owns would leak.
void BlockRun::abandon() {
  current().fiber.switch_to(owner_);
  __builtin_unreachable();
}

// Marks the running thread and lets others run until it waits no more.
void BlockRun::wait(Waiting what, CallSite site) {
  Thread& self = current();
  self.waiting = what;
  self.site = site;
  warp_of(self).ready &= ~(1u << self.state.index % 32);
}

void BlockRun::resume(Thread& self) {
  Thread* const next = next_thread();
  if (next == nullptr) {
    judge_standstill();
    self.fiber.switch_to(owner_);
    return;
  }
  if (next == &self) return;
  current_thread = &next->state;
  self.fiber.switch_to(next->fiber);
}

// Whether the barrier or wait at `site` is to do nothing. Lane 0 notes it.
bool BlockRun::skips(CallSite site) {
  if (current_thread->index % 32 == 0 &&
      std::find(sync_sites_.begin(), sync_sites_.end(), site) == sync_sites_.end()) {
    sync_sites_.push_back(site);
  }
  return work_->skipped.is(site);
}

void BlockRun::sync_block(CallSite site) {
  if (!skips(site)) publish_writes(site);
}

void BlockRun::publish_writes(CallSite site) {
  Thread& self = current();
  wait(Waiting::block, site);
  if (++num_at_barrier_ == work_->num_threads) {
    for (uint32_t i = 0; i < work_->num_threads; ++i) {
      if (!(threads_[i]->site == site)) {
        failure_ = waiting_threads();
        abandon();
      }
    }
    release_barrier();
  }
  resume(self);
}

void BlockRun::release_barrier() {
  num_at_barrier_ = 0;
  for (uint32_t i = 0; i < work_->num_threads; ++i) threads_[i]->waiting = Waiting::nothing;
  for (uint32_t i = 0; i < num_warps_; ++i) {
    warps_[i].ready = Warp::kAllLanes;
    warps_[i].pending = 0;
    warps_[i].position = 32;
  }
  warp_ = work_->order == ThreadOrder::descending ? num_warps_ - 1 : 0;
}

void BlockRun::sync_warp(CallSite site) {
  if (!skips(site)) wait_for_warp([](LaneSlots&) {}, site);
}

void BlockRun::wait_for_earlier_kernels(CallSite site) {
  if (skips(site)) return;
  has_waited_ = true;
  if (is_behind_earlier_) return;
  ++num_waiting_for_earlier_;
  wait(Waiting::earlier_kernels, site);
  resume(current());
}

LaneSlot& BlockRun::warp_slot() {
  return warps_[current_thread->index / 32].slots[current_thread->index % 32];
}

void BlockRun::wait_for_warp(WarpOperation operation, CallSite site) {
  Thread& self = current();
  Warp& warp = warp_of(self);
  wait(Waiting::warp, site);
  if (warp.arrived == 0) {
    warp.operation = operation;
    warp.site = site;
  } else if (warp.operation != operation || !(warp.site == site)) {
    failure_ = waiting_threads();
    abandon();
  }
  warp.arrived |= 1u << self.state.index % 32;
  if (warp.arrived == Warp::kAllLanes) {
    operation(warp.slots);
    warp.arrived = 0;
    warp.ready = Warp::kAllLanes;
    const uint32_t first = self.state.index / 32 * 32;
    for (uint32_t i = 0; i < 32; ++i) threads_[first + i]->waiting = Waiting::nothing;
  }
  resume(self);
}

BlockRun::Thread* BlockRun::next_thread() {
  for (;;) {
    Warp& warp = warps_[warp_];
    const int lane = warp.next_lane();
    if (lane >= 0) return threads_[warp_ * 32 + static_cast<uint32_t>(lane)].get();
    if (warp.ready == 0 || work_->order == ThreadOrder::shuffled) choose_warp();
    if (warps_[warp_].ready == 0) return nullptr;
    begin_round(warps_[warp_]);
  }
}

// The next warp that has a lane to run, if there is one.
void BlockRun::choose_warp() {
  const uint32_t step = work_->order == ThreadOrder::descending ? num_warps_ - 1 : 1;
  if (work_->order == ThreadOrder::shuffled) warp_ = random() % num_warps_;
  for (uint32_t i = 0; i < num_warps_ && warps_[warp_].ready == 0; ++i) {
    warp_ = (warp_ + step) % num_warps_;
  }
}

void BlockRun::begin_round(Warp& warp) {
  switch (work_->order) {
    case ThreadOrder::ascending:
      return warp.begin_round(kAscendingLanes);
    case ThreadOrder::descending:
      return warp.begin_round(kDescendingLanes);
    case ThreadOrder::shuffled:
      return warp.begin_round({.stride = random() | 1u, .first = random()});
  }
}

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
uint32_t BlockRun::random() {
  uint64_t z = random_state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<uint32_t>(z >> 32);
}

void BlockRun::check_shared(const void* place, size_t bytes, std::string_view what, CallSite site) {
  check_alignment(place, PendingCopies::kBytes, site);
  const auto offset = reinterpret_cast<uintptr_t>(place) - reinterpret_cast<uintptr_t>(shared_);
  if (offset > work_->kernel->shared_bytes || work_->kernel->shared_bytes - offset < bytes) {
    failure_ = fmt::format("thread {} {} outside of shared memory at {}", current_thread->index,
                           what, text_of(site));
    abandon();
  }
}

void BlockRun::check_source(const void* from, size_t bytes, CallSite site) {
  check_alignment(from, PendingCopies::kBytes, site);
  if (work_->memories.empty()) return;
  const auto is_in_block = [this, from, bytes] {
    const auto offset =
        reinterpret_cast<uintptr_t>(from) - reinterpret_cast<uintptr_t>(copied_from_.data());
    return offset <= copied_from_.size() && bytes <= copied_from_.size() - offset;
  };
  if (is_in_block()) return;
  for (const DeviceMemory* const memory : work_->memories) {
    copied_from_ = memory->block_at(from);
    if (is_in_block()) return;
  }
  failure_ =
      fmt::format("thread {} copies {} bytes that are not in one block of the device's at {}",
                  current_thread->index, bytes, text_of(site));
  abandon();
}

void BlockRun::copy_async(void* to, const void* from, bool is_present, CallSite site) {
  check_shared(to, PendingCopies::kBytes, "copies to", site);
  if (is_present) check_source(from, PendingCopies::kBytes, site);
  current().copies.begin(to, is_present ? from : nullptr, site, work_->lands_copies_early);
}

void BlockRun::commit_copies() { current().copies.commit(); }

void BlockRun::wait_copies(int pending, CallSite site) {
  if (!skips(site)) current().copies.wait(static_cast<size_t>(pending));
}

CopyBarriers::Barrier& BlockRun::barrier_at(const void* place, CallSite site) {
  CopyBarriers::Barrier* const barrier = barriers_.find(place);
  if (barrier == nullptr) {
    failure_ = fmt::format("thread {} uses a barrier that was not made at {}",
                           current_thread->index, text_of(site));
    abandon();
  }
  return *barrier;
}

void BlockRun::init_barrier(const void* place, uint32_t arrivals) {
  barriers_.init(place, arrivals);
}

void BlockRun::arrive(const void* place, uint32_t bytes, CallSite site) {
  CopyBarriers::Barrier& barrier = barrier_at(place, site);
  if (barrier.missing == 0) {
    failure_ =
        fmt::format("thread {} arrives at a barrier that has all arrivals of its phase at {}",
                    current_thread->index, text_of(site));
    abandon();
  }
  --barrier.missing;
  barrier.missing_bytes += bytes;
  pass_phase(barrier);
}

void BlockRun::copy_bulk(void* to, const void* from, uint32_t bytes, const void* place,
                         CallSite site) {
  check_shared(to, bytes, "copies to", site);
  check_source(from, bytes, site);
  if (bytes % PendingCopies::kBytes != 0) report_misaligned(to, PendingCopies::kBytes, site);
  CopyBarriers::Barrier& barrier = barrier_at(place, site);
  barrier.copies.push_back({to, from, bytes, site, false});
  if (work_->lands_copies_early) barrier.land(barrier.copies.back());
  pass_phase(barrier);
}

// A phase that nothing waits for passes too, once no copy of it is under way: its last arrival may
// come before anybody waits.
void BlockRun::pass_phase(CopyBarriers::Barrier& barrier) {
  const bool has_copies = !barrier.copies.empty() || barrier.missing_bytes != 0;
  if ((barrier.waiting == 0 && has_copies) || !barrier.try_pass()) return;
  for (uint32_t i = 0; i < work_->num_threads && barrier.waiting > 0; ++i) {
    Thread& thread = *threads_[i];
    if (thread.waiting != Waiting::copies || thread.barrier != barrier.place) continue;
    thread.waiting = Waiting::nothing;
    warp_of(thread).ready |= 1u << i % 32;
    --barrier.waiting;
  }
}

void BlockRun::wait_barrier(const void* place, uint32_t parity, CallSite site) {
  if (skips(site)) return;
  CopyBarriers::Barrier& barrier = barrier_at(place, site);
  if (barrier.phase % 2 != parity) return;  // the phase of that parity has passed
  Thread& self = current();
  self.barrier = place;
  ++barrier.waiting;
  wait(Waiting::copies, site);
  pass_phase(barrier);
  resume(self);
}

void BlockRun::multiply_group(const GroupProduct& product) {
  GroupProducts& products = group_products();
  failure_ = products.fault_at_issue();  // a string of this function's would leak
  const auto check = [&](const CoreMatrices& from, uint32_t rows) {
    check_shared(from.first, (rows / 8 - 1) * from.row_bytes + from.k_bytes + 128,
                 "multiplies matrices", product.site);
    if (from.row_bytes % 16 != 0 || from.k_bytes % 16 != 0 || from.row_bytes >= kMostCoreStride ||
        from.k_bytes >= kMostCoreStride) {
      failure_ = fmt::format("multiplies matrices with strides of {} and {} bytes", from.k_bytes,
                             from.row_bytes);
    }
  };
  check(product.b, product.columns);
  if (product.a_registers == nullptr) check(product.a, kGroupRows);
  if (!failure_.empty()) {
    failure_ =
        fmt::format("thread {} {} at {}", current_thread->index, failure_, text_of(product.site));
    abandon();
  }
  products.issue(product);
  if (work_->lands_copies_early) compute_products(products.all_groups(), product.site);
}

void BlockRun::compute_products(size_t num_groups, CallSite site) {
  wait_for_warp([](LaneSlots&) {}, site);
  if (current_thread->index % 32 == 0) {
    std::array<GroupProducts*, 32> lanes;
    for (uint32_t i = 0; i < 32; ++i) lanes[i] = &threads_[current_thread->index + i]->products;
    const uint32_t warp = current_thread->index / 32;
    failure_ = GroupProducts::compute(lanes, warp % 4, num_groups);
    if (!failure_.empty()) {
      failure_ = fmt::format("warp {}: {}", warp, failure_);
      abandon();
    }
  }
  wait_for_warp([](LaneSlots&) {}, site);
}

void BlockRun::wait_products(uint32_t pending, CallSite site) {
  if (skips(site)) return;
  compute_products(group_products().groups_before(pending), site);
  group_products().reveal();
}

std::string BlockRun::product_fault() const {
  for (uint32_t i = 0; i < work_->num_threads; ++i) {
    const uint32_t first = i / kGroupThreads * kGroupThreads;
    if (!threads_[i]->products.has_any()) continue;
    if (first + kGroupThreads > work_->num_threads) {
      return fmt::format("thread {} multiplies in a group of fewer than four warps", i);
    }
    if (threads_[i]->products.history() != threads_[first]->products.history()) {
      return fmt::format("threads {} and {} of a group multiply different matrices", first, i);
    }
  }
  return {};
}

std::string BlockRun::waiting_threads() const {
  std::vector<ThreadReport> reports;
  for (uint32_t i = 0; i < work_->num_threads; ++i) {
    const Thread& thread = *threads_[i];
    std::string what = "may run";
    if (thread.waiting == Waiting::done) what = "ended";
    if (thread.waiting == Waiting::warp) what = "in a warp function at " + text_of(thread.site);
    if (thread.waiting == Waiting::copies) {
      what = "waits for a barrier's copies and arrivals at " + text_of(thread.site);
    }
    if (thread.waiting == Waiting::earlier_kernels) {
      what = "waits for earlier kernels at " + text_of(thread.site);
    }
    if (thread.waiting == Waiting::block) what = "at the barrier at " + text_of(thread.site);
    reports.push_back({.thread = i, .what = what});
  }
  return "its threads wait for different things: " + text_of(reports);
}

}  // namespace paceline::cuda::emulation
