#include "protocol/generate_response.h"

#include <span>
#include <string_view>

#include "base/request_error.h"
#include "protocol/logprobs_json.h"

namespace paceline {
namespace {

// The completions' shape, or llama.cpp's.
void write_logprobs(JsonWriter& writer, std::span<const ReportedToken> tokens,
                    std::string_view text, int64_t text_offset, const ChunkStyle& style) {
  if (style.as_probabilities) {
    writer.key("completion_probabilities");
    return write_probabilities(writer, tokens, style.naming);
  }
  writer.key("logprobs");
  write_completion_logprobs(writer, tokens, text, style.naming, text_offset);
}

}  // namespace

CompletionRequest parse_generate_request(const Json& body, const RequestTerms& terms) {
  RequestTerms own = terms;
  own.max_choices = 1;
  CompletionRequest request = parse_completion_request(body, own);
  if (request.prompt.is_array) {
    throw RequestError(
        "prompt", ErrorReason::invalid_value,
        "prompt: found an array of prompts, expected " + std::string(kOnePrompt.expected));
  }
  request.generation.return_token_ids = true;
  return request;
}

FieldList generate_request_fields() {
  FieldList list = completion_request_fields();
  for (FieldInfo& field : list) {
    if (field.name == "prompt") {
      field.type = kOnePrompt;
      field.help = "A string or an array of token ids.";
    }
    if (field.type.counts_choices) field.type.max = 1;
    if (field.name == "n") field.help = "Only 1; /v1/completions has more.";
    if (field.name == "return_token_ids") field.by_default = true;
  }
  return list;
}

std::string generate_response_json(const ResponseHead& head, const ResponseChoice& choice,
                                   const ResponseUsage& usage, const ChunkStyle& style) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("id", head.id).member("model", head.model).key("text");
  choice.text ? writer.string(*choice.text) : writer.null();
  if (choice.logprobs) {
    write_logprobs(writer, *choice.logprobs, choice.text.value_or(""), 0, style);
  }
  write_choice_end(writer, choice);
  write_usage(writer, usage);
  writer.end_object();
  return json;
}

std::string generate_chunk_json(const ResponseHead& head, const ResponseChunk& chunk,
                                const ChunkStyle& style) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("id", head.id).key("text");
  chunk.text ? writer.string(*chunk.text) : writer.null();
  if (chunk.logprobs) {
    write_logprobs(writer, *chunk.logprobs, chunk.named_text, chunk.text_offset, style);
  }
  write_chunk_end(writer, chunk);
  if (chunk.usage) write_usage(writer, *chunk.usage);
  writer.end_object();
  return json;
}

}  // namespace paceline
