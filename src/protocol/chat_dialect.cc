// POST /v1/chat/completions, OpenAI's.
#include "protocol/event_writer.h"
#include "protocol/logprobs_json.h"
#include "protocol/response.h"

namespace paceline {
namespace {

void write_chat_delta(JsonWriter& writer, const TurnDelta& delta,
                      std::string_view reasoning_field) {
  if (!delta.reasoning.empty()) writer.member(reasoning_field, delta.reasoning);
  if (!delta.content.empty()) writer.member("content", delta.content);
  if (!delta.call_index) return;
  writer.key("tool_calls").begin_array().begin_object();
  writer.member("index", static_cast<int64_t>(*delta.call_index));
  if (delta.begins_call) writer.member("id", delta.call_id).member("type", "function");
  writer.key("function").begin_object();
  if (delta.begins_call) writer.member("name", delta.call_name);
  writer.member("arguments", delta.arguments).end_object().end_object().end_array();
}

class ChatWriter : public EventWriter {
 public:
  explicit ChatWriter(const GenerationFields& fields)
      : EventWriter("chatcmpl-",
                    {.naming = naming_of(fields), .has_usage = fields.streaming.include_usage}),
        has_usage_so_far_(fields.streaming.continuous_usage) {}

  std::string whole(const ChoicesResponse& answer) override {
    return choices_json(
        answer, "chat.completion",
        [](JsonWriter& writer, const ResponseChoice& choice, const ChoicesResponse& of) {
          writer.key("message").begin_object();
          write_assistant_message(writer, choice.text, choice.turn, of.head.reasoning_field);
          writer.key("refusal").null().end_object();
          write_chat_choice_logprobs(writer, choice.logprobs, of.naming);
        });
  }

  void begin(const AnswerStart& start, std::string& out) override {
    EventWriter::begin(start, out);
    for (size_t i = 0; i < start.num_choices; ++i) {
      ResponseChunk role{.index = static_cast<int64_t>(i), .has_role = true, .text = ""};
      if (has_usage_so_far_) role.usage = start.usage;
      chunk(role, out);
    }
  }

  void chunk(const ResponseChunk& chunk, std::string& out) override {
    choice_event(kObject, chunk, out, [&](JsonWriter& writer) {
      writer.key("delta").begin_object();
      if (chunk.has_role) writer.member("role", "assistant");
      if (chunk.turn != nullptr) {
        write_chat_delta(writer, *chunk.turn, head_.reasoning_field);
      } else if (chunk.text && (chunk.has_role || !chunk.text->empty())) {
        writer.member("content", *chunk.text);
      }
      writer.end_object();
      write_chat_choice_logprobs(writer, chunk.logprobs, style_.naming);
    });
  }

  void end(const ResponseUsage& usage, std::string& out) override { finish(kObject, usage, out); }

 private:
  static constexpr std::string_view kObject = "chat.completion.chunk";

  bool has_usage_so_far_;
};

Call parse_chat(const Json& body, const CallTerms& terms) {
  ChatRequest request = parse_chat_request(body, terms.limits);
  auto writer = std::make_unique<ChatWriter>(request.generation);
  return GenerationCall{.request = std::move(request), .writer = std::move(writer)};
}

}  // namespace

const Dialect kChatDialect = {.fields = chat_request_fields, .parse = parse_chat};

}  // namespace paceline
