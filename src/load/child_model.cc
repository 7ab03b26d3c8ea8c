#include "load/child_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "backends/backend_registry.h"
#include "backends/child_engine.h"
#include "base/error.h"
#include "base/option_names.h"
#include "load/load_decoder.h"
#include "load/model_texts.h"

namespace paceline {
namespace {

// Options that change what Paceline itself computes, or how.
void check_for_backend(const LoadOptions& options) {
  const std::pair<std::string_view, bool> without_effect[] = {
      {"--load-format dummy", options.load_format != LoadFormat::files},
      {"--quantize", options.quantize != LoadQuantization::none},
      {"--activations", options.activations != Activations::automatic},
      {"--weights-cache", !options.weights_cache.empty()},
      {"--kv-cache-dtype", options.kv_cache_dtype != DataType::automatic},
      {"--state-dtype", options.state_dtype != DataType::automatic},
      {"--kv-cache-memory-bytes", options.kv_cache_memory_bytes.has_value()},
      {"--max-kv-size", options.max_kv_size.has_value()},
      {"--gpu-layers", options.gpu_layers.has_value()},
      {"--memory-limit", options.memory_limit_bytes.has_value()},
      {"--mlock", options.lock_memory},
      {"--lora", !options.loras.empty()},
      {"--enable-lora", options.enable_lora},
      {"--speculative-config", !options.speculative_config.empty()},
      {"--speculative-model", !options.speculative_model.empty()},
      {"--speculative-method", options.speculative_method != DraftMethod::automatic},
      {"--trace", !options.trace_file.empty()},
  };
  for (const auto& [name, is_set] : without_effect) {
    if (!is_set) continue;
    throw Error(ErrorCode::invalid, fmt::format("{}: --backend {} can't obey it; leave one of "
                                                "them out",
                                                name, options.backend));
  }
}

ModelSource open_directory(const LoadOptions& options) {
  ModelSource source = open_model_source(options.model);
  if (source.gguf() == nullptr) return source;
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: --backend {} reads directories alone; give the model's directory",
                          source.path().string(), options.backend));
}

int64_t context_of(const LoadOptions& options, const ModelOutline& outline,
                   const ModelFiles& files) {
  if (!options.max_model_len && outline.max_position == 0) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: says no length of a context (max_position_embeddings); give one "
                            "by --max-model-len",
                            files.where(kConfig)));
  }
  if (outline.max_position > 0 && options.max_model_len.value_or(0) > outline.max_position) {
    throw Error(ErrorCode::invalid,
                fmt::format("--max-model-len: {}, the model was made for contexts of up to {}",
                            *options.max_model_len, outline.max_position));
  }
  return options.max_model_len.value_or(outline.max_position);
}

// Whether the load goes on is asked of `progress`, which may throw.
std::unique_ptr<ModelChild> load_child(const PythonBackendOptions& options,
                                       const LoadOptions& load) {
  constexpr std::chrono::milliseconds kSlice{50};
  auto child = std::make_unique<ModelChild>(options);
  const auto deadline = Clock::now() + options.load_timeout;
  while (!child->is_ready()) {
    child->poll(kSlice);
    if (load.progress) load.progress(0, 0);
    if (!child->is_ready() && Clock::now() >= deadline) {
      throw Error(ErrorCode::exhausted,
                  fmt::format("{}: the child hasn't loaded the model within {} s "
                              "(--backend-timeout)",
                              options.backend, options.load_timeout.count()));
    }
  }
  return child;
}

// It computes nothing.
std::shared_ptr<Machine> idle_machine() {
  LoadOptions options;
  options.device = "cpu";
  options.num_threads = 1;
  return make_machine(options);
}

}  // namespace

std::unique_ptr<LoadedModel> load_child_model(const LoadOptions& options) {
  find_backend(options.backend);
  check_for_backend(options);
  const ModelSource source = open_directory(options);
  const ModelFiles& files = source.files();
  auto model = std::make_unique<LoadedModel>(idle_machine());
  model->path = source.path();
  model->backend_name = options.backend;
  model->outline = read_model_outline(files);
  const int64_t max_model_len = context_of(options, model->outline, files);
  if (model->outline.max_position == 0) model->outline.max_position = max_model_len;
  model->has_chat_template = carries_chat_template(files);
  model->typed_special_tokens = options.typed_special_tokens;
  model->tokenizer = load_tokenizer_if_present(files);

  const PythonBackendOptions child{.backend = options.backend,
                                   .python = options.python,
                                   .model = model->path.string(),
                                   .dtype = std::string(option_name(options.dtype)),
                                   .device = options.device,
                                   .num_threads = options.num_threads,
                                   .load_timeout = std::chrono::seconds(options.backend_timeout_s),
                                   .timeout = std::chrono::seconds(options.backend_timeout_s)};
  auto loaded = load_child(child, options);
  int64_t& vocab_size = model->outline.vocab_size;
  if (loaded->facts().vocab_size > 0) vocab_size = loaded->facts().vocab_size;
  if (vocab_size == 0) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: neither it nor {} says the size of the vocabulary (vocab_size)",
                            files.where(kConfig), options.backend));
  }
  set_up_texts(*model, files, vocab_size, options.chat_template);
  set_up_turns(*model);
  model->engine = std::make_unique<ChildEngine>(
      ChildEngine::Options{.child = child,
                           .limits = {.max_model_len = max_model_len,
                                      .max_queued = options.max_queued,
                                      .max_queued_tokens = options.max_queued_tokens,
                                      .max_tokens_per_sequence = options.max_tokens_per_sequence},
                           .vocab_size = vocab_size},
      std::move(loaded), token_texts_of(model->tokenizer));
  return model;
}

}  // namespace paceline
