#include "cli/conversation.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"

namespace paceline {
namespace {

const std::string& text_field(const Json& message, std::string_view name,
                              const std::string& where) {
  const std::string path = fmt::format("{}.{}", where, name);
  const Json* value = message.find(name);
  if (value == nullptr) throw Error(ErrorCode::invalid, path + " is missing");
  return value->as_string(path);
}

}  // namespace

void Conversation::drop_question() {
  if (!turns_.empty() && turns_.back().role == "user") turns_.pop_back();
}

std::vector<ChatMessage> Conversation::messages() const {
  std::vector<ChatMessage> all;
  if (!system_.empty()) all.push_back({"system", system_});
  all.insert(all.end(), turns_.begin(), turns_.end());
  return all;
}

std::string Conversation::to_json() const {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().key("messages").begin_array();
  for (const ChatMessage& message : messages()) {
    writer.begin_object().member("role", message.role).member("content", message.content);
    writer.end_object();
  }
  writer.end_array().end_object();
  return json + "\n";
}

void Conversation::read_json(std::string_view json, std::string_view where) {
  const Json document = parse_json(json, where);
  const Json* list = document.is_array() ? &document : document.find("messages");
  if (list == nullptr) throw Error(ErrorCode::invalid, fmt::format("{}: found no messages", where));
  std::string system;
  std::vector<ChatMessage> turns;
  size_t index = 0;
  for (const Json& message : list->as_array(fmt::format("{}: messages", where))) {
    const std::string path = fmt::format("{}: messages[{}]", where, index++);
    ChatMessage turn{text_field(message, "role", path), text_field(message, "content", path)};
    if (turn.role == "system" && turns.empty() && system.empty()) {
      system = std::move(turn.content);
    } else {
      turns.push_back(std::move(turn));
    }
  }
  system_ = std::move(system);
  turns_ = std::move(turns);
}

}  // namespace paceline
