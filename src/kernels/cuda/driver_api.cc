#include "kernels/cuda/driver_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/error.h"

namespace paceline::cuda {
namespace {

[[noreturn]] void refuse(const std::string& reason) {
  throw Error(ErrorCode::unsupported, "no GPU can be used: " + reason);
}

template <class Function>
void find(void* library, const char* name, Function*& function) {
  void* const symbol = ::dlsym(library, name);
  if (symbol == nullptr) {
    refuse(fmt::format("the NVIDIA driver has no function {}; update it (525 or newer)", name));
  }
  function = reinterpret_cast<Function*>(symbol);
}

// The library exports some functions with the suffix _v2, which cuda.h hides behind macros.
DriverApi find_all(void* library) {
  DriverApi api{};
  find(library, "cuInit", api.init);
  find(library, "cuDriverGetVersion", api.driver_version);
  find(library, "cuGetErrorName", api.error_name);
  find(library, "cuGetErrorString", api.error_string);
  find(library, "cuDeviceGetCount", api.device_count);
  find(library, "cuDeviceGet", api.device_get);
  find(library, "cuDeviceGetName", api.device_name);
  find(library, "cuDeviceGetAttribute", api.device_attribute);
  find(library, "cuDevicePrimaryCtxRetain", api.retain_context);
  find(library, "cuDevicePrimaryCtxRelease_v2", api.release_context);
  find(library, "cuCtxSetCurrent", api.set_current);
  find(library, "cuModuleLoadData", api.load_module);
  find(library, "cuModuleUnload", api.unload_module);
  find(library, "cuModuleGetFunction", api.get_function);
  find(library, "cuFuncSetAttribute", api.set_function_attribute);
  find(library, "cuLaunchKernelEx", api.launch_kernel);
  find(library, "cuMemGetInfo_v2", api.memory_info);
  find(library, "cuMemAlloc_v2", api.allocate);
  find(library, "cuMemFree_v2", api.release);
  find(library, "cuMemHostAlloc", api.allocate_host);
  find(library, "cuMemFreeHost", api.release_host);
  find(library, "cuMemsetD8Async", api.set_bytes);
  find(library, "cuMemcpyHtoDAsync_v2", api.copy_to_device);
  find(library, "cuMemcpyDtoHAsync_v2", api.copy_to_host);
  find(library, "cuMemcpyDtoDAsync_v2", api.copy_on_device);
  find(library, "cuStreamCreate", api.create_stream);
  find(library, "cuStreamDestroy_v2", api.destroy_stream);
  find(library, "cuStreamSynchronize", api.synchronize);
  find(library, "cuEventCreate", api.create_event);
  find(library, "cuEventDestroy_v2", api.destroy_event);
  find(library, "cuEventRecord", api.record_event);
  find(library, "cuEventSynchronize", api.wait_for_event);
  find(library, "cuStreamBeginCapture_v2", api.begin_capture);
  find(library, "cuStreamEndCapture", api.end_capture);
  find(library, "cuGraphInstantiateWithFlags", api.instantiate_graph);
  find(library, "cuGraphDestroy", api.destroy_graph);
  find(library, "cuGraphLaunch", api.launch_graph);
  find(library, "cuGraphExecDestroy", api.destroy_graph_exec);
  return api;
}

DriverApi open_driver() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // kept to the end
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    refuse(fmt::format("there is no NVIDIA driver ({})", reason == nullptr ? "" : reason));
  }
  const DriverApi api = find_all(library);
  const DriverResult result = api.init(0);
  if (result != 0) refuse("cuInit: " + error_text(api, result));
  return api;
}

}  // namespace

const DriverApi& driver_api() {
  static const DriverApi api = open_driver();  // one that throws is tried again
  return api;
}

std::string error_text(const DriverApi& api, DriverResult error) {
  const char* name = nullptr;
  const char* text = nullptr;
  api.error_name(error, &name);
  api.error_string(error, &text);
  return fmt::format("{} ({})", name == nullptr ? fmt::format("error {}", error) : name,
                     text == nullptr ? "unknown to this driver" : text);
}

}  // namespace paceline::cuda
