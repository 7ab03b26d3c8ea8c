// DriverApi is the part of NVIDIA's driver that we call, declared here so that no header or library
// of CUDA is needed to build. Source: CUDA Driver API reference (names, signatures, values).
#pragma once

#include <cstddef>
#include <string>

namespace paceline::cuda {

using DriverResult = int;  // CUresult; 0 is success
constexpr DriverResult kDriverOutOfMemory = 2;
constexpr DriverResult kDriverNoDevice = 100;
constexpr DriverResult kDriverNoKernelImage = 209;

using DriverDevice = int;
using DriverAddress = unsigned long long;  // CUdeviceptr
using DriverContext = struct DriverContextTag*;
using DriverModule = struct DriverModuleTag*;
using DriverFunction = struct DriverFunctionTag*;
using DriverStream = struct DriverStreamTag*;
using DriverEvent = struct DriverEventTag*;
using DriverGraph = struct DriverGraphTag*;
using DriverGraphExec = struct DriverGraphExecTag*;

// CUdevice_attribute, CUfunction_attribute, flags.
constexpr int kMultiprocessorCount = 16;
constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;
constexpr int kMostSharedBytesOfBlock = 97;  // with kMostDynamicSharedBytes of its function
constexpr int kMostDynamicSharedBytes = 8;
constexpr unsigned kNonBlockingStream = 1;
constexpr unsigned kEventWithoutTiming = 2;
constexpr int kCaptureThreadLocal = 1;  // CUstreamCaptureMode: other threads may call anything

// CUlaunchAttribute; this one's value says whether the kernel may begin before the one in front of
// it in the stream has ended.
struct DriverLaunchAttribute {
  int id = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
  alignas(8) int value[16] = {1};
};
// CUlaunchConfig.
struct DriverLaunch {
  unsigned grid_x, grid_y, grid_z;
  unsigned threads_x, threads_y, threads_z;
  unsigned shared_bytes;
  DriverStream stream;
  DriverLaunchAttribute* attributes;
  unsigned num_attributes;
};
static_assert(sizeof(DriverLaunchAttribute) == 72 && sizeof(DriverLaunch) == 56);

struct DriverApi {
  DriverResult (*init)(unsigned flags);
  DriverResult (*driver_version)(int* version);  // 1000 major + 10 minor
  DriverResult (*error_name)(DriverResult error, const char** text);
  DriverResult (*error_string)(DriverResult error, const char** text);

  DriverResult (*device_count)(int* count);
  DriverResult (*device_get)(DriverDevice* device, int index);
  DriverResult (*device_name)(char* name, int bytes, DriverDevice device);
  DriverResult (*device_attribute)(int* value, int attribute, DriverDevice device);
  DriverResult (*retain_context)(DriverContext* context, DriverDevice device);
  DriverResult (*release_context)(DriverDevice device);
  DriverResult (*set_current)(DriverContext context);

  DriverResult (*load_module)(DriverModule* module, const void* image);
  DriverResult (*unload_module)(DriverModule module);
  DriverResult (*get_function)(DriverFunction* function, DriverModule module, const char* name);
  DriverResult (*set_function_attribute)(DriverFunction function, int attribute, int value);
  DriverResult (*launch_kernel)(const DriverLaunch* launch, DriverFunction function, void** params,
                                void** extra);

  DriverResult (*memory_info)(size_t* free, size_t* total);
  DriverResult (*allocate)(DriverAddress* address, size_t bytes);
  DriverResult (*release)(DriverAddress address);
  DriverResult (*allocate_host)(void** block, size_t bytes, unsigned flags);
  DriverResult (*release_host)(void* block);
  DriverResult (*set_bytes)(DriverAddress to, unsigned char value, size_t bytes,
                            DriverStream stream);
  DriverResult (*copy_to_device)(DriverAddress to, const void* from, size_t bytes,
                                 DriverStream stream);
  DriverResult (*copy_to_host)(void* to, DriverAddress from, size_t bytes, DriverStream stream);
  DriverResult (*copy_on_device)(DriverAddress to, DriverAddress from, size_t bytes,
                                 DriverStream stream);

  DriverResult (*create_stream)(DriverStream* stream, unsigned flags);
  DriverResult (*destroy_stream)(DriverStream stream);
  DriverResult (*synchronize)(DriverStream stream);

  DriverResult (*create_event)(DriverEvent* event, unsigned flags);
  DriverResult (*destroy_event)(DriverEvent event);
  DriverResult (*record_event)(DriverEvent event, DriverStream stream);
  DriverResult (*wait_for_event)(DriverEvent event);

  DriverResult (*begin_capture)(DriverStream stream, int mode);
  DriverResult (*end_capture)(DriverStream stream, DriverGraph* graph);
  DriverResult (*instantiate_graph)(DriverGraphExec* exec, DriverGraph graph,
                                    unsigned long long flags);
  DriverResult (*destroy_graph)(DriverGraph graph);
  DriverResult (*launch_graph)(DriverGraphExec exec, DriverStream stream);
  DriverResult (*destroy_graph_exec)(DriverGraphExec exec);
};

// Opens libcuda.so.1 on first use and initialises it. Throws Error unsupported with the reason.
const DriverApi& driver_api();

// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
std::string error_text(const DriverApi& api, DriverResult error);

}  // namespace paceline::cuda
