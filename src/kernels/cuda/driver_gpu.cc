#include "kernels/cuda/driver_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/device_lost.h"
#include "base/error.h"

namespace paceline::cuda {
namespace {

// Above it a kernel must ask for dynamic shared memory (CUDA C++ Programming Guide).
constexpr uint32_t kSharedBytesWithoutAsking = 48 * 1024;
constexpr int kHopper = 90;  // from whose compute capability on kernels may begin early

DriverAddress address_of(const void* block) { return reinterpret_cast<DriverAddress>(block); }

DriverDevice find_device(const DriverApi& api, int index) {
  int count = 0;
  const DriverResult result = api.device_count(&count);
  if (result != 0 && result != kDriverNoDevice) {
    throw Error(ErrorCode::unsupported, "the GPUs can't be counted: " + error_text(api, result));
  }
  DriverDevice device = 0;
  if (index < 0 || index >= count || api.device_get(&device, index) != 0) {
    throw Error(ErrorCode::unsupported,
                fmt::format("there is no GPU {}: the driver has {} (CUDA_VISIBLE_DEVICES hides "
                            "others)",
                            index, count));
  }
  return device;
}

// Errors behind which the driver refuses all further work of the process (CUDA Driver API,
// CUresult: "any further CUDA work will return the same error"), uncorrectable memory, and unknown
// ones.
bool loses_device(DriverResult result) {
  constexpr DriverResult kEccUncorrectable = 214, kNvlinkUncorrectable = 220, kContained = 226,
                         kIllegalAddress = 700, kLaunchTimeout = 702, kContextIsDestroyed = 709,
                         kAssert = 710, kHardwareStackError = 714, kIllegalInstruction = 715,
                         kMisalignedAddress = 716, kInvalidAddressSpace = 717, kInvalidPc = 718,
                         kLaunchFailed = 719, kTensorMemoryLeak = 721, kMpsClientTerminated = 810,
                         kExternalDevice = 911, kUnknown = 999;
  constexpr std::array kFatal = {kEccUncorrectable,
                                 kNvlinkUncorrectable,
                                 kContained,
                                 kIllegalAddress,
                                 kLaunchTimeout,
                                 kContextIsDestroyed,
                                 kAssert,
                                 kHardwareStackError,
                                 kIllegalInstruction,
                                 kMisalignedAddress,
                                 kInvalidPc,
                                 kInvalidAddressSpace,
                                 kLaunchFailed,
                                 kTensorMemoryLeak,
                                 kExternalDevice,
                                 kMpsClientTerminated,
                                 kUnknown};
  return std::ranges::find(kFatal, result) != kFatal.end();
}

int attribute(const DriverApi& api, int which, DriverDevice device) {
  int value = 0;
  return api.device_attribute(&value, which, device) == 0 ? value : 0;
}

CudaDeviceInfo describe(const DriverApi& api, DriverDevice device) {
  std::array<char, 256> name{};
  api.device_name(name.data(), static_cast<int>(name.size()) - 1, device);
  int version = 0;
  api.driver_version(&version);
  return {.name = name.data(),
          .capability = attribute(api, kCapabilityMajor, device) * 10 +
                        attribute(api, kCapabilityMinor, device),
          .multiprocessors = attribute(api, kMultiprocessorCount, device),
          .shared_bytes = static_cast<uint32_t>(attribute(api, kMostSharedBytesOfBlock, device)),
          .driver = fmt::format("{}.{}", version / 1000, version % 1000 / 10)};
}

}  // namespace

class DriverGpu::Graph final : public CudaGraph {
 public:
  Graph(const DriverApi& api, DriverContext context, DriverGraphExec exec)
      : api_(api), context_(context), exec_(exec) {}
  ~Graph() override {
    api_.set_current(context_);
    api_.destroy_graph_exec(exec_);
  }
  DriverGraphExec exec() const { return exec_; }

 private:
  const DriverApi& api_;
  DriverContext context_;
  DriverGraphExec exec_;
};

class DriverGpu::Event final : public CudaEvent {
 public:
  Event(const DriverApi& api, DriverContext context, DriverEvent event)
      : api_(api), context_(context), event_(event) {}
  ~Event() override {
    api_.set_current(context_);
    api_.destroy_event(event_);
  }
  DriverEvent event() const { return event_; }

 private:
  const DriverApi& api_;
  DriverContext context_;
  DriverEvent event_;
};

DriverGpu::DriverGpu(const DriverApi& api, int index, const KernelBinary& binary)
    : api_(api), device_(find_device(api, index)), info_(describe(api, device_)) {
  if (binary.bytes.empty()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: this build has no kernels for GPUs (PACELINE_CUDA, docs/gpu.md)",
                            info_.name));
  }
  check(api_.retain_context(&context_, device_), "open the GPU");
  try {
    enter();
    check(api_.create_stream(&stream_, kNonBlockingStream), "make a stream");
    load(binary);
  } catch (const Error&) {
    close();
    throw;
  }
}

DriverGpu::~DriverGpu() { close(); }

void DriverGpu::close() noexcept {
  api_.set_current(context_);
  if (stream_ != nullptr) {
    api_.synchronize(stream_);
    api_.destroy_stream(stream_);
  }
  if (module_ != nullptr) api_.unload_module(module_);
  api_.release_context(device_);
}

void DriverGpu::load(const KernelBinary& binary) {
  const DriverResult result = api_.load_module(&module_, binary.bytes.data());
  int version = 0;
  api_.driver_version(&version);
  if (result != 0 && version / 1000 < binary.cuda) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: its driver is for CUDA {}, the kernels of this build need one for "
                            "CUDA {} or newer: update the driver ({})",
                            info_.name, info_.driver, binary.cuda, error_text(api_, result)));
  }
  if (result == kDriverNoKernelImage) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} (compute capability {}.{}): this build has kernels for {} only", info_.name,
                    info_.capability / 10, info_.capability % 10, binary.architectures));
  }
  check(result, "load the kernels");
}

void DriverGpu::enter() const { check(api_.set_current(context_), "use the GPU's context"); }

void DriverGpu::check(DriverResult result, std::string_view what) const {
  if (result == 0) return;
  const std::string message =
      fmt::format("{}: can't {}: {}", info_.name, what, error_text(api_, result));
  if (loses_device(result)) throw DeviceLost(message);
  throw Error(ErrorCode::internal, message);
}

CudaDeviceInfo DriverGpu::info() const {
  enter();
  CudaDeviceInfo info = info_;
  check(api_.memory_info(&info.free_bytes, &info.total_bytes), "ask for free memory");
  return info;
}

void* DriverGpu::allocate(size_t bytes) {
  refuse_in_capture("allocate");
  enter();
  DriverAddress address = 0;
  const DriverResult result = api_.allocate(&address, bytes == 0 ? 1 : bytes);
  if (result == kDriverOutOfMemory) {
    const CudaDeviceInfo now = info();
    throw Error(ErrorCode::exhausted,
                fmt::format("{} has no memory for {} bytes: {} of {} are free", info_.name, bytes,
                            now.free_bytes, now.total_bytes));
  }
  check(result, fmt::format("allocate {} bytes", bytes));
  return reinterpret_cast<void*>(address);
}

void DriverGpu::release(void* block, size_t /*bytes*/) noexcept {
  api_.set_current(context_);
  api_.release(address_of(block));
}

void* DriverGpu::allocate_pinned(size_t bytes) {
  refuse_in_capture("allocate_pinned");
  enter();
  void* block = nullptr;
  const DriverResult result = api_.allocate_host(&block, bytes == 0 ? 1 : bytes, 0);
  if (result == kDriverOutOfMemory) {
    throw Error(ErrorCode::exhausted, fmt::format("no memory for {} pinned bytes", bytes));
  }
  check(result, fmt::format("allocate {} pinned bytes", bytes));
  pinned_[static_cast<const std::byte*>(block)] = bytes;
  return block;
}

void DriverGpu::release_pinned(void* block, size_t /*bytes*/) noexcept {
  pinned_.erase(static_cast<const std::byte*>(block));
  api_.set_current(context_);
  api_.release_host(block);
}

bool DriverGpu::is_pinned(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  const auto next = pinned_.upper_bound(byte);
  if (next == pinned_.begin()) return false;
  const auto& [block, bytes] = *std::prev(next);
  return static_cast<size_t>(byte - block) < bytes;
}

void DriverGpu::clear(void* block, size_t bytes) {
  if (bytes == 0) return;
  enter();
  check(api_.set_bytes(address_of(block), 0, bytes, stream_), fmt::format("clear {} bytes", bytes));
}

void DriverGpu::copy_to_device(void* to, const void* from, size_t bytes) {
  refuse_in_capture("copy_to_device");
  if (bytes == 0) return;
  enter();
  check(api_.copy_to_device(address_of(to), from, bytes, stream_),
        fmt::format("copy {} bytes to the GPU", bytes));
  // The driver has taken a copy of pageable memory; it reads pinned memory later.
  if (is_pinned(from)) synchronize();
}

void DriverGpu::copy_from_device(void* to, const void* from, size_t bytes) {
  refuse_in_capture("copy_from_device");
  if (bytes == 0) return;
  enter();
  check(api_.copy_to_host(to, address_of(from), bytes, stream_),
        fmt::format("copy {} bytes from the GPU", bytes));
  synchronize();
}

void DriverGpu::copy_within_device(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  enter();
  check(api_.copy_on_device(address_of(to), address_of(from), bytes, stream_),
        fmt::format("copy {} bytes on the GPU", bytes));
}

void DriverGpu::synchronize() {
  refuse_in_capture("synchronize");
  enter();
  check(api_.synchronize(stream_), "finish the work on the GPU");
}

void DriverGpu::do_begin_capture() {
  enter();
  check(api_.begin_capture(stream_, kCaptureThreadLocal), "capture a graph");
}

std::unique_ptr<CudaGraph> DriverGpu::do_end_capture() {
  enter();
  DriverGraph graph = nullptr;
  check(api_.end_capture(stream_, &graph), "end a graph's capture");
  DriverGraphExec exec = nullptr;
  const DriverResult result = api_.instantiate_graph(&exec, graph, 0);
  api_.destroy_graph(graph);
  check(result, "instantiate a graph");
  return std::make_unique<Graph>(api_, context_, exec);
}

void DriverGpu::launch(const CudaGraph& graph) {
  refuse_in_capture("launch of a graph");
  enter();
  check(api_.launch_graph(dynamic_cast<const Graph&>(graph).exec(), stream_), "launch a graph");
}

std::unique_ptr<CudaEvent> DriverGpu::make_event() {
  refuse_in_capture("make_event");
  enter();
  DriverEvent event = nullptr;
  check(api_.create_event(&event, kEventWithoutTiming), "make an event");
  return std::make_unique<Event>(api_, context_, event);
}

void DriverGpu::record(CudaEvent& event) {
  refuse_in_capture("record");
  enter();
  check(api_.record_event(dynamic_cast<Event&>(event).event(), stream_), "record an event");
}

void DriverGpu::wait(const CudaEvent& event) {
  refuse_in_capture("wait");
  enter();
  check(api_.wait_for_event(dynamic_cast<const Event&>(event).event()),
        "finish the work before an event on the GPU");
}

DriverFunction DriverGpu::find_function(const KernelEntry& kernel) {
  const auto found = functions_.find(kernel.name);
  if (found != functions_.end()) return found->second;
  const std::string symbol = fmt::format("paceline_{}", kernel.name);
  DriverFunction function = nullptr;
  check(api_.get_function(&function, module_, symbol.c_str()),
        fmt::format("find the kernel {}", kernel.name));
  if (kernel.shared_bytes > kSharedBytesWithoutAsking) {
    check(api_.set_function_attribute(function, kMostDynamicSharedBytes,
                                      static_cast<int>(kernel.shared_bytes)),
          fmt::format("give the kernel {} {} bytes of shared memory", kernel.name,
                      kernel.shared_bytes));
  }
  functions_.emplace(kernel.name, function);
  return function;
}

// Blocks that wait hold what the kernel in front of them could use: only a few may.
bool DriverGpu::begins_early(const KernelEntry& kernel, Grid grid) const {
  constexpr int64_t kMostOfMultiprocessor = 4;
  const int64_t blocks = int64_t{grid.x} * grid.y * grid.z;
  return kernel.begins_early && info_.capability >= kHopper &&
         blocks <= kMostOfMultiprocessor * info_.multiprocessors;
}

void DriverGpu::do_launch(const KernelEntry& kernel, Grid grid, std::span<const std::byte> params) {
  enter();
  alignas(64) std::array<std::byte, 4096> bytes;
  std::memcpy(bytes.data(), params.data(), params.size());
  std::array<void*, 1> arguments = {bytes.data()};
  DriverLaunchAttribute early;
  const DriverLaunch launch{.grid_x = grid.x,
                            .grid_y = grid.y,
                            .grid_z = grid.z,
                            .threads_x = kernel.threads,
                            .threads_y = 1,
                            .threads_z = 1,
                            .shared_bytes = kernel.shared_bytes,
                            .stream = stream_,
                            .attributes = &early,
                            .num_attributes = begins_early(kernel, grid) ? 1u : 0u};
  check(api_.launch_kernel(&launch, find_function(kernel), arguments.data(), nullptr),
        fmt::format("launch the kernel {}", kernel.name));
}

int num_cuda_devices() {
  try {
    int count = 0;
    return driver_api().device_count(&count) == 0 ? count : 0;
  } catch (const Error&) {
    return 0;
  }
}

std::unique_ptr<CudaDevice> open_cuda_device(int index) {
  return std::make_unique<DriverGpu>(driver_api(), index, kernel_binary());
}

}  // namespace paceline::cuda
