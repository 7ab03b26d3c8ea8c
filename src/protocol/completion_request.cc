#include "protocol/completion_request.h"

#include "base/request_error.h"
#include "engine/request.h"
#include "protocol/client_fields.h"

namespace paceline {
namespace {

constexpr FieldType kBestOf = {
    .kind = FieldKind::integer, .min = 1, .max = kMaxChoices, .counts_choices = true};
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
    {.name = "prompt",
     .type = kPrompts,
     .is_required = true,
     .help = "A string, an array of strings (up to 128), of token ids, or of arrays of token ids.",
     .read = [](const FieldValue& v, CompletionRequest& t) { t.prompt = read_prompts(v); }},
    {.name = "max_tokens",
     .type = kOutputTokens,
     .by_default = kDefaultCompletionTokens,
     .help = generation_option("max_tokens").help,
     .read = [](const FieldValue& v, CompletionRequest& t) { t.options.max_tokens = v.integer(); }},
    {.name = "logprobs",
     .type = kNumTopLogprobs,
     .help = generation_option("logprobs").help,
     .read = [](const FieldValue& v, CompletionRequest& t) { t.logprobs = v.small_integer(); }},
    {.name = "echo",
     .type = kBoolean,
     .by_default = false,
     .help = "Begin the text with the prompt, and the log-probabilities with the prompt's.",
     .read = [](const FieldValue& v, CompletionRequest& t) { t.echo = v.boolean(); }},
    {.name = "add_special_tokens",
     .type = kBoolean,
     .by_default = true,
     .help = "Encode a text prompt with the special tokens (BOS) that the tokenizer adds.",
     .read = [](const FieldValue& v,
                CompletionRequest& t) { t.options.add_special_tokens = v.boolean(); }},
    {.name = "best_of",
     .type = kBestOf,
     .help =
         "Draw this many and return the n with the highest mean log-probability; not with stream.",
     .read = read_best_of},
    {.name = "n_probs",
     .type = kNumTopLogprobs,
     .alias_of = "logprobs",
     .help = "llama.cpp's name of it, 0: none; in /generate's answer completion_probabilities.",
     .read = read_num_probabilities},
    {.name = "suffix",
     .type = kAnyText,
     .help = "The text after the gap, for models with fill-in-the-middle tokens; prompt is the one "
             "before it.",
     .read = [](const FieldValue& v, CompletionRequest& t) { t.suffix = v.text(); }},
    {.name = "tools", .use = FieldUse::refused},
    {.name = "tool_choice", .use = FieldUse::refused},
};

}  // namespace

CompletionRequest parse_completion_request(const Json& body, const RequestTerms& terms) {
  CompletionRequest request;
  RequestReader reader(body, terms);
  reader.read(common_fields(), request.common);
  read_client_fields(FieldLevel::request, reader);
  reader.read(sampling_fields(), request.options);
  reader.read(text_fields(), request.options);
  reader.read(generation_fields(), request.generation);
  reader.read(constraint_fields(), request.generation.constraint);
  reader.read<CompletionRequest>(kCompletionFields, request);
  reader.finish();
  request.options.constraint = request.generation.constraint.spec;
  request.options.constraint_name = request.generation.constraint.field;
  request.generation.has_negative_seed = has_negative_seed(body);
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
  FieldList list;
  append_fields(common_fields(), list);
  append_client_fields(FieldLevel::request, list);
  append_fields<CompletionRequest>(kCompletionFields, list);
  append_fields(generation_fields(), list);
  append_fields(constraint_fields(), list);
  append_fields(text_fields(), list);
  append_fields(sampling_fields(), list);
  return list;
}

}  // namespace paceline
