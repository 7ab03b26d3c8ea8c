#include "load/open_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "kernels/cuda/shared_device.h"

namespace paceline {
namespace {

bool wants_emulation() {
  const char* const variable = std::getenv("PACELINE_CUDA_EMULATION");
  return variable != nullptr && std::string_view(variable) == "1";
}

// Whether --device auto has a GPU to try. A cache of weights is for the CPU.
bool has_device_for(const LoadOptions& options) {
  if (!options.weights_cache.empty()) return false;
  return wants_emulation() || cuda::num_cuda_devices() > 0;
}

// The GPU of "cuda" and "cuda:N", and of "auto" where there is one; nothing for the CPU.
std::optional<int> device_index(const LoadOptions& options) {
  constexpr std::string_view kCuda = "cuda", kNumbered = "cuda:";
  const std::string& device = options.device;
  if (device == "auto") return has_device_for(options) ? std::optional(0) : std::nullopt;
  if (device == "cpu") return std::nullopt;
  if (device == kCuda) return 0;
  int index = -1;
  if (device.starts_with(kNumbered)) {
    const char* const end = device.data() + device.size();
    const auto [last, error] = std::from_chars(device.data() + kNumbered.size(), end, index);
    if (error != std::errc() || last != end) index = -1;
  }
  if (index < 0) {
    throw Error(ErrorCode::invalid,
                fmt::format("--device: \"{}\", expected auto, cpu, cuda or cuda:N", device));
  }
  return index;
}

// A GPU's weights are copied when they are loaded.
void check_options_of_devices(const LoadOptions& options) {
  if (!options.weights_cache.empty()) {
    throw Error(ErrorCode::invalid,
                fmt::format("--weights-cache: holds weights for the CPU; leave it out with "
                            "--device {}",
                            options.device));
  }
}

// A device that can't be opened is the one that --device names.
std::unique_ptr<cuda::CudaDevice> open_named(const std::string& name, int index) {
  try {
    return cuda::open_cuda_device(index);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--device {}: {}", name, error.what()));
  }
}

}  // namespace

std::unique_ptr<cuda::CudaDevice> open_device(const LoadOptions& options, int num_threads) {
  const std::optional<int> index = device_index(options);
  if (!index && options.gpu_layers.value_or(0) > 0) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("--gpu-layers: {}, but --device {} computes all layers on the CPU; give "
                    "--device cuda, or leave --gpu-layers out",
                    *options.gpu_layers, options.device));
  }
  if (!index || options.gpu_layers == 0) return nullptr;
  check_options_of_devices(options);
  if (wants_emulation()) {
    constexpr size_t kMemoryBytes = size_t{1} << 30;
    return cuda::share_device(cuda::make_emulated_device(
        {.num_threads = num_threads, .guards_memory = true, .total_bytes = kMemoryBytes}));
  }
  return cuda::share_device(open_named(options.device, *index));
}

void check_gpu_layers(const LoadOptions& options, int64_t num_layers) {
  if (!options.gpu_layers || *options.gpu_layers >= num_layers) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("--gpu-layers: {} of the model's {} layers; a GPU computes all of them, "
                          "or none (0)",
                          *options.gpu_layers, num_layers));
}

size_t useful_device_bytes(size_t total_bytes, size_t free_bytes, double utilization) {
  const auto useful = static_cast<size_t>(utilization * static_cast<double>(total_bytes));
  const size_t used = total_bytes - std::min(free_bytes, total_bytes);
  return useful > used ? useful - used : 0;
}

}  // namespace paceline
