#include "protocol/request_options.h"

#include <algorithm>

namespace paceline {
namespace {

GenerateOptions options_of(const GenerateOptions& asked, const CommonFields& common,
                           std::optional<uint64_t> default_seed, const std::stop_token& cancelled) {
  GenerateOptions options = asked;
  if (!options.seed) options.seed = default_seed;
  options.lora = common.lora;
  options.priority = common.priority;
  options.cache_salt = common.cache_salt;
  options.cancelled = cancelled;
  return options;
}

// Requests have separate numbers of alternatives for the answer and the prompt; the engine has one
// for both, the larger.
void request_logprobs(std::optional<int32_t> of_answer, std::optional<int32_t> of_prompt,
                      GenerateOptions& options) {
  options.prompt_logprobs = of_prompt.has_value();
  const int32_t most = std::max(of_answer.value_or(0), of_prompt.value_or(0));
  if (of_answer || most > 0) options.logprobs = most;
}

}  // namespace

GenerateOptions completion_options(const CompletionRequest& request, size_t index,
                                   std::optional<uint64_t> default_seed,
                                   const std::stop_token& cancelled) {
  const GenerationFields& fields = request.generation;
  GenerateOptions options = options_of(request.options, request.common, default_seed, cancelled);
  options.prompt_name = request.prompt.name("prompt", index);
  const bool echoes_logprobs = request.echo && request.logprobs;
  request_logprobs(request.logprobs,
                   echoes_logprobs && !fields.prompt_logprobs ? 0 : fields.prompt_logprobs,
                   options);
  if (request.num_candidates() > fields.n && !options.logprobs) options.logprobs = 0;
  return options;
}

GenerateOptions chat_options(const ChatRequest& request, std::optional<uint64_t> default_seed,
                             const std::stop_token& cancelled) {
  GenerateOptions options = options_of(request.options, request.common, default_seed, cancelled);
  request_logprobs(request.logprobs ? std::optional(request.top_logprobs) : std::nullopt,
                   request.generation.prompt_logprobs, options);
  return options;
}

ClassifyOptions classification_options(const ClassificationRequest& request, size_t index,
                                       std::optional<uint64_t> default_seed,
                                       const std::stop_token& cancelled) {
  GenerateOptions sampling = options_of(request.options, request.common, default_seed, cancelled);
  sampling.prompt_name = request.input.name("input", index);
  return {.labels = request.labels,
          .want_token_id = request.labels.empty() || request.with_token_id,
          .with_logits = request.with_logits,
          .sampling = std::move(sampling)};
}

EmbedOptions embedding_options(const EmbeddingRequest& request, size_t index,
                               const std::stop_token& cancelled) {
  return {.dimensions = request.dimensions,
          .named_prompt = request.named_prompt,
          .add_special_tokens = request.add_special_tokens,
          .truncates = request.truncates,
          .lora = request.common.lora,
          .cache_salt = request.common.cache_salt,
          .priority = request.common.priority,
          .prompt_name = request.input.name("input", index),
          .cancelled = cancelled};
}

}  // namespace paceline
