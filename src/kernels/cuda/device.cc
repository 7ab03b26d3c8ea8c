#include "kernels/cuda/device.h"

#include <fmt/format.h>

#include "base/error.h"

namespace paceline::cuda {
namespace {

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" (9.0).
constexpr uint32_t kMostThreads = 1024;
constexpr size_t kMostParamBytes = 4096;
constexpr uint32_t kMostBlocksX = 0x7FFFFFFF;
constexpr uint32_t kMostBlocksYZ = 65535;

void check_limit(const KernelEntry& kernel, std::string_view what, size_t found, size_t most) {
  if (found <= most) return;
  throw Error(ErrorCode::internal, fmt::format("kernel {}: {} {}, a GPU takes at most {}",
                                               kernel.name, found, what, most));
}

}  // namespace

void CudaDevice::launch(const KernelEntry& kernel, Grid grid, std::span<const std::byte> params) {
  check_limit(kernel, "threads in a block", kernel.threads, kMostThreads);
  check_limit(kernel, "bytes of shared memory in a block", kernel.shared_bytes, kMostSharedBytes);
  check_limit(kernel, "bytes of parameters", params.size(), kMostParamBytes);
  check_limit(kernel, "blocks along x", grid.x, kMostBlocksX);
  check_limit(kernel, "blocks along y", grid.y, kMostBlocksYZ);
  check_limit(kernel, "blocks along z", grid.z, kMostBlocksYZ);
  if (kernel.threads == 0 || kernel.threads % 32 != 0) {
    throw Error(ErrorCode::internal, fmt::format("kernel {}: {} threads in a block, expected whole "
                                                 "warps of 32",
                                                 kernel.name, kernel.threads));
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  do_launch(kernel, grid, params);
}

void CudaDevice::begin_capture() {
  refuse_in_capture("begin_capture");
  do_begin_capture();
  is_capturing_ = true;
}

std::unique_ptr<CudaGraph> CudaDevice::end_capture() {
  PL_CHECK(is_capturing_, "a capture ends once");
  is_capturing_ = false;
  return do_end_capture();
}

void CudaDevice::refuse_in_capture(std::string_view call) const {
  if (!is_capturing_) return;
  throw Error(ErrorCode::internal,
              fmt::format("{}: a graph is being captured, which takes kernels, clears and copies "
                          "within the device only",
                          call));
}

GraphCapture::~GraphCapture() {
  if (!device_.is_capturing()) return;
  try {
    device_.end_capture();
  } catch (const Error&) {  // what went wrong has been thrown already
  }
}

}  // namespace paceline::cuda
