// POST /v1/completions, OpenAI's, and POST /generate, Paceline's own: one prompt, one text, without
// the API's wrapping.
#include <optional>

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

// The text of a choice or of a chunk, with the tokens that made it.
struct TokenText {
  std::optional<std::string_view> text;
  const ReportedTokens& logprobs;
  std::string_view named = {};  // the tokens' text
  int64_t offset = 0;           // of that in the choice's text
};

TokenText text_of(const ResponseChoice& choice) {
  TokenText text{.text = choice.text, .logprobs = choice.logprobs};
  text.named = text.text.value_or("");
  return text;
}

TokenText text_of(const ResponseChunk& chunk) {
  return {chunk.text, chunk.logprobs, chunk.named_text, chunk.text_offset};
}

void write_logprobs(JsonWriter& writer, const TokenText& text, TokenNaming naming) {
  writer.key("logprobs");
  if (!text.logprobs) {
    writer.null();
    return;
  }
  write_completion_logprobs(writer, *text.logprobs, text.named, naming, text.offset);
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
          write_logprobs(writer.member("text", choice.text), text_of(choice), of.naming);
        });
  }

  void chunk(const ResponseChunk& chunk, std::string& out) override {
    choice_event(kObject, chunk, out, [&](JsonWriter& writer) {
      write_logprobs(writer.member("text", chunk.text), text_of(chunk), style_.naming);
    });
  }

  void end(const ResponseUsage& usage, std::string& out) override { finish(kObject, usage, out); }

 private:
  static constexpr std::string_view kObject = "text_completion";
};

// The log-probabilities that there are in the completions' shape, or llama.cpp's.
void write_generated(JsonWriter& writer, const TokenText& text, const ChunkStyle& style) {
  writer.member("text", text.text);
  if (!text.logprobs) return;
  if (!style.as_probabilities) return write_logprobs(writer, text, style.naming);
  writer.key("completion_probabilities");
  write_probabilities(writer, *text.logprobs, style.naming);
}

class GenerateWriter : public CompletionWriter {
 public:
  explicit GenerateWriter(const CompletionRequest& request) : CompletionWriter(request, "gen-") {}

  std::string whole(const ChoicesResponse& answer) override {
    return object_json([&](JsonWriter& writer) {
      const ResponseChoice& choice = answer.choices[0];
      writer.member("id", answer.head.id).member("model", answer.head.model);
      write_generated(writer, text_of(choice), style_);
      write_choice_end(writer, choice);
      write_usage(writer, answer.usage);
    });
  }

  void chunk(const ResponseChunk& chunk, std::string& out) override {
    const std::string json = object_json([&](JsonWriter& writer) {
      writer.member("id", head_.id);
      write_generated(writer, text_of(chunk), style_);
      write_chunk_end(writer, chunk);
      if (chunk.usage) write_usage(writer, *chunk.usage);
    });
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
