// POST /v1/completions, OpenAI's, and POST /generate, Paceline's own: one prompt, one text, without
// the API's wrapping.
#include <span>

#include "base/request_error.h"
#include "protocol/event_writer.h"
#include "protocol/logprobs_json.h"

namespace paceline {
namespace {

ChunkStyle style_of(const CompletionRequest& request) {
  return {.naming = naming_of(request.generation),
          .has_usage = request.generation.streaming.include_usage,
          .as_probabilities = request.as_probabilities};
}

class CompletionWriter : public EventWriter {
 public:
  explicit CompletionWriter(const CompletionRequest& request,
                            std::string_view id_prefix = kCompletionIdPrefix)
      : EventWriter(id_prefix, style_of(request)) {}

  std::string whole(const ChoicesResponse& answer) override {
    return choices_json(
        answer, kObject,
        [](JsonWriter& writer, const ResponseChoice& choice, const ChoicesResponse& of) {
          writer.member("text", choice.text);
          writer.key("logprobs");
          if (!choice.logprobs) {
            writer.null();
          } else {
            write_completion_logprobs(writer, *choice.logprobs, choice.text.value_or(""),
                                      of.naming);
          }
        });
  }

  void chunk(const ResponseChunk& chunk, std::string& out) override {
    choice_event(kObject, chunk, out, [&](JsonWriter& writer) {
      writer.member("text", chunk.text);
      writer.key("logprobs");
      if (chunk.logprobs) {
        write_completion_logprobs(writer, *chunk.logprobs, chunk.named_text, style_.naming,
                                  chunk.text_offset);
      } else {
        writer.null();
      }
    });
  }

  void end(const ResponseUsage& usage, std::string& out) override { finish(kObject, usage, out); }

 private:
  static constexpr std::string_view kObject = "text_completion";
};

// The completions' shape, or llama.cpp's.
void write_generated_logprobs(JsonWriter& writer, std::span<const ReportedToken> tokens,
                              std::string_view text, int64_t text_offset, const ChunkStyle& style) {
  if (style.as_probabilities) {
    writer.key("completion_probabilities");
    return write_probabilities(writer, tokens, style.naming);
  }
  writer.key("logprobs");
  write_completion_logprobs(writer, tokens, text, style.naming, text_offset);
}

class GenerateWriter : public CompletionWriter {
 public:
  explicit GenerateWriter(const CompletionRequest& request) : CompletionWriter(request, "gen-") {}

  std::string whole(const ChoicesResponse& answer) override {
    const ResponseChoice& choice = answer.choices[0];
    std::string json;
    JsonWriter writer(json);
    writer.begin_object().member("id", answer.head.id).member("model", answer.head.model);
    writer.member("text", choice.text);
    if (choice.logprobs) {
      write_generated_logprobs(writer, *choice.logprobs, choice.text.value_or(""), 0, style_);
    }
    write_choice_end(writer, choice);
    write_usage(writer, answer.usage);
    writer.end_object();
    return json;
  }

  void chunk(const ResponseChunk& chunk, std::string& out) override {
    std::string json;
    JsonWriter writer(json);
    writer.begin_object().member("id", head_.id).member("text", chunk.text);
    if (chunk.logprobs) {
      write_generated_logprobs(writer, *chunk.logprobs, chunk.named_text, chunk.text_offset,
                               style_);
    }
    write_chunk_end(writer, chunk);
    if (chunk.usage) write_usage(writer, *chunk.usage);
    writer.end_object();
    append_event(json, out);
  }
};

// Takes the fields of a completion, except a list of prompts and n above 1. The answer always has
// token ids.
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

template <class Writer, CompletionRequest (*parse_request)(const Json&, const RequestTerms&)>
Call parse_completion(const Json& body, const CallTerms& terms) {
  CompletionRequest request = parse_request(body, terms.limits);
  auto writer = std::make_unique<Writer>(request);
  return GenerationCall{.request = std::move(request), .writer = std::move(writer)};
}

}  // namespace

const Dialect kCompletionDialect = {
    .fields = completion_request_fields,
    .parse = parse_completion<CompletionWriter, parse_completion_request>};
const Dialect kGenerateDialect = {
    .fields = generate_request_fields,
    .parse = parse_completion<GenerateWriter, parse_generate_request>};

}  // namespace paceline
