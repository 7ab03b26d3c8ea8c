#include "load/load_adapter.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <utility>

#include "adapters/adapter.h"
#include "adapters/adapter_base.h"
#include "adapters/adapter_files.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "engine/adapter_set.h"
#include "kernels/backend.h"
#include "load/model_adapter_base.h"
#include "models/decoder.h"
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

Adapter read_scaled(const LoadedModel& model, const LoraSource& source) {
  const AdapterBase base = adapter_base_of(model.decoder->config(), "");
  Adapter adapter = read_adapter(source.path, base, model.memory);
  if (source.scale == 1.0) return adapter;
  return with_scale(std::move(adapter), static_cast<float>(source.scale));
}

void check_rank(const Adapter& adapter, const LoraSource& source, int64_t max_rank) {
  if (adapter.max_rank() <= max_rank) return;
  throw Error(ErrorCode::invalid, fmt::format("{}: rank {}, --max-lora-rank allows {}", source.path,
                                              adapter.max_rank(), max_rank));
}

// An error says which adapter it is about.
template <class Body>
void for_each_source(const LoadOptions& options, Body&& body) {
  for (const LoraSource& source : options.loras) {
    try {
      body(source);
    } catch (const Error& error) {
      const std::string which = options.loras.size() == 1 ? "" : " " + source.name;
      throw Error(error.code(), fmt::format("--lora{}: {}", which, error.what()));
    }
  }
}

}  // namespace

bool uses_adapters(const LoadOptions& options) {
  return options.enable_lora || !options.loras.empty();
}

void check_lora_source(const LoraSource& source) {
  if (source.name.empty() || source.name.size() > kLongestName) {
    throw Error(ErrorCode::invalid,
                fmt::format("--lora {}: a name of {} bytes, expected NAME=DIR with 1 to {}",
                            source.path, source.name.size(), kLongestName));
  }
  if (!std::isfinite(source.scale)) {
    throw Error(ErrorCode::invalid, fmt::format("--lora-scaled {}: scale {}, expected a number",
                                                source.name, source.scale));
  }
}

void check_lora_options(const LoadOptions& options) {
  check_count("--max-loras", options.max_loras, kMostAdapters);
  check_count("--max-lora-rank", options.max_lora_rank, kMostRank);
  std::set<std::string_view> names;
  for (const LoraSource& source : options.loras) {
    check_lora_source(source);
    if (!names.insert(source.name).second) {
      throw Error(ErrorCode::invalid,
                  fmt::format("--lora {}: two adapters have this name", source.name));
    }
  }
}

std::shared_ptr<const LoadedAdapter> load_adapter(const LoadedModel& model,
                                                  const LoraSource& source, int64_t max_rank) {
  // Beside an engine that computes, on a backend of its own in the same memory.
  ThreadPool threads(1);
  const auto backend = model.machine->make_backend(threads);
  const Adapter adapter = read_scaled(model, source);
  check_rank(adapter, source, max_rank);
  auto loaded = std::make_shared<LoadedAdapter>();
  loaded->name = source.name;
  loaded->digest = adapter.digest();
  loaded->max_rank = adapter.max_rank();
  loaded->weights = pack_adapter(adapter, model.decoder->config(), *backend);
  return loaded;
}

void check_lora_files(const LoadOptions& options) {
  for_each_source(options, [](const LoraSource& source) { find_adapter_format(source.path); });
}

void load_adapters(LoadedModel& model, const LoadOptions& options) {
  model.adapters = std::make_unique<AdapterSet>();
  for_each_source(options, [&](const LoraSource& source) {
    model.adapters->add(load_adapter(model, source, options.max_lora_rank));
  });
}

}  // namespace paceline
