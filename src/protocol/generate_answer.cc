#include "protocol/generate_answer.h"

#include "protocol/api_error.h"
#include "protocol/logprobs_json.h"

namespace paceline {

CompletionRequest parse_generate_request(const Json& body) {
  CompletionRequest request = parse_completion_request(body);
  if (request.prompt.prompts.size() != 1) {
    throw RequestError("prompt", "invalid_value", "prompt: found several, expected one");
  }
  if (request.generation.n != 1) {
    throw RequestError("n", "invalid_value", "n: expected 1; /v1/completions has more");
  }
  request.generation.return_token_ids = true;
  return request;
}

std::string generate_answer_json(const AnswerHead& head, const AnswerChoice& choice,
                                 const AnswerUsage& usage, TokenNaming naming) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("id", head.id).member("model", head.model).key("text");
  choice.text ? writer.string(*choice.text) : writer.null();
  if (choice.logprobs) {
    writer.key("logprobs");
    write_completion_logprobs(writer, *choice.logprobs, choice.text.value_or(""), naming);
  }
  write_choice_end(writer, choice);
  write_usage(writer, usage);
  writer.end_object();
  return json;
}

std::string generate_chunk_json(const AnswerHead& head, const AnswerChunk& chunk,
                                TokenNaming naming) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("id", head.id).key("text");
  chunk.text ? writer.string(*chunk.text) : writer.null();
  if (chunk.logprobs) {
    writer.key("logprobs");
    write_completion_logprobs(writer, *chunk.logprobs, chunk.named_text, naming, chunk.text_offset);
  }
  write_chunk_end(writer, chunk);
  writer.end_object();
  return json;
}

}  // namespace paceline
