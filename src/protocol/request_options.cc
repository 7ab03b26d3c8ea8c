#include "protocol/request_options.h"

#include <algorithm>

namespace paceline {
namespace {

GenerateOptions common_options(const CommonFields& common, const SamplingFields& fields,
                               std::optional<uint64_t> default_seed,
                               const std::stop_token& cancelled) {
  GenerateOptions options;
  options.temperature = fields.temperature;
  options.top_p = fields.top_p;
  options.top_k = fields.top_k;
  options.min_p = fields.min_p;
  options.repetition_penalty = fields.repetition_penalty;
  options.frequency_penalty = fields.frequency_penalty;
  options.presence_penalty = fields.presence_penalty;
  options.logit_bias = fields.logit_bias;
  options.mlx_sampler_order = fields.mlx_sampler_order;
  options.seed = fields.seed ? fields.seed : default_seed;
  options.priority = common.priority;
  options.cache_salt = common.cache_salt;
  options.cancelled = cancelled;
  return options;
}

void set_ends(const GenerationFields& fields, int64_t max_tokens, GenerateOptions& options) {
  options.max_tokens = max_tokens;
  options.stop = fields.stop;
  options.stop_token_ids = fields.stop_token_ids;
  options.include_stop_in_output = fields.includes_stop;
  options.ignore_eos = fields.ignore_eos;
  options.skip_special_tokens = fields.skip_special_tokens;
  options.bad_words = fields.bad_words;
  options.allowed_token_ids = fields.allowed_token_ids;
  options.logprob_token_ids = fields.logprob_token_ids;
  options.min_tokens = fields.min_tokens;
  options.truncate_prompt_tokens = fields.truncate_prompt_tokens;
}

// Requests ask for alternatives of the answer and of the prompt; the engine reports as many of
// both.
void ask_for_logprobs(std::optional<int32_t> of_answer, std::optional<int32_t> of_prompt,
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
  GenerateOptions options =
      common_options(request.common, request.sampling, default_seed, cancelled);
  set_ends(fields, request.max_tokens, options);
  options.add_special_tokens = request.add_special_tokens;
  options.prompt_name = request.prompt.name("prompt", index);
  const bool echoes_logprobs = request.echo && request.logprobs;
  ask_for_logprobs(request.logprobs,
                   echoes_logprobs && !fields.prompt_logprobs ? 0 : fields.prompt_logprobs,
                   options);
  if (request.num_candidates() > fields.n && !options.logprobs) options.logprobs = 0;
  return options;
}

GenerateOptions chat_options(const ChatRequest& request, std::optional<uint64_t> default_seed,
                             const std::stop_token& cancelled) {
  GenerateOptions options =
      common_options(request.common, request.sampling, default_seed, cancelled);
  set_ends(request.generation, request.max_tokens, options);
  ask_for_logprobs(request.logprobs ? std::optional(request.top_logprobs) : std::nullopt,
                   request.generation.prompt_logprobs, options);
  return options;
}

ClassifyOptions classification_options(const ClassificationRequest& request, size_t index,
                                       std::optional<uint64_t> default_seed,
                                       const std::stop_token& cancelled) {
  GenerateOptions sampling =
      common_options(request.common, request.sampling, default_seed, cancelled);
  sampling.add_special_tokens = request.add_special_tokens;
  sampling.prompt_name = request.input.name("input", index);
  return {.labels = request.labels,
          .want_token_id = request.labels.empty() || request.with_token_id,
          .with_logits = request.with_logits,
          .sampling = std::move(sampling)};
}

}  // namespace paceline
