// POST /v1/responses, /v1/responses/compact and /v1/responses/input_tokens, OpenAI's.
#include <utility>

#include "base/json_writer.h"
#include "protocol/responses_writer.h"

namespace paceline {
namespace responses {
namespace {

Call make_call(Request request, std::unique_ptr<ChoiceWriter> writer) {
  GenerationCall call{.writer = std::move(writer)};
  call.is_background = request.is_background && !request.chat.generation.streaming.stream;
  call.request = std::move(request.chat);
  return call;
}

Call parse_responses(const Json& body, const CallTerms& terms) {
  Request request = parse_request(body, terms);
  auto writer = std::make_unique<Writer>(request, terms);
  return make_call(std::move(request), std::move(writer));
}

// Its answer is the compacted conversation alone, which isn't stored.
class CompactionWriter : public Writer {
 public:
  using Writer::Writer;

  std::string whole(const ChoicesResponse& answer) override {
    head_ = answer.head;
    take_turn(answer.choices.at(0));
    return object_json([&](JsonWriter& writer) {
      writer.member("id", head_.id).member("object", "response.compaction");
      writer.member("created_at", head_.created).key("output");
      write_items(writer, "completed");
      write_input_output_usage(writer, answer.usage, 0);
    });
  }
};

Call parse_compact(const Json& body, const CallTerms& terms) {
  Request request = parse_compaction(body, terms);
  request.is_stored = false;
  auto writer = std::make_unique<CompactionWriter>(request, terms);
  return make_call(std::move(request), std::move(writer));
}

Call parse_input_tokens(const Json& body, const CallTerms& terms) {
  return CountCall{.request = parse_prompt(body, terms).chat, .write = [](int64_t num_tokens) {
                     return object_json([&](JsonWriter& writer) {
                       writer.member("object", "response.input_tokens");
                       writer.member("input_tokens", num_tokens);
                     });
                   }};
}

}  // namespace
}  // namespace responses

const Dialect kResponsesDialect = {.fields = responses::request_fields,
                                   .parse = responses::parse_responses};
const Dialect kCompactionDialect = {.fields = responses::prompt_fields,
                                    .parse = responses::parse_compact};
const Dialect kInputTokensDialect = {.fields = responses::prompt_fields,
                                     .parse = responses::parse_input_tokens};

}  // namespace paceline
