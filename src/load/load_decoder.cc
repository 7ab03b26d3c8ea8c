#include "load/load_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/option_names.h"
#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "load/cached_decoder.h"
#include "load/chosen_types.h"
#include "load/device_limits.h"
#include "load/score_head.h"
#include "load/weight_stack.h"
#include "load/weights_fit.h"
#include "models/decoder.h"
#include "models/family.h"
#include "prepared/prepared_file.h"
#include "weights/checkpoint.h"
#include "weights/forwarding_checkpoint.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

// Dummy weights take their dtype from the config, whose reader needs the weights: the config is
// read with an empty checkpoint first.
std::unique_ptr<Checkpoint> open_weights(const LoadOptions& options, const ModelSource& source,
                                         const Json& config, Memory& memory) {
  if (options.load_format == LoadFormat::files) return source.open_weights(memory);
  const auto nothing = make_dummy_checkpoint(DType::f32, options.seed, memory);
  const DType dtype = read_decoder_config(config, WeightReader(*nothing), "config.json").dtype;
  return make_dummy_checkpoint(dtype, options.seed, memory);
}

// How published files are quantised, and whether their E4M3 stays packed: where products are those
// of bfloat16 on the CPU, and nothing else is asked for.
std::optional<PublishedQuantisation> find_published(const LoadedModel& model,
                                                    const ModelSource& source,
                                                    const LoadOptions& options) {
  auto published = PublishedQuantisation::find(source.files());
  if (!published) return published;
  const bool is_bf16 = choose_dtype(options.dtype, DType::bf16) == DType::bf16;
  const bool quantizes = options.quantize != LoadQuantization::none;
  published->keeps_float8 =
      is_bf16 && !quantizes && !model.machine->device && choose_activations(options.activations);
  return published;
}

// Gives every layer a rotating window; the context is then unbounded without --max-model-len.
void bound_windows(DecoderConfig& config, int64_t max_kv_size) {
  for (LayerConfig& layer : config.layers) {
    layer.window = layer.window == 0 ? max_kv_size : std::min(layer.window, max_kv_size);
  }
}

// Refuses to quantise quantised weights.
void check_quantization(const ModelSource& source, const LoadOptions& options) {
  const bool reads_files = options.load_format == LoadFormat::files;
  if (source.gguf() == nullptr || !reads_files) return;
  if (options.quantize == LoadQuantization::none) return;
  for (const GgufTensorInfo& tensor : source.gguf()->tensors()) {
    if (plain_dtype(tensor.type)) continue;
    throw Error(ErrorCode::invalid,
                fmt::format("--quantize: {}: tensor {} is {}: the weights are quantised already",
                            source.path().string(), tensor.name, gguf_type_name(tensor.type)));
  }
}

// Reports the bytes of the tensors that were read before, and of all.
class ReportingCheckpoint final : public ForwardingCheckpoint {
 public:
  ReportingCheckpoint(Checkpoint& source, std::function<void(uint64_t, uint64_t)> progress)
      : ForwardingCheckpoint(source), progress_(std::move(progress)) {
    for (const CheckpointEntry& entry : source.entries()) {
      bytes_.emplace(entry.name, bytes_of(entry.shape, entry.dtype));
      total_ += bytes_of(entry.shape, entry.dtype);
    }
  }

  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override {
    report(name, shape);
    return source_.read_tensor(name, shape, as);
  }
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view name,
                                                  const Extents& shape) override {
    report(name, shape);
    return source_.read_grouped(name, shape);
  }

 private:
  static uint64_t bytes_of(const Extents& shape, DType dtype) {
    uint64_t bytes = dtype_bytes(dtype);
    for (const int64_t size : shape) bytes *= static_cast<uint64_t>(size);
    return bytes;
  }

  // A tensor that is asked for in both forms counts once.
  void report(std::string_view name, const Extents& shape) {
    if (progress_) progress_(done_, total_);
    const auto entry = bytes_.find(name);
    if (total_ == 0) {
      if (counted_.emplace(name).second) done_ += bytes_of(shape, DType::bf16);
    } else if (entry != bytes_.end()) {
      done_ += std::exchange(entry->second, 0);
    }
  }

  std::function<void(uint64_t, uint64_t)> progress_;
  std::map<std::string, uint64_t, std::less<>> bytes_;  // not counted yet
  std::set<std::string, std::less<>> counted_;          // of dummy weights
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

bool keeps_weights(const LoadOptions& options) {
  return !options.weights_cache.empty() && options.load_format == LoadFormat::files;
}

}  // namespace

DType stored_dtype(const std::vector<CheckpointEntry>& entries, const DecoderConfig& config) {
  const CheckpointEntry* largest = nullptr;
  const auto elements = [](const CheckpointEntry& entry) {
    int64_t product = 1;
    for (const int64_t size : entry.shape) product *= size;
    return product;
  };
  for (const CheckpointEntry& entry : entries) {
    if (!is_float(entry.dtype)) continue;
    if (largest == nullptr || elements(entry) > elements(*largest)) largest = &entry;
  }
  return largest == nullptr ? config.dtype : largest->dtype;
}

std::optional<Hash128> load_decoder(LoadedModel& model, const ModelSource& source,
                                    const LoadOptions& options) {
  check_quantization(source, options);
  const std::string config_text = source.files().read_config(kConfig);
  const std::string where = source.files().where(kConfig);
  const Json config_json = parse_json(config_text, where);
  auto stored = open_weights(options, source, config_json, model.memory);
  const auto files = stored->files();
  const Checkpoint& plain = *stored;
  const auto published = find_published(model, source, options);
  const WeightStack stack(std::move(stored),
                          {.config = config_json,
                           .where = where,
                           .digested = options.fingerprint || keeps_weights(options),
                           .is_dummy = options.load_format == LoadFormat::dummy,
                           .quantization = options.quantize,
                           .published = published},
                          model.memory, *model.threads);
  ReportingCheckpoint reported(stack.top(), options.progress);
  WeightReader weights(reported);
  DecoderConfig config = read_decoder_config(config_json, weights, where);
  check_device_takes(config, model.backend->limits(), where);
  if (options.max_kv_size && config.bidirectional) {
    throw Error(ErrorCode::invalid,
                "--max-kv-size: the model attends in both directions, so nothing rotates");
  }
  if (options.max_kv_size) bound_windows(config, *options.max_kv_size);
  model.weight_dtype = choose_dtype(options.dtype, stored_dtype(stack.top().entries(), config));
  if (config.classifies) {
    auto head = load_score_head(weights, config_json, where, config.hidden_size, *model.backend);
    model.score_head = std::make_unique<ScoreHead>(std::move(*head));
  }
  const LoadContext context{.weights = weights,
                            .backend = *model.backend,
                            .weight_dtype = model.weight_dtype,
                            .activations = choose_activations(options.activations)};
  if (stack.published() != nullptr) model.quantised_files = stack.published()->description();
  if (!keeps_weights(options)) {
    const uint64_t added = stack.published() == nullptr ? 0 : stack.published()->added_bytes();
    check_weights_fit(model, source, {.tensors = plain, .added_bytes = added}, config, options);
    make_decoder(model, context, config);
    return stack.digest();
  }
  // The files of tools beside config.json count, too.
  const std::string described = published ? config_text + published->summary() : config_text;
  WeightsCache cache(options.weights_cache,
                     {.files = files,
                      .config = described,
                      .dtype = model.weight_dtype,
                      .quantize = option_name(options.quantize),
                      .keeps_quantised = context.activations.has_value()},
                     *model.threads);
  find_or_make_decoder(model, cache, context, config, stack);
  return model.prepared ? model.prepared->digest() : stack.digest();
}

}  // namespace paceline
