#include "llm/llm_state.h"

#include "base/error.h"
#include "base/time_source.h"

namespace paceline {

void LLM::State::open(std::unique_ptr<LoadedModel> loaded) {
  model = std::move(loaded);
  text.emplace(text_model(*model));
}

GenerationStream LLM::State::begin(GenerateRequest request, CompletionShape shape) {
  auto channel = std::make_shared<Channel>();
  const auto id = model->engine->submit(std::move(request), channel);
  if (!id) throw Error(ErrorCode::exhausted, "too many requests are waiting, try again later");
  // clang 14's make_unique can't construct an aggregate.
  return GenerationStream(std::unique_ptr<GenerationStream::State>(
      // NOLINTNEXTLINE(modernize-make-unique)
      new GenerationStream::State{.llm = this,
                                  .channel = std::move(channel),
                                  .id = *id,
                                  .builder = {*text, std::move(shape)}}));
}

void LLM::State::record(const GenerationStats& stats) {
  CallMetrics call;
  call.add_prompt(stats.prompt_tokens, stats.cached_tokens);
  call.add(stats, Clock::now());
  record(call);
}

void LLM::State::record(const CallMetrics& call) {
  metrics = call.metrics();
  metrics.peak_memory_bytes = model->backend->memory().stats().peak_bytes;
}

}  // namespace paceline
