#include "llm/llm_state.h"

#include <algorithm>

#include "base/error.h"

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
  const auto rate = [](int64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
  };
  // The first output token comes out of the prefill.
  const int64_t decoded = std::max<int64_t>(stats.output_tokens - 1, 0);
  const int64_t prefilled = stats.prompt_tokens - stats.cached_tokens;
  metrics = {.prompt_tokens = stats.prompt_tokens,
             .completion_tokens = stats.output_tokens,
             .cached_tokens = stats.cached_tokens,
             .preemptions = stats.preemptions,
             .drafted_tokens = stats.drafted_tokens,
             .accepted_tokens = stats.accepted_tokens,
             .prefill_tokens_per_second = rate(prefilled, stats.prefill_seconds),
             .decode_tokens_per_second = rate(decoded, stats.decode_seconds),
             .time_to_first_token_seconds = stats.time_to_first_token_seconds,
             .peak_memory_bytes = model->backend->memory().stats().peak_bytes};
}

void LLM::State::record_together(const GenerationStats& totals, EngineClock::time_point begin) {
  const double seconds = std::chrono::duration<double>(EngineClock::now() - begin).count();
  const auto rate = [seconds](int64_t tokens) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
  };
  metrics = {.prompt_tokens = totals.prompt_tokens,
             .completion_tokens = totals.output_tokens,
             .cached_tokens = totals.cached_tokens,
             .preemptions = totals.preemptions,
             .drafted_tokens = totals.drafted_tokens,
             .accepted_tokens = totals.accepted_tokens,
             .prefill_tokens_per_second = rate(totals.prompt_tokens),
             .decode_tokens_per_second = rate(totals.output_tokens),
             .peak_memory_bytes = model->backend->memory().stats().peak_bytes};
}

}  // namespace paceline
