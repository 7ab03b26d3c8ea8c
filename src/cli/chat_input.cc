#include "cli/chat_input.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_writer.h"
#include "cli/system_prompt.h"

namespace paceline {
namespace {

std::string json_of(const Json& line, std::string_view field) {
  const Json* value = line.find_value(field);
  return value == nullptr ? std::string() : to_json(*value);
}

}  // namespace

ChatInput chat_input(const Conversation& conversation, const Settings& settings) {
  return {.messages = conversation.messages(), .kwargs_json = settings.chat_template_kwargs};
}

ChatInput read_chat_input(const Json& line, std::string_view kwargs_field,
                          const Settings& settings) {
  ChatInput input;
  const Json* messages = line.find_value("messages");
  if (messages == nullptr) throw Error(ErrorCode::invalid, "found no messages");
  for (const Json& message : messages->as_array("messages")) {
    message.as_object(fmt::format("messages[{}]", input.messages.size()));
    input.messages.push_back({.role = {}, .content = {}, .json = to_json(message)});
  }
  input.tools_json = json_of(line, "tools");
  input.documents_json = json_of(line, "documents");
  input.kwargs_json = json_of(line, kwargs_field);
  if (input.kwargs_json.empty()) input.kwargs_json = settings.chat_template_kwargs;
  add_system_message(settings.system, input);
  return input;
}

}  // namespace paceline
