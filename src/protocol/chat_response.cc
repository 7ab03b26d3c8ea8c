#include "protocol/chat_response.h"

#include "protocol/logprobs_json.h"

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

void write_turn(JsonWriter& writer, const TurnParts& turn) {
  writer.key("content");
  turn.content.empty() && !turn.tool_calls.empty() ? writer.null() : writer.string(turn.content);
  if (!turn.reasoning.empty()) {
    writer.member("reasoning_content", turn.reasoning).member("reasoning", turn.reasoning);
  }
  if (!turn.tool_calls.empty()) write_calls(writer, turn.tool_calls);
}

}  // namespace

std::string chat_response_json(const ChatResponse& answer) {
  return choices_json(answer, "chat.completion",
                      [](JsonWriter& writer, const ResponseChoice& choice, TokenNaming naming) {
                        writer.key("message").begin_object().member("role", "assistant");
                        if (choice.turn) {
                          write_turn(writer, *choice.turn);
                        } else {
                          writer.key("content");
                          choice.text ? writer.string(*choice.text) : writer.null();
                        }
                        writer.key("refusal").null().end_object();
                        write_chat_choice_logprobs(writer, choice.logprobs, naming);
                      });
}

}  // namespace paceline
