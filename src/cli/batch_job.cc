#include "cli/batch_job.h"

#include <algorithm>

namespace paceline {
namespace {

GenerateOptions sampling_options(const SamplingFields& fields,
                                 std::optional<uint64_t> default_seed) {
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
  return options;
}

// Requests ask for alternatives of the answer and of the prompt; the engine reports as many of
// both.
void ask_for_logprobs(std::optional<int32_t> of_answer, std::optional<int32_t> of_prompt,
                      GenerateOptions& options) {
  options.prompt_logprobs = of_prompt.has_value();
  const int32_t most = std::max(of_answer.value_or(0), of_prompt.value_or(0));
  if (of_answer || most > 0) options.logprobs = most;
}

GenerateOptions generate_options(const GenerationFields& fields, const SamplingFields& sampling,
                                 std::optional<uint64_t> default_seed, const BatchJob& job) {
  GenerateOptions options = sampling_options(sampling, default_seed);
  options.stop = fields.stop;
  options.stop_token_ids = fields.stop_token_ids;
  options.ignore_eos = fields.ignore_eos;
  options.cancelled = job.stop.get_token();
  const CommonFields& common = common_fields_of(job.request);
  options.priority = common.priority;
  options.cache_salt = common.cache_salt;
  return options;
}

struct Submission {
  RequestPool& pool;
  LLM& llm;
  int64_t tag;
  BatchJob& job;
  size_t index;
  std::optional<uint64_t> default_seed;

  void operator()(const CompletionRequest& request) const {
    const GenerationFields& fields = request.generation;
    GenerateOptions options = generate_options(fields, request.sampling, default_seed, job);
    options.max_tokens = request.max_tokens;
    options.add_special_tokens = request.add_special_tokens;
    options.prompt_name = request.prompt.name("prompt", index);
    const bool echoes_logprobs = request.echo && request.logprobs;
    ask_for_logprobs(request.logprobs,
                     echoes_logprobs && !fields.prompt_logprobs ? 0 : fields.prompt_logprobs,
                     options);
    pool.generate(tag, request.prompt.prompts[index], options, fields.n);
  }

  void operator()(const ChatRequest& request) const {
    const GenerationFields& fields = request.generation;
    GenerateOptions options = generate_options(fields, request.sampling, default_seed, job);
    options.max_tokens = request.max_tokens;
    ask_for_logprobs(request.logprobs ? std::optional(request.top_logprobs) : std::nullopt,
                     fields.prompt_logprobs, options);
    pool.chat(tag, request.input, options, fields.n);
  }

  void operator()(const ClassificationRequest& request) const {
    // Encoded here, because a classification doesn't say how many tokens its prompt had.
    Prompt prompt = request.input.prompts[index];
    if (const auto* text = std::get_if<std::string>(&prompt)) {
      prompt = llm.tokenize(*text, request.add_special_tokens);
    }
    job.parts[index].prompt_tokens =
        static_cast<int64_t>(std::get<std::vector<int32_t>>(prompt).size());
    GenerateOptions sampling = sampling_options(request.sampling, default_seed);
    sampling.prompt_name = request.input.name("input", index);
    sampling.cancelled = job.stop.get_token();
    sampling.priority = request.common.priority;
    sampling.cache_salt = request.common.cache_salt;
    pool.classify(tag, prompt,
                  {.labels = request.labels,
                   .want_token_id = request.labels.empty() || request.with_token_id,
                   .with_logits = request.with_logits,
                   .sampling = std::move(sampling)});
  }
};

void refuse_stream(const GenerationFields& fields) {
  if (fields.streaming.stream) {
    throw RequestError("stream", "unsupported_parameter",
                       "stream: found true, only false is supported in a batch");
  }
}

}  // namespace

ApiRequest parse_api_request(BatchUrl url, const Json& body) {
  if (url == BatchUrl::classify) return parse_classification_request(body);
  if (url == BatchUrl::chat_completions) {
    ChatRequest request = parse_chat_request(body);
    refuse_stream(request.generation);
    return request;
  }
  CompletionRequest request = parse_completion_request(body);
  refuse_stream(request.generation);
  return request;
}

const CommonFields& common_fields_of(const ApiRequest& request) {
  return std::visit([](const auto& r) -> const CommonFields& { return r.common; }, request);
}

size_t num_parts(const ApiRequest& request) {
  if (const auto* completion = std::get_if<CompletionRequest>(&request)) {
    return completion->prompt.prompts.size();
  }
  const auto* classification = std::get_if<ClassificationRequest>(&request);
  return classification == nullptr ? 1 : classification->input.prompts.size();
}

void submit_part(RequestPool& pool, LLM& llm, int64_t tag, BatchJob& job, size_t index,
                 std::optional<uint64_t> default_seed) {
  std::visit(Submission{pool, llm, tag, job, index, default_seed}, job.request);
}

}  // namespace paceline
