// POST /v1/chat/completions, OpenAI's.
#include "protocol/event_writer.h"

namespace paceline {
namespace {

class ChatWriter : public EventWriter {
 public:
  explicit ChatWriter(const GenerationFields& fields)
      : EventWriter(kChatIdPrefix),
        style_{.naming = naming_of(fields), .has_usage = fields.streaming.include_usage},
        has_usage_so_far_(fields.streaming.continuous_usage) {}

  std::string whole(const ChoicesResponse& answer) override { return chat_response_json(answer); }

  void begin(const AnswerStart& start, std::string& out) override {
    EventWriter::begin(start, out);
    for (size_t i = 0; i < start.num_choices; ++i) {
      ResponseChunk role{.index = static_cast<int64_t>(i), .has_role = true, .text = ""};
      if (has_usage_so_far_) role.usage = start.usage;
      chunk(role, out);
    }
  }

  void chunk(const ResponseChunk& chunk, std::string& out) override {
    append_event(chat_chunk_json(head_, chunk, style_), out);
    head_.warnings.clear();  // the first chunk has them
  }

  void end(const ResponseUsage& usage, std::string& out) override {
    finish(kChatChunkObject, style_, usage, out);
  }

 private:
  ChunkStyle style_;
  bool has_usage_so_far_;
};

Call parse_chat(const Json& body, const CallTerms& terms) {
  GenerationCall call{.request = parse_chat_request(body, terms.limits), .writer = nullptr};
  call.writer = std::make_unique<ChatWriter>(std::get<ChatRequest>(call.request).generation);
  return call;
}

}  // namespace

const Dialect kChatDialect = {.fields = chat_request_fields, .parse = parse_chat};

}  // namespace paceline
