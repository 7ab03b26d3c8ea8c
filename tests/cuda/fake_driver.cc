#include "tests/cuda/fake_driver.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "paceline/error.h"

namespace paceline::cuda::testing {
namespace {

FakeDriver* driver = nullptr;

constexpr DriverResult kInvalidValue = 1;
constexpr DriverResult kLaunchFailed = 719;

template <class Body>
DriverResult call(const char* name, Body&& body) {
  if (const DriverResult result = driver->begin(name)) return result;
  try {
    body();
  } catch (const Error& error) {
    return error.code() == ErrorCode::exhausted ? kDriverOutOfMemory : kLaunchFailed;
  }
  return 0;
}

void* pointer(DriverAddress address) { return reinterpret_cast<void*>(address); }

void add_device(DriverApi& api) {
  api.init = [](unsigned) { return DriverResult{0}; };
  api.driver_version = [](int* version) { return *version = 13020, DriverResult{0}; };
  api.error_name = [](DriverResult error, const char** text) {
    *text = error == kLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED" : nullptr;
    return error == kLaunchFailed ? DriverResult{0} : kInvalidValue;
  };
  api.error_string = [](DriverResult error, const char** text) {
    *text = error == kLaunchFailed ? "unspecified launch failure" : nullptr;
    return error == kLaunchFailed ? DriverResult{0} : kInvalidValue;
  };
  api.device_count = [](int* count) { return call("count", [&] { *count = 1; }); };
  api.device_get = [](DriverDevice* device, int index) {
    *device = index;
    return DriverResult{0};
  };
  api.device_name = [](char* name, int bytes, DriverDevice) {
    std::strncpy(name, "Fake GPU", static_cast<size_t>(bytes));
    return DriverResult{0};
  };
  api.device_attribute = [](int* value, int attribute, DriverDevice) {
    *value = attribute == kCapabilityMajor          ? 9
             : attribute == kCapabilityMinor        ? 0
             : attribute == kMostSharedBytesOfBlock ? 101376
                                                    : 132;
    return DriverResult{0};
  };
}

void add_context(DriverApi& api) {
  api.retain_context = [](DriverContext* context, DriverDevice) {
    return call("retain_context", [&] {
      ++driver->num_contexts;
      *context = reinterpret_cast<DriverContext>(driver);
    });
  };
  api.release_context = [](DriverDevice) {
    return call("release_context", [] { --driver->num_contexts; });
  };
  api.set_current = [](DriverContext context) {
    return context == reinterpret_cast<DriverContext>(driver) ? DriverResult{0} : kInvalidValue;
  };
  api.create_stream = [](DriverStream* stream, unsigned flags) {
    return call("create_stream", [&] {
      driver->num_streams += flags == kNonBlockingStream ? 1 : 0;
      *stream = reinterpret_cast<DriverStream>(driver);
    });
  };
  api.destroy_stream = [](DriverStream) {
    return call("destroy_stream", [] { --driver->num_streams; });
  };
  api.synchronize = [](DriverStream) {
    return call("synchronize", [] { driver->device->synchronize(); });
  };
}

void add_kernels(DriverApi& api) {
  api.load_module = [](DriverModule* module, const void*) {
    return call("load_module", [&] {
      ++driver->num_modules;
      *module = reinterpret_cast<DriverModule>(driver);
    });
  };
  api.unload_module = [](DriverModule) {
    return call("unload_module", [] { --driver->num_modules; });
  };
  api.get_function = [](DriverFunction* function, DriverModule, const char* name) {
    for (FakeDriver::Kernel& kernel : driver->kernels) {
      if ("paceline_" + std::string(kernel.entry.name) != name) continue;
      *function = reinterpret_cast<DriverFunction>(&kernel);
      return call("get_function", [] {});
    }
    return DriverResult{500};  // CUDA_ERROR_NOT_FOUND
  };
  api.set_function_attribute = [](DriverFunction, int attribute, int) {
    return attribute == kMostDynamicSharedBytes ? call("set_attribute", [] {}) : kInvalidValue;
  };
  api.launch_kernel = [](const DriverLaunch* launch, DriverFunction function, void** params,
                         void**) {
    return call("launch", [&] {
      const auto& kernel = *reinterpret_cast<const FakeDriver::Kernel*>(function);
      KernelEntry entry = kernel.entry;
      entry.threads = launch->threads_x;
      entry.shared_bytes = launch->shared_bytes;
      driver->device->launch(entry, {launch->grid_x, launch->grid_y, launch->grid_z},
                             {static_cast<const std::byte*>(params[0]), kernel.param_bytes});
    });
  };
}

void add_memory(DriverApi& api) {
  api.memory_info = [](size_t* free, size_t* total) {
    *free = driver->device->info().free_bytes;
    *total = driver->device->info().total_bytes;
    return DriverResult{0};
  };
  api.allocate = [](DriverAddress* address, size_t bytes) {
    return call("allocate", [&] {
      *address = reinterpret_cast<DriverAddress>(driver->device->allocate(bytes));
    });
  };
  api.release = [](DriverAddress address) {
    return call("release", [&] { driver->device->release(pointer(address), 0); });
  };
  api.allocate_host = [](void** block, size_t bytes, unsigned) {
    return call("allocate_host", [&] { *block = std::malloc(bytes); });
  };
  api.release_host = [](void* block) { return call("release_host", [&] { std::free(block); }); };
  api.set_bytes = [](DriverAddress to, unsigned char value, size_t bytes, DriverStream) {
    return value == 0 ? call("set_bytes", [&] { driver->device->clear(pointer(to), bytes); })
                      : kInvalidValue;
  };
  api.copy_to_device = [](DriverAddress to, const void* from, size_t bytes, DriverStream) {
    return call("copy_to_device",
                [&] { driver->device->copy_to_device(pointer(to), from, bytes); });
  };
  api.copy_to_host = [](void* to, DriverAddress from, size_t bytes, DriverStream) {
    return call("copy_to_host",
                [&] { driver->device->copy_from_device(to, pointer(from), bytes); });
  };
  api.copy_on_device = [](DriverAddress to, DriverAddress from, size_t bytes, DriverStream) {
    return call("copy_on_device",
                [&] { driver->device->copy_within_device(pointer(to), pointer(from), bytes); });
  };
}

void add_events(DriverApi& api) {
  api.create_event = [](DriverEvent* event, unsigned flags) {
    if (flags != kEventWithoutTiming) return kInvalidValue;
    return call("create_event", [&] {
      *event = reinterpret_cast<DriverEvent>(driver->device->make_event().release());
      ++driver->num_events;
    });
  };
  api.destroy_event = [](DriverEvent event) {
    return call("destroy_event", [&] {
      delete reinterpret_cast<CudaEvent*>(event);
      --driver->num_events;
    });
  };
  api.record_event = [](DriverEvent event, DriverStream) {
    return call("record_event",
                [&] { driver->device->record(*reinterpret_cast<CudaEvent*>(event)); });
  };
  api.wait_for_event = [](DriverEvent event) {
    return call("wait_for_event",
                [&] { driver->device->wait(*reinterpret_cast<CudaEvent*>(event)); });
  };
}

void add_graphs(DriverApi& api) {
  api.begin_capture = [](DriverStream, int mode) {
    if (mode != kCaptureThreadLocal) return kInvalidValue;
    return call("begin_capture", [] { driver->device->begin_capture(); });
  };
  api.end_capture = [](DriverStream, DriverGraph* graph) {
    return call("end_capture", [&] {
      driver->captured = driver->device->end_capture();
      *graph = reinterpret_cast<DriverGraph>(driver->captured.get());
    });
  };
  // What is launched is the captured graph itself.
  api.instantiate_graph = [](DriverGraphExec* exec, DriverGraph, unsigned long long flags) {
    if (flags != 0) return kInvalidValue;
    return call("instantiate_graph", [&] {
      *exec = reinterpret_cast<DriverGraphExec>(driver->captured.release());
      ++driver->num_graphs;
    });
  };
  api.destroy_graph = [](DriverGraph) {
    return call("destroy_graph", [] { driver->captured.reset(); });
  };
  api.launch_graph = [](DriverGraphExec exec, DriverStream) {
    return call("launch_graph",
                [&] { driver->device->launch(*reinterpret_cast<CudaGraph*>(exec)); });
  };
  api.destroy_graph_exec = [](DriverGraphExec exec) {
    return call("destroy_graph_exec", [&] {
      delete reinterpret_cast<CudaGraph*>(exec);
      --driver->num_graphs;
    });
  };
}

}  // namespace

FakeDriver::FakeDriver() : device(make_emulated_device({.total_bytes = 1 << 20})), api_() {
  add_device(api_);
  add_context(api_);
  add_kernels(api_);
  add_memory(api_);
  add_events(api_);
  add_graphs(api_);
  driver = this;
}

FakeDriver::~FakeDriver() { driver = nullptr; }

void FakeDriver::fail_next(std::string call, DriverResult result) {
  failing_call_ = std::move(call);
  failing_result_ = result;
}

int FakeDriver::count_of(const std::string& call) const {
  return static_cast<int>(std::count(calls_.begin(), calls_.end(), call));
}

DriverResult FakeDriver::begin(const char* call) {
  calls_.push_back(call);
  if (failing_call_ != call) return 0;
  failing_call_.clear();
  return failing_result_;
}

}  // namespace paceline::cuda::testing
