#include "protocol/completion_request.h"

#include "engine/request.h"
#include "protocol/api_error.h"

namespace paceline {
namespace {

constexpr FieldType kBestOf = {
    .kind = FieldKind::integer, .min = 1, .max = kMaxChoices, .counts_choices = true};
constexpr FieldType kNoText = {
    .kind = FieldKind::text, .max = 0, .is_part_of_api = true, .said = "an empty string"};

constexpr FieldDef<CompletionRequest> kFields[] = {
    {.name = "prompt",
     .type = kPrompts,
     .is_required = true,
     .help = "A string, an array of strings (up to 128), of token ids, or of arrays of token ids.",
     .read = [](const FieldValue& v, CompletionRequest& t) { t.prompt = read_prompts(v); }},
    {.name = "max_tokens",
     .type = kOutputTokens,
     .by_default = kDefaultCompletionTokens,
     .help = "Stop after so many tokens.",
     .read = [](const FieldValue& v, CompletionRequest& t) { t.max_tokens = v.integer(); }},
    {.name = "logprobs",
     .type = kNumTopLogprobs,
     .help = "Report each token's log-probability and so many alternatives.",
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
     .read = [](const FieldValue& v, CompletionRequest& t) { t.add_special_tokens = v.boolean(); }},
    {.name = "best_of",
     .type = kBestOf,
     .help = "Only the same as n.",
     .read =
         [](const FieldValue& v, CompletionRequest& t) {
           if (v.integer() != t.generation.n) v.refuse_unsupported("the same as n");
         }},
    {.name = "suffix", .type = kNoText, .help = "Only an empty string."},
    {.name = "response_format", .use = FieldUse::refused},
    {.name = "tools", .use = FieldUse::refused},
    {.name = "tool_choice", .use = FieldUse::refused},
};

}  // namespace

CompletionRequest parse_completion_request(const Json& body, const RequestTerms& terms) {
  CompletionRequest request;
  RequestReader reader(body, terms);
  reader.read(common_fields(), request.common);
  reader.read(sampling_fields(), request.sampling);
  reader.read(generation_fields(), request.generation);
  reader.read<CompletionRequest>(kFields, request);
  reader.finish();
  check_stream_fields(request.generation.streaming);
  if (request.echo && request.generation.truncate_prompt_tokens) {
    throw RequestError("truncate_prompt_tokens", "invalid_value",
                       "truncate_prompt_tokens: not allowed with echo");
  }
  return request;
}

FieldList completion_request_fields() {
  FieldList list;
  append_fields(common_fields(), list);
  append_fields<CompletionRequest>(kFields, list);
  append_fields(generation_fields(), list);
  append_fields(sampling_fields(), list);
  return list;
}

}  // namespace paceline
