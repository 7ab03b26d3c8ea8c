#include "load/device_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "load/cache_sizing.h"
#include "load/chosen_types.h"
#include "load/device_limits.h"
#include "load/draft_model.h"
#include "load/load_decoder.h"
#include "load/loaded_model.h"
#include "load/model_path.h"
#include "load/open_device.h"
#include "load/stored_model.h"
#include "load/weights_fit.h"
#include "runner/model_runner.h"

namespace paceline {
namespace {

// What a model needs at least: its weights, the activations of the smallest usual step, and the
// keys and values of one sequence.
double least_bytes(const ModelSource& source, const DecoderConfig& config,
                   const LoadOptions& options) {
  constexpr int64_t kRows = 512, kLength = 4096;
  Memory memory;
  const bool reads_files = options.load_format == LoadFormat::files;
  const auto stored = reads_files ? source.open_weights(memory)
                                  : make_dummy_checkpoint(config.dtype, options.seed, memory);
  const auto entries = reads_files ? read_model_tensors(source) : stored->entries();
  const DType dtype = choose_dtype(options.dtype, stored_dtype(entries, config));
  const DType kv_dtype = choose_kv_dtype(options.kv_cache_dtype, DType::bf16);
  const int64_t length =
      options.max_model_len.value_or(std::min<int64_t>(config.max_position, kLength));
  const size_t cached = options.kv_cache_memory_bytes.value_or(
      sequence_bytes(config, length, kv_dtype, choose_state_dtype(options.state_dtype)));
  const size_t activations = runner_activation_bytes(config, {.max_rows = kRows});
  const uint64_t added = reads_files ? bytes_added_by_reading(source) : 0;
  const StoredWeights weights = {.tensors = *stored, .added_bytes = added};
  return kept_weights(source, weights, config, dtype, options).bytes +
         static_cast<double>(cached + activations);
}

double checked_least_bytes(const std::string& model, const BackendLimits& limits,
                           const LoadOptions& options) {
  const ModelSource source = open_model_source(model);
  const DecoderConfig config = read_model_config(source, options.load_format);
  check_device_takes(config, limits, source.files().where(kConfig));
  return least_bytes(source, config, options);
}

// Why the GPU can't take the model; empty: it can.
std::string misfit(cuda::CudaDevice& device, ThreadPool& threads, const LoadOptions& asked) {
  const LoadOptions options = with_speculative_config(asked);
  const BackendLimits limits = cuda::make_cuda_backend(device, threads)->limits();
  double needed = 0;
  try {
    needed = checked_least_bytes(options.model, limits, options);
    if (!options.speculative_model.empty()) {
      LoadOptions of_draft = options;
      of_draft.dtype = DataType::automatic;
      of_draft.kv_cache_memory_bytes = 0;  // a part of the model's
      needed += checked_least_bytes(options.speculative_model, limits, of_draft);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return error.what();
  }
  const cuda::CudaDeviceInfo info = device.info();
  auto room = static_cast<double>(
      useful_device_bytes(info.total_bytes, info.free_bytes, options.gpu_memory_utilization));
  if (options.memory_limit_bytes) {
    room = std::min(room, static_cast<double>(*options.memory_limit_bytes));
  }
  if (needed <= room) return {};
  return fmt::format("the model needs at least {}, and may use {} of its memory",
                     size_figure(needed), size_figure(room));
}

}  // namespace

DeviceChoice choose_device(const LoadOptions& options, ThreadPool& threads) {
  const int num_threads = threads.num_threads();
  const bool is_automatic = options.device == "auto";
  // A GPU that --gpu-layers asks for is not left for the CPU.
  const bool needs_gpu = options.gpu_layers.value_or(0) > 0;
  DeviceChoice choice;
  try {
    choice.device = open_device(options, num_threads);
  } catch (const Error& error) {
    const bool has_gpu = cuda::num_cuda_devices() > 0;
    if (!is_automatic || needs_gpu || !has_gpu) throw;
    choice.note = fmt::format("the CPU computes: --device auto: {}", error.what());
    return choice;
  }
  if (!is_automatic || choice.device == nullptr) return choice;
  const std::string name = choice.device->info().name;
  if (const std::string why = needs_gpu ? "" : misfit(*choice.device, threads, options);
      !why.empty()) {
    choice.device.reset();
    choice.note = fmt::format("the CPU computes: --device auto: {}: {}", name, why);
  } else {
    choice.note = fmt::format("the GPU computes: --device auto found {}", name);
  }
  return choice;
}

}  // namespace paceline
