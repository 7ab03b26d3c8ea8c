// POST /v1/completions, OpenAI's, and POST /generate, Paceline's own.
#include "protocol/event_writer.h"
#include "protocol/generate_response.h"

namespace paceline {
namespace {

ChunkStyle style_of(const CompletionRequest& request) {
  return {.naming = naming_of(request.generation),
          .has_usage = request.generation.streaming.include_usage,
          .as_probabilities = request.as_probabilities};
}

class CompletionWriter : public EventWriter {
 public:
  explicit CompletionWriter(const CompletionRequest& request)
      : EventWriter(kCompletionIdPrefix), style_(style_of(request)) {}

  std::string whole(const ChoicesResponse& answer) override {
    return completion_response_json(answer);
  }
  void chunk(const ResponseChunk& chunk, std::string& out) override {
    append_event(completion_chunk_json(head_, chunk, style_), out);
    head_.warnings.clear();  // the first chunk has them
  }
  void end(const ResponseUsage& usage, std::string& out) override {
    finish(kCompletionChunkObject, style_, usage, out);
  }

 private:
  ChunkStyle style_;
};

class GenerateWriter : public EventWriter {
 public:
  explicit GenerateWriter(const CompletionRequest& request)
      : EventWriter(kGenerateIdPrefix), style_(style_of(request)) {}

  std::string whole(const ChoicesResponse& answer) override {
    return generate_response_json(answer.head, answer.choices[0], answer.usage, style_);
  }
  void chunk(const ResponseChunk& chunk, std::string& out) override {
    append_event(generate_chunk_json(head_, chunk, style_), out);
  }
  void end(const ResponseUsage& usage, std::string& out) override {
    finish(kCompletionChunkObject, style_, usage, out);
  }

 private:
  ChunkStyle style_;
};

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
