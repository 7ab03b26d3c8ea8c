#include "protocol/assistant_message.h"

namespace paceline {
namespace {

void write_calls(JsonWriter& writer, const std::vector<ToolCall>& calls) {
  writer.key("tool_calls").begin_array();
  for (const ToolCall& call : calls) {
    writer.begin_object().member("id", call.id).member("type", "function");
    writer.key("function").begin_object().member("name", call.name);
    writer.member("arguments", call.arguments).end_object().end_object();
  }
  writer.end_array();
}

void write_turn(JsonWriter& writer, const TurnParts& turn, std::string_view reasoning_field) {
  writer.key("content");
  const bool has_no_content = turn.must_call || !turn.tool_calls.empty();
  turn.content.empty() && has_no_content ? writer.null() : writer.string(turn.content);
  if (!turn.reasoning.empty()) writer.member(reasoning_field, turn.reasoning);
  if (!turn.tool_calls.empty()) write_calls(writer, turn.tool_calls);
}

}  // namespace

void write_assistant_message(JsonWriter& writer, const std::optional<std::string>& text,
                             const std::optional<TurnParts>& turn,
                             std::string_view reasoning_field) {
  writer.member("role", "assistant");
  if (turn) return write_turn(writer, *turn, reasoning_field);
  writer.member("content", text);
}

}  // namespace paceline
