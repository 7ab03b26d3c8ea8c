#include "protocol/completion_request.h"

#include "engine/request.h"

namespace paceline {
namespace {

constexpr FieldDef<CompletionRequest> kFields[] = {
    {.name = "prompt",
     .help = "A string, an array of strings (up to 128), of token ids, or of arrays of token ids.",
     .read = [](const FieldValue& v,
                CompletionRequest& t) { t.prompt = read_prompts(v, kMaxPrompts); }},
    {.name = "max_tokens",
     .help = "Stop after so many tokens; 16 by default.",
     .read = [](const FieldValue& v,
                CompletionRequest& t) { t.max_tokens = v.integer(0, kMaxOutputTokens); }},
    {.name = "logprobs",
     .help = "Report each token's log-probability and so many alternatives, 0 to 20.",
     .read =
         [](const FieldValue& v, CompletionRequest& t) {
           t.logprobs = static_cast<int32_t>(v.integer(0, kMaxTopLogprobs));
         }},
    {.name = "echo",
     .help = "Begin the text with the prompt, and the log-probabilities with the prompt's.",
     .read = [](const FieldValue& v, CompletionRequest& t) { t.echo = v.boolean(); }},
    {.name = "add_special_tokens",
     .help = "Encode a text prompt with the special tokens (BOS) that the tokenizer adds.",
     .read = [](const FieldValue& v, CompletionRequest& t) { t.add_special_tokens = v.boolean(); }},
    {.name = "best_of",
     .help = "Only the same as n.",
     .read =
         [](const FieldValue& v, CompletionRequest& t) {
           if (v.integer(0, kMaxChoices) != t.generation.n) v.refuse_unsupported("the same as n");
         }},
    {.name = "suffix",
     .help = "Only an empty string.",
     .read =
         [](const FieldValue& v, CompletionRequest&) {
           if (!v.text().empty()) v.refuse_unsupported("an empty string");
         }},
};

}  // namespace

CompletionRequest parse_completion_request(const Json& body) {
  CompletionRequest request;
  RequestReader reader(body);
  reader.read(common_fields(), request.common);
  reader.read(sampling_fields(), request.sampling);
  reader.read(generation_fields(), request.generation);
  reader.read<CompletionRequest>(kFields, request);
  reader.finish();
  reader.require("prompt");
  check_stream_fields(request.generation.streaming);
  return request;
}

std::vector<FieldInfo> completion_request_fields() {
  std::vector<FieldInfo> list;
  append_fields(common_fields(), list);
  append_fields<CompletionRequest>(kFields, list);
  append_fields(generation_fields(), list);
  append_fields(sampling_fields(), list);
  return list;
}

}  // namespace paceline
