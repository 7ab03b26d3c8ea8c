#include "llm/llm_state.h"

#include "base/error.h"
#include "base/time_source.h"
#include "kernels/backend.h"

namespace paceline {

void LLM::State::open(std::unique_ptr<LoadedModel> loaded) {
  model = std::move(loaded);
  text.emplace(text_model(*model));
}

void LLM::State::close() {
  if (!gate.close()) return;
  thread.reset();  // ends what runs as cancelled, so that the calls which wait for it leave
  gate.wait_until_empty();
  const auto its_trace = std::move(trace);
  text.reset();
  model.reset();
  if (its_trace) its_trace->finish();
}

CallGate::Pass LLM::State::enter() {
  CallGate::Pass pass = gate.try_enter();
  if (!pass) throw Error(ErrorCode::invalid, "the model was closed");
  return pass;
}

void LLM::State::record(const GenerationStats& stats) {
  CallMetrics call;
  call.add_prompt(stats.prompt_tokens, stats.cached_tokens);
  call.add(stats, Clock::now());
  record(call);
}

void LLM::State::record(const CallMetrics& call) {
  const std::lock_guard lock(metrics_mutex_);
  metrics_ = call.metrics();
  // Another backend's memory is its own.
  if (model->decoder != nullptr) {
    metrics_.peak_memory_bytes = model->backend->memory().stats().peak_bytes;
  }
}

Metrics LLM::State::metrics() const {
  const std::lock_guard lock(metrics_mutex_);
  return metrics_;
}

LLM::Call::Call(const LLM& llm) : state_(llm.state_) {
  if (state_ == nullptr) throw Error(ErrorCode::invalid, "the model was closed");
  pass_ = state_->enter();
}

GenerationStream LLM::Call::begin(GenerateRequest request, CompletionShape shape,
                                  std::function<void()> listener) const {
  auto channel = std::make_shared<Channel>(std::move(listener));
  const auto id = state_->model->engine->submit(std::move(request), channel);
  if (!id) throw Error(ErrorCode::exhausted, "too many requests are waiting, try again later");
  // clang 14's make_unique can't construct an aggregate.
  return GenerationStream(std::unique_ptr<GenerationStream::State>(
      // NOLINTNEXTLINE(modernize-make-unique)
      new GenerationStream::State{.llm = state_,
                                  .channel = std::move(channel),
                                  .id = *id,
                                  .builder = {*state_->text, std::move(shape)}}));
}

}  // namespace paceline
