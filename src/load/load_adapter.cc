#include "load/load_adapter.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <utility>

#include "adapters/adapter.h"
#include "adapters/adapter_base.h"
#include "adapters/adapter_files.h"
#include "adapters/expert_names.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "engine/adapter_set.h"
#include "kernels/backend.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "models/block_projections.h"
#include "models/decoder.h"
#include "models/gguf_architecture.h"
#include "models/pack_adapter.h"

namespace paceline {
namespace {

constexpr size_t kLongestName = 256;
constexpr int64_t kMostAdapters = 65536;
constexpr int64_t kMostRank = 1024;

void check_count(std::string_view option, int64_t value, int64_t most) {
  if (value < 1 || value > most) {
    throw Error(ErrorCode::invalid, fmt::format("{}: {}, expected 1 to {}", option, value, most));
  }
}

std::optional<MatrixSize> size_of(const DecoderConfig& config, std::string_view module) {
  const MatrixSize head = {.out = config.vocab_size, .in = config.hidden_size};
  if (module == "lm_head" || module == "embed_tokens") return head;  // pack_adapter refuses them
  const auto name = split_layer_module(module);
  if (!name || name->layer >= config.num_layers()) return std::nullopt;
  const auto projection = find_projection(config, name->layer, name->part);
  if (!projection) return std::nullopt;
  return MatrixSize{.out = projection->out_features, .in = projection->in_features};
}

// The number of heads whose rows a file of this architecture interleaves.
int64_t interleaved_heads(const DecoderConfig& config, const GgufArchitecture& architecture,
                          std::string_view module) {
  if (!architecture.interleaved_rotary) return 0;
  if (module.ends_with(".q_proj")) return config.num_heads;
  return module.ends_with(".k_proj") ? config.num_kv_heads : 0;
}

std::optional<GgufModule> gguf_module(const DecoderConfig& config, const GgufMetadata& metadata,
                                      std::string_view tensor) {
  const GgufArchitecture& architecture = find_gguf_architecture(metadata);
  if (architecture.model_type != config.family && architecture.windowed_type != config.family &&
      architecture.mixture_type != config.family) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: an adapter for the architecture {}, the model is a {}",
                            metadata.file(), architecture.name, config.family));
  }
  constexpr std::string_view kPrefix = "model.", kSuffix = ".weight";
  std::optional<std::string> name = checkpoint_name(architecture, tensor);
  if (!name || !name->ends_with(kSuffix)) return std::nullopt;
  name->resize(name->size() - kSuffix.size());
  if (name->starts_with(kPrefix)) name->erase(0, kPrefix.size());
  if (!size_of(config, *name)) {
    if (!size_of(config, with_expert(*name, 0))) return std::nullopt;
    return GgufModule{.module = *name, .is_stack = true};
  }
  return GgufModule{.module = *name,
                    .interleaved_heads = interleaved_heads(config, architecture, *name)};
}

Adapter read_scaled(const LoadedModel& model, const LoraSource& source) {
  const AdapterBase base = adapter_base(model.decoder->config());
  Adapter adapter = read_adapter(source.path, base, model.memory);
  if (source.scale == 1.0) return adapter;
  return with_scale(std::move(adapter), static_cast<float>(source.scale));
}

void check_rank(const Adapter& adapter, const LoraSource& source, int64_t max_rank) {
  if (adapter.max_rank() <= max_rank) return;
  throw Error(ErrorCode::invalid, fmt::format("{}: rank {}, --max-lora-rank allows {}", source.path,
                                              adapter.max_rank(), max_rank));
}

std::unique_ptr<Backend> own_backend(const LoadedModel& model, ThreadPool& threads) {
  const auto& device = model.machine->device;
  return device ? cuda::make_cuda_backend(*device, threads, model.backend->memory())
                : make_cpu_backend(model.isa, threads, model.memory);
}

}  // namespace

bool uses_adapters(const LoadOptions& options) {
  return options.enable_lora || !options.loras.empty();
}

void check_lora_options(const LoadOptions& options) {
  check_count("--max-loras", options.max_loras, kMostAdapters);
  check_count("--max-lora-rank", options.max_lora_rank, kMostRank);
  std::set<std::string_view> names;
  for (const LoraSource& source : options.loras) {
    if (source.name.empty() || source.name.size() > kLongestName) {
      throw Error(ErrorCode::invalid,
                  fmt::format("--lora {}: a name of {} bytes, expected NAME=DIR with 1 to {}",
                              source.path, source.name.size(), kLongestName));
    }
    if (!names.insert(source.name).second) {
      throw Error(ErrorCode::invalid,
                  fmt::format("--lora {}: two adapters have this name", source.name));
    }
    if (!std::isfinite(source.scale)) {
      throw Error(ErrorCode::invalid, fmt::format("--lora-scaled {}: scale {}, expected a number",
                                                  source.name, source.scale));
    }
  }
}

AdapterBase adapter_base(const DecoderConfig& config) {
  AdapterBase base;
  base.num_layers = config.num_layers();
  base.size_of = [config](std::string_view module) { return size_of(config, module); };
  base.gguf_module = [config](const GgufMetadata& metadata, std::string_view tensor) {
    return gguf_module(config, metadata, tensor);
  };
  for (int64_t layer = 0; layer < config.num_layers(); ++layer) {
    for (const BlockProjection& projection : block_projections(config, layer)) {
      base.modules.push_back(fmt::format("layers.{}.{}", layer, projection.part));
    }
  }
  return base;
}

std::shared_ptr<const LoadedAdapter> load_adapter(const LoadedModel& model,
                                                  const LoraSource& source, int64_t max_rank) {
  // Beside an engine that computes, on a backend of its own in the same memory.
  ThreadPool threads(1);
  const auto backend = own_backend(model, threads);
  try {
    const Adapter adapter = read_scaled(model, source);
    check_rank(adapter, source, max_rank);
    auto loaded = std::make_shared<LoadedAdapter>();
    loaded->name = source.name;
    loaded->digest = adapter.digest();
    loaded->max_rank = adapter.max_rank();
    loaded->weights = pack_adapter(adapter, model.decoder->config(), *backend);
    return loaded;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--lora {}: {}", source.name, error.what()));
  }
}

void load_adapters(LoadedModel& model, const LoadOptions& options) {
  model.adapters = std::make_unique<AdapterSet>();
  for (const LoraSource& source : options.loras) {
    model.adapters->add(load_adapter(model, source, options.max_lora_rank));
  }
}

}  // namespace paceline
