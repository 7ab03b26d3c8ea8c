#include "paceline/llm.h"
#include "engine/engine.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/system_memory.h"
#include "kernels/backend.h"
#include "kernels/cuda/device.h"
#include "llm/llm_state.h"
#include "load/device_description.h"
#include "load/generation_config.h"
#include "load/weight_info.h"
#include "text/make_request.h"

namespace paceline {
namespace {

const Tokenizer& tokenizer_of(const LoadedModel& model) {
  if (model.tokenizer) return *model.tokenizer;
  throw Error(ErrorCode::not_found, fmt::format("{}: has no tokenizer.json", model.path.string()));
}

}  // namespace

LLM::LLM(std::unique_ptr<State> state) : state_(std::move(state)) {}
LLM::LLM(LLM&&) noexcept = default;
LLM& LLM::operator=(LLM&&) noexcept = default;
LLM::~LLM() = default;

LLM LLM::load(const LoadOptions& options) {
  auto state = std::make_unique<State>();
  state->open(load_model(options));
  if (!options.trace_file.empty()) {
    state->trace = std::make_unique<TraceWriter>(options.trace_file, state->model->path.string(),
                                                 *state->model->engine);
    state->model->engine->set_observer(state->trace.get());
  }
  state->thread = std::make_unique<EngineThread>(
      *state->model->engine,
      AdmissionWindow{.timeout = std::chrono::milliseconds(options.batch_timeout_ms),
                      .num_requests = options.batch_size});
  return LLM(std::move(state));
}

LLM::State& LLM::open_state() const {
  if (state_ == nullptr || state_->model == nullptr) {
    throw Error(ErrorCode::invalid, "the model was closed");
  }
  return *state_;
}

void LLM::close() {
  if (state_ == nullptr) return;
  state_->thread.reset();
  const auto trace = std::move(state_->trace);
  state_->text.reset();
  state_->model.reset();
  if (trace) trace->finish();
}

GenerationStream LLM::generate(const Prompt& prompt, const GenerateOptions& options) {
  State& state = open_state();
  GenerateRequest request = make_request(*state.text, prompt, options);
  CompletionShape shape = completion_shape(request);
  return state.begin(std::move(request), std::move(shape));
}

std::vector<int32_t> LLM::tokenize(std::string_view text, bool add_special_tokens,
                                   bool specials_as_text) const {
  return tokenizer_of(*open_state().model)
      .encode(text, {.add_special = add_special_tokens, .specials_as_text = specials_as_text});
}

std::string LLM::detokenize(std::span<const int32_t> ids, bool skip_special_tokens) const {
  return tokenizer_of(*open_state().model).decode(ids, {.skip_special = skip_special_tokens});
}

Metrics LLM::metrics() const { return open_state().metrics; }

MemoryUse LLM::memory_use() const {
  const MemoryStats stats = open_state().model->backend->memory().stats();
  return {.active_bytes = stats.active_bytes,
          .peak_bytes = stats.peak_bytes,
          .cached_bytes = stats.cached_bytes};
}

void LLM::clear_memory_cache() { open_state().model->backend->memory().clear_cache(); }
void LLM::reset_peak_memory() { open_state().model->backend->memory().reset_peak(); }
size_t LLM::set_memory_limit(size_t bytes) {
  return open_state().model->backend->memory().set_memory_limit(bytes);
}
size_t LLM::set_cache_limit(size_t bytes) {
  return open_state().model->backend->memory().set_cache_limit(bytes);
}
size_t LLM::lock_memory() { return paceline::lock_memory(*open_state().model); }

DeviceInfo LLM::device_info() const {
  const LoadedModel& model = *open_state().model;
  return describe_device(*model.machine);
}

ModelInfo LLM::model_info() const {
  const LoadedModel& model = *open_state().model;
  const DecoderConfig& config = model.decoder->config();
  const WeightInfo weights = weight_info(*model.decoder);
  return {.path = model.path.string(),
          .family = config.family,
          .num_layers = config.num_stored_layers(),
          .vocab_size = config.vocab_size,
          .max_model_len = model.engine->limits().max_model_len,
          .full_context = config.max_position,
          .num_parameters = model.decoder->num_parameters(),
          .weight_bytes = model.weight_bytes,
          .kv_cache_bytes = model.kv_bytes,
          .num_states = model.num_states,
          .dtype = std::string(dtype_name(model.weight_dtype)),
          .weight_format = weights.format,
          .quantised_files = model.quantised_files,
          .decode_bytes = weights.bytes,
          .integer_products = weights.integer_products,
          .kv_cache_dtype = std::string(dtype_name(model.kv_dtype)),
          .state_dtype =
              config.has_states() ? std::string(dtype_name(model.state_dtype)) : std::string(),
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
