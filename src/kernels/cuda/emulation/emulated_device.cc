#include "kernels/cuda/emulation/emulated_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "base/device_lost.h"
#include "base/error.h"
#include "kernels/cuda/emulation/block_order.h"
#include "kernels/cuda/emulation/report.h"
#include "kernels/cuda/emulation/shared_memory.h"

namespace paceline::cuda {
namespace emulation {
namespace {

// The report of the block that comes first, whichever thread of the CPU ran it.
class FirstFailure {
 public:
  void add(int64_t place, const std::string& message) {
    const std::lock_guard lock(mutex_);
    if (place_ && *place_ < place) return;
    place_ = place;
    message_ = message;
  }
  const std::string* message() const { return place_ ? &message_ : nullptr; }

 private:
  std::mutex mutex_;
  std::optional<int64_t> place_;
  std::string message_;
};

constexpr size_t kMostPinnedBytes = size_t{1} << 40;
constexpr size_t kMostEarlyLaunches = 3;  // in flight

// "path:line".
SkippedSite skipped_site(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  SkippedSite site{.path = text.substr(0, colon)};
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), site.line);
  return site;
}

}  // namespace

struct EmulatedDevice::Graph final : CudaGraph {
  std::shared_ptr<const Recording> calls;
};

struct EmulatedDevice::Event final : CudaEvent {
  int64_t num_before = 0;  // graphs
};

EmulatedDevice::EmulatedDevice(const EmulationOptions& options)
    : options_(options),
      memory_(options.total_bytes, options.guards_memory),
      pinned_memory_(kMostPinnedBytes, false),
      threads_(options.num_threads) {
  for (int i = 0; i < threads_.num_threads(); ++i) runs_.push_back(std::make_unique<BlockRun>());
}

CudaDeviceInfo EmulatedDevice::info() const {
  return {.name = "emulation",
          .capability = 90,
          .multiprocessors = threads_.num_threads(),
          .shared_bytes = options_.shared_bytes,
          .total_bytes = memory_.total_bytes(),
          .free_bytes = memory_.total_bytes() - memory_.used_bytes(),
          .driver = "none"};
}

void* EmulatedDevice::allocate(size_t bytes) {
  refuse_in_capture("allocate");
  settle();
  check_not_spoiled();
  return memory_.allocate(bytes);
}

void EmulatedDevice::release(void* block, size_t /*bytes*/) noexcept {
  released_in_capture_ |= is_capturing();
  try {
    settle();
  } catch (const Error&) {  // later calls throw it
  }
  memory_.release(block);
}

// Launches that have begun early still use the block: they end before it is poisoned.
void EmulatedDevice::will_cache() noexcept {
  try {
    settle();
  } catch (const Error&) {  // later calls throw it
  }
}

void* EmulatedDevice::allocate_pinned(size_t bytes) {
  refuse_in_capture("allocate_pinned");
  return pinned_memory_.allocate(bytes);
}

void EmulatedDevice::release_pinned(void* block, size_t /*bytes*/) noexcept {
  released_in_capture_ |= is_capturing();
  try {
    settle();
  } catch (const Error&) {  // later calls throw it
  }
  pinned_memory_.release(block);
}

void EmulatedDevice::clear(void* block, size_t bytes) {
  memory_.check_range("clear", block, bytes);
  run_or_record([this, block, bytes] {
    finish_launches();
    const DeviceMemory::Access access(memory_);
    std::memset(block, 0, bytes);
  });
}

void EmulatedDevice::copy_to_device(void* to, const void* from, size_t bytes) {
  refuse_in_capture("copy_to_device");
  settle();
  check_not_spoiled();
  if (bytes == 0) return;
  memory_.check_range("copy to the device", to, bytes);
  const DeviceMemory::Access access(memory_);
  std::memcpy(to, from, bytes);
}

void EmulatedDevice::copy_from_device(void* to, const void* from, size_t bytes) {
  refuse_in_capture("copy_from_device");
  settle();
  check_not_spoiled();
  if (bytes == 0) return;
  memory_.check_range("copy from the device", from, bytes);
  const DeviceMemory::Access access(memory_);
  std::memcpy(to, from, bytes);
}

void EmulatedDevice::copy_within_device(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  memory_.check_range("copy within the device (from)", from, bytes);
  memory_.check_range("copy within the device (to)", to, bytes);
  const auto* const source = static_cast<const std::byte*>(from);
  const auto* const target = static_cast<const std::byte*>(to);
  if (source < target + bytes && target < source + bytes) {
    throw Error(ErrorCode::internal,
                fmt::format("copy within the device: {} bytes overlap their target", bytes));
  }
  run_or_record([this, to, from, bytes] {
    finish_launches();
    const DeviceMemory::Access access(memory_);
    std::memcpy(to, from, bytes);
  });
}

void EmulatedDevice::synchronize() {
  refuse_in_capture("synchronize");
  settle();
  check_not_spoiled();
}

void EmulatedDevice::do_launch(const KernelEntry& entry, Grid grid,
                               std::span<const std::byte> params) {
  const EmulatedKernel* const kernel = find_kernel(entry.name);
  if (kernel == nullptr) {
    throw Error(
        ErrorCode::internal,
        fmt::format("kernel {}: the emulation has none of this name (kernel_list.h)", entry.name));
  }
  if (params.size() != kernel->param_bytes || entry.shared_bytes != kernel->shared_bytes) {
    throw Error(ErrorCode::internal,
                fmt::format("kernel {}: launched with {} bytes of parameters and {} of shared "
                            "memory, it has {} and {}",
                            entry.name, params.size(), entry.shared_bytes, kernel->param_bytes,
                            kernel->shared_bytes));
  }
  if (entry.shared_bytes > options_.shared_bytes) {
    throw Error(ErrorCode::internal,
                fmt::format("kernel {}: {} bytes of shared memory in a block, this device takes at "
                            "most {}",
                            entry.name, entry.shared_bytes, options_.shared_bytes));
  }
  struct Params {
    alignas(64) std::byte bytes[4096];
  };
  const auto copied = std::make_shared<Params>();  // a recording runs it again
  std::memcpy(copied->bytes, params.data(), params.size());
  const LaunchWork launched{.kernel = kernel,
                            .params = copied->bytes,
                            .grid = grid,
                            .num_threads = entry.threads,
                            .order = options_.order,
                            .seed = options_.seed,
                            .lands_copies_early = options_.lands_copies_early,
                            .begins_early = entry.begins_early,
                            .skipped = skipped_site(options_.skipped_sync),
                            .memories = {&memory_, &pinned_memory_}};
  run_or_record([this, launched, copied] { launch_work(launched, copied); });
}

void EmulatedDevice::launch_work(const LaunchWork& work,
                                 const std::shared_ptr<const void>& params) {
  if (!options_.begins_kernels_early) return run_blocks(work, 0);
  if (!work.begins_early) finish_launches();
  early_launches_.push_back(std::make_unique<EarlyLaunch>(work, params, spare_runs_));
  try {
    const DeviceMemory::Access access(memory_);
    if (work.begins_early) early_launches_.back()->begin();
  } catch (const Error& error) {
    spoil(error.what());
  }
  if (early_launches_.size() > kMostEarlyLaunches) finish_launch();
}

void EmulatedDevice::finish_launch() {
  const std::unique_ptr<EarlyLaunch> launch = std::move(early_launches_.front());
  early_launches_.pop_front();
  int64_t num_done = 0;
  try {
    const DeviceMemory::Access access(memory_);
    num_done = launch->finish();
  } catch (const Error& error) {
    spoil(error.what());
  }
  run_blocks(launch->work(), num_done);
}

void EmulatedDevice::finish_launches() {
  while (!early_launches_.empty()) finish_launch();
}

void EmulatedDevice::settle() {
  run_all_graphs();
  finish_launches();
}

void EmulatedDevice::run_or_record(std::function<void()> work) {
  if (is_capturing()) {
    check_not_spoiled();
    recording_.push_back(std::move(work));
    return;
  }
  run_all_graphs();
  check_not_spoiled();
  work();
}

void EmulatedDevice::do_begin_capture() {
  check_not_spoiled();
  recording_.clear();
  released_in_capture_ = false;
}

std::unique_ptr<CudaGraph> EmulatedDevice::do_end_capture() {
  if (std::exchange(released_in_capture_, false)) {
    throw Error(ErrorCode::internal, "release: a graph was being captured, and can't be used");
  }
  auto graph = std::make_unique<Graph>();
  graph->calls = std::make_shared<const Recording>(std::exchange(recording_, {}));
  return graph;
}

void EmulatedDevice::launch(const CudaGraph& graph) {
  refuse_in_capture("launch of a graph");
  check_not_spoiled();
  graphs_.push_back(dynamic_cast<const Graph&>(graph).calls);
  ++num_launched_;
}

std::unique_ptr<CudaEvent> EmulatedDevice::make_event() {
  refuse_in_capture("make_event");
  return std::make_unique<Event>();
}

void EmulatedDevice::record(CudaEvent& event) {
  refuse_in_capture("record");
  dynamic_cast<Event&>(event).num_before = num_launched_;
}

void EmulatedDevice::wait(const CudaEvent& event) {
  refuse_in_capture("wait");
  run_graphs(dynamic_cast<const Event&>(event).num_before);
  finish_launches();
  check_not_spoiled();
}

void EmulatedDevice::run_graphs(int64_t end) {
  while (!graphs_.empty() && num_launched_ - std::ssize(graphs_) < end) {
    const std::shared_ptr<const Recording> calls = std::move(graphs_.front());
    graphs_.pop_front();
    if (!failure_.empty()) continue;
    for (const auto& call : *calls) call();
  }
}

void EmulatedDevice::run_blocks(const LaunchWork& work, int64_t num_done) {
  const DeviceMemory::Access access(memory_);
  const BlockOrder order(work.grid, work.order, work.seed);
  FirstFailure failure;
  const auto run_one = [&](int64_t place, BlockRun& run, SharedMemory& shared) {
    try {
      shared.poison();
      const Index3 index = order.block_at(place);
      run.run(work, index, shared.get());
      check_shared_memory(work, index, shared);
    } catch (const Error& error) {
      failure.add(place, error.what());
    }
  };
  threads_.parallel_for(order.count() - num_done, 1, [&](int64_t begin, int64_t end, int thread) {
    SharedMemory shared(work.kernel->shared_bytes, work.kernel->shared_alignment);
    for (int64_t place = begin; place < end; ++place) {
      run_one(num_done + place, *runs_[static_cast<size_t>(thread)], shared);
    }
  });
  if (const std::string* const message = failure.message()) spoil(*message);
  try {
    const std::string kernel = fmt::format("kernel {}", work.kernel->name);
    memory_.check_zones(kernel);
    pinned_memory_.check_zones(kernel);
  } catch (const Error& error) {
    spoil(error.what());
  }
}

std::vector<std::string> EmulatedDevice::sync_sites() const {
  std::vector<std::string> sites;
  for (const auto& run : runs_) {
    for (const CallSite site : run->sync_sites()) sites.push_back(text_of(site));
  }
  for (const auto& run : spare_runs_.runs()) {
    for (const CallSite site : run->sync_sites()) sites.push_back(text_of(site));
  }
  std::sort(sites.begin(), sites.end());
  sites.erase(std::unique(sites.begin(), sites.end()), sites.end());
  return sites;
}

void EmulatedDevice::check_not_spoiled() const {
  if (!failure_.empty()) throw DeviceLost(failure_);
}

void EmulatedDevice::spoil(const std::string& message) {
  failure_ = message;
  early_launches_.clear();
  throw DeviceLost(message);
}

}  // namespace emulation

std::unique_ptr<CudaDevice> make_emulated_device(const EmulationOptions& options) {
  return std::make_unique<emulation::EmulatedDevice>(options);
}

}  // namespace paceline::cuda
