#include "load/weights_fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/option_names.h"
#include "base/system_memory.h"
#include "kernels/cuda/device.h"
#include "models/model_costs.h"
#include "weights/quantizing_checkpoint.h"

namespace paceline {
namespace {

// With a scale and a shift of 16 bits for each group of 64.
double bytes_per_code(LoadQuantization quantization) {
  constexpr double kOfGroup = 4.0 / 64.0;
  return (quantization == LoadQuantization::q4 ? 0.5 : 1.0) + kOfGroup;
}

// Of all tensors; nothing for dummy weights.
double stored_bytes(const ModelSource& source, const Checkpoint& stored) {
  double bytes = 0;
  if (source.gguf() != nullptr && !stored.entries().empty()) {
    for (const GgufTensorInfo& tensor : source.gguf()->tensors()) {
      bytes += static_cast<double>(tensor.bytes.size());
    }
    return bytes;
  }
  for (const CheckpointEntry& entry : stored.entries()) {
    double elements = 1;
    for (const int64_t size : entry.shape) elements *= static_cast<double>(size);
    bytes += elements * static_cast<double>(dtype_bytes(entry.dtype));
  }
  return bytes;
}

struct MemoryRoom {
  double bytes = 0;
  std::string_view what;
};

MemoryRoom memory_room(const LoadedModel& model, const LoadOptions& options) {
  MemoryRoom room{static_cast<double>(system_memory().free), "of memory are free"};
  if (model.machine->device) {
    room = {static_cast<double>(model.machine->device->info().free_bytes),
            "of the GPU's memory are free"};
  }
  if (!options.memory_limit_bytes) return room;
  const size_t used = model.backend->memory().stats().active_bytes;  // by other models
  const double left =
      std::max(0.0, static_cast<double>(*options.memory_limit_bytes) - static_cast<double>(used));
  if (left < room.bytes) room = {left, "are allowed by --memory-limit"};
  return room;
}

}  // namespace

std::string size_figure(double bytes) {
  constexpr double kMebi = size_t{1} << 20, kGibi = size_t{1} << 30, kLeast = 0.1;
  if (bytes >= kLeast * kGibi) return fmt::format("{:.1f} GiB", bytes / kGibi);
  if (bytes >= kLeast * kMebi) return fmt::format("{:.1f} MiB", bytes / kMebi);
  return fmt::format("{:.0f} bytes", bytes);
}

KeptWeights kept_weights(const ModelSource& source, const StoredWeights& stored,
                         const DecoderConfig& config, DType dtype, const LoadOptions& options) {
  const auto elements = static_cast<double>(model_costs(config).weights());
  const bool quantizes = options.quantize != LoadQuantization::none;
  double needed = elements * static_cast<double>(dtype_bytes(dtype));
  // Quantised tensors keep their codes, so what is kept of them is as large as the files: at most 8
  // bits an element and its part of a scale.
  constexpr double kMostPacked = 1.5;
  const double of_files =
      stored_bytes(source, stored.tensors) + static_cast<double>(stored.added_bytes);
  const bool is_packed = of_files > 0 && of_files < kMostPacked * elements;
  if (is_packed) needed = std::min(needed, of_files);
  if (quantizes) needed = std::min(needed, elements * bytes_per_code(options.quantize));
  return {.bytes = needed, .elements = elements, .is_quantised = is_packed || quantizes};
}

void check_weights_fit(const LoadedModel& model, const ModelSource& source,
                       const StoredWeights& stored, const DecoderConfig& config,
                       const LoadOptions& options) {
  const KeptWeights kept = kept_weights(source, stored, config, model.weight_dtype, options);
  const double needed = kept.bytes;
  const MemoryRoom room = memory_room(model, options);
  if (needed <= room.bytes) return;
  std::string advice = "use a smaller model, or one that is quantised";
  for (const LoadQuantization smaller : {LoadQuantization::q8, LoadQuantization::q4}) {
    const double then = kept.elements * bytes_per_code(smaller);
    if (kept.is_quantised || then > room.bytes) continue;
    advice = fmt::format("--quantize {} needs {}", option_name(smaller), size_figure(then));
    break;
  }
  throw Error(
      ErrorCode::exhausted,
      fmt::format("model {}: doesn't fit: its weights need {}, {} {}; {}", source.path().string(),
                  size_figure(needed), size_figure(room.bytes), room.what, advice));
}

}  // namespace paceline
