#include "protocol/event_writer.h"

namespace paceline {

void EventWriter::begin(const AnswerStart& start, std::string& /*out*/) { head_ = start.head; }

void EventWriter::fail(const ApiError& error, std::string& out) {
  append_event(error_json(error), out);
}

void EventWriter::append_event(std::string_view json, std::string& out) {
  out.append("data: ").append(json).append("\n\n");
}

void EventWriter::finish(std::string_view object, const ResponseUsage& usage,
                         std::string& out) const {
  if (style_.has_usage) {
    const std::string json = object_json([&](JsonWriter& writer) {
      write_head(writer, head_, object);
      writer.key("choices").begin_array().end_array();
      write_usage(writer, usage);
    });
    append_event(json, out);
  }
  append_event("[DONE]", out);
}

}  // namespace paceline
