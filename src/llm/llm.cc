#include "paceline/llm.h"
#include "engine/engine.h"

#include <fmt/format.h>

#include "backends/backend_registry.h"
#include "base/error.h"
#include "base/system_memory.h"
#include "kernels/backend.h"
#include "kernels/cuda/device.h"
#include "llm/llm_state.h"
#include "load/device_description.h"
#include "load/generation_config.h"
#include "load/load_adapter.h"
#include "load/weight_info.h"
#include "text/make_request.h"

namespace paceline {
namespace {

const Tokenizer& tokenizer_of(const LoadedModel& model) {
  if (model.tokenizer) return *model.tokenizer;
  throw Error(ErrorCode::not_found, fmt::format("{}: has no tokenizer.json", model.path.string()));
}

}  // namespace

LLM::LLM(std::shared_ptr<State> state) : state_(std::move(state)) {}
LLM::LLM(LLM&&) noexcept = default;
LLM& LLM::operator=(LLM&& other) noexcept {
  LLM taken(std::move(other));
  std::swap(state_, taken.state_);
  return *this;
}

// Whoever wants to know whether the trace was written to its end calls close().
LLM::~LLM() {
  try {
    close();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
}

LLM LLM::load(const LoadOptions& options) {
  auto state = std::make_shared<State>();
  state->open(load_model(options));
  if (uses_adapters(options)) state->max_lora_rank = options.max_lora_rank;
  if (!options.trace_file.empty()) {
    state->trace =
        std::make_unique<TraceWriter>(options.trace_file, state->model->path.string(),
                                      state->model->engine->limits(), *state->model->cache);
    state->model->engine->set_observer(state->trace.get());
  }
  state->thread = std::make_unique<EngineThread>(
      *state->model->engine,
      AdmissionWindow{.timeout = std::chrono::milliseconds(options.batch_timeout_ms),
                      .num_requests = options.batch_size});
  return LLM(std::move(state));
}

void LLM::close() {
  if (state_ != nullptr) state_->close();
}

GenerationStream LLM::generate(const Prompt& prompt, const GenerateOptions& options,
                               std::function<void()> listener) {
  const Call call(*this);
  GenerateRequest request = make_request(*call->text, prompt, options);
  CompletionShape shape = completion_shape(request);
  return call.begin(std::move(request), std::move(shape), std::move(listener));
}

std::vector<int32_t> LLM::tokenize(std::string_view text, bool add_special_tokens,
                                   bool specials_as_text) const {
  const Call call(*this);
  return tokenizer_of(*call->model)
      .encode(text, {.add_special = add_special_tokens, .specials_as_text = specials_as_text});
}

std::string LLM::detokenize(std::span<const int32_t> ids, bool skip_special_tokens) const {
  const Call call(*this);
  return tokenizer_of(*call->model).decode(ids, {.skip_special = skip_special_tokens});
}

Metrics LLM::metrics() const { return Call(*this)->metrics(); }

MemoryUse LLM::memory_use() const {
  const Call call(*this);
  const MemoryStats stats = call->model->backend->memory().stats();
  return {.active_bytes = stats.active_bytes,
          .peak_bytes = stats.peak_bytes,
          .cached_bytes = stats.cached_bytes};
}

void LLM::clear_memory_cache() { Call(*this)->model->backend->memory().clear_cache(); }
void LLM::reset_peak_memory() { Call(*this)->model->backend->memory().reset_peak(); }
size_t LLM::set_memory_limit(size_t bytes) {
  return Call(*this)->model->backend->memory().set_memory_limit(bytes);
}
size_t LLM::set_cache_limit(size_t bytes) {
  return Call(*this)->model->backend->memory().set_cache_limit(bytes);
}
size_t LLM::lock_memory() { return paceline::lock_memory(*Call(*this)->model); }

std::vector<std::string> LLM::backends() {
  std::vector<std::string> names;
  for (const BackendEntry& entry : paceline::backends()) names.emplace_back(entry.name);
  return names;
}

DeviceInfo LLM::device_info() const { return describe_device(*Call(*this)->model->machine); }
DeviceInfo LLM::device_info(const LoadOptions& options) {
  return describe_device(*make_machine(options));
}

ModelInfo LLM::model_info() const {
  const Call call(*this);
  const LoadedModel& model = *call->model;
  const ModelOutline& outline = model.outline;
  const bool is_native = model.decoder != nullptr;
  const WeightInfo weights = is_native ? weight_info(*model.decoder) : WeightInfo();
  const bool has_states = is_native && model.decoder->config().has_states();
  return {.path = model.path.string(),
          .backend = model.backend_name,
          .family = outline.family,
          .num_layers = outline.num_layers,
          .vocab_size = outline.vocab_size,
          .max_model_len = model.engine->limits().max_model_len,
          .full_context = outline.max_position,
          .num_parameters = outline.num_parameters,
          .weight_bytes = model.weight_bytes,
          .kv_cache_bytes = model.kv_bytes,
          .num_states = model.num_states,
          .dtype = is_native ? std::string(dtype_name(model.weight_dtype)) : std::string(),
          .weight_format = weights.format,
          .quantised_files = model.quantised_files,
          .decode_bytes = weights.bytes,
          .integer_products = weights.integer_products,
          .kv_cache_dtype = is_native ? std::string(dtype_name(model.kv_dtype)) : std::string(),
          .state_dtype = has_states ? std::string(dtype_name(model.state_dtype)) : std::string(),
          .has_tokenizer = model.tokenizer.has_value(),
          .has_chat_template = model.has_chat_template,
          .chat_template = model.chat.chat_template ? std::string(model.chat.chat_template->name())
                                                    : std::string(),
          .notes = model.chat.notes,
          .generation_notes = generation_notes(model.generation),
          .weights_cache = model.weights_cache,
          .drafter = drafter_info(model)};
}

}  // namespace paceline
