#include "protocol/completion_request.h"

#include "base/request_error.h"
#include "engine/request.h"
#include "protocol/request_reader.h"

namespace paceline {
namespace {

void read_best_of(const FieldValue& value, CompletionRequest& target) {
  target.best_of = value.small_integer();
  if (target.best_of < target.generation.n) value.refuse("n or more");
}

void read_num_probabilities(const FieldValue& value, CompletionRequest& target) {
  const int32_t count = value.small_integer();
  if (count == 0) return;
  if (target.logprobs && *target.logprobs != count) value.refuse("the same as logprobs");
  target.logprobs = count;
  target.as_probabilities = true;
}

constexpr FieldDef<CompletionRequest> kCompletionFields[] = {
    required("prompt", kPrompts,
             "A string, an array of strings (up to 128), of token ids, or of arrays of token ids.",
             [](const FieldValue& v, CompletionRequest& t) { t.prompt = read_prompts(v); }),
    field("max_tokens", kOutputTokens, generation_option("max_tokens").help,
          {.by_default = kDefaultCompletionTokens},
          store<&CompletionRequest::options, &GenerateOptions::max_tokens>),
    field("logprobs", kNumTopLogprobs, generation_option("logprobs").help,
          store<&CompletionRequest::logprobs>),
    field("echo", kBoolean,
          "Begin the text with the prompt, and the log-probabilities with the prompt's.", kOff,
          store<&CompletionRequest::echo>),
    field("add_special_tokens", kBoolean,
          "Encode a text prompt with the special tokens (BOS) that the tokenizer adds.", kOn,
          store<&CompletionRequest::options, &GenerateOptions::add_special_tokens>),
    field("best_of", kNumChoices,
          "Draw this many and return the n with the highest mean log-probability; not with stream.",
          read_best_of),
    field("n_probs", kNumTopLogprobs,
          "llama.cpp's name of it, 0: none; in /generate's answer completion_probabilities.",
          {.alias_of = "logprobs"}, read_num_probabilities),
    field("suffix", kAnyText,
          "The text after the gap, for models with fill-in-the-middle tokens; prompt is the one "
          "before it.",
          store<&CompletionRequest::suffix>),
    refused("tools"),
    refused("tool_choice"),
};

}  // namespace

CompletionRequest parse_completion_request(const Json& body, const RequestTerms& terms) {
  CompletionRequest request;
  RequestReader reader(body, terms);
  read_generation(reader, request);
  reader.read<CompletionRequest>(kCompletionFields, request);
  reader.finish();
  finish_generation(body, request);
  check_stream_fields(request.generation.streaming);
  check_penalty_fields(request.generation, request.options);
  check_logprob_fields(request.options, request.logprobs.has_value());
  if (request.generation.streaming.stream && request.num_candidates() > request.generation.n) {
    throw invalid_field("best_of", "more than n isn't possible with stream");
  }
  if (!request.suffix.empty() && (request.echo || request.options.truncate_prompt_tokens)) {
    throw invalid_field("suffix", "not allowed with echo or truncate_prompt_tokens");
  }
  if (request.echo && request.options.truncate_prompt_tokens) {
    throw invalid_field("truncate_prompt_tokens", "not allowed with echo");
  }
  return request;
}

FieldList completion_request_fields() {
  FieldList list = common_and_own_fields<kCompletionFields>();
  append_generation_fields(list);
  return list;
}

}  // namespace paceline
