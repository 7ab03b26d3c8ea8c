#include "cli/conversation.h"

#include "base/json_cursor.h"
#include "base/json_writer.h"

namespace paceline {

namespace {

ChatMessage assistant_message(std::string content, const std::string& reasoning) {
  ChatMessage message{"assistant", std::move(content)};
  if (reasoning.empty()) return message;
  JsonWriter writer(message.json);
  writer.begin_object().member("role", message.role).member("content", message.content);
  writer.member("reasoning_content", reasoning).end_object();
  return message;
}

void write_message(JsonWriter& writer, const ChatMessage& message) {
  if (!message.json.empty()) {
    writer.tree(parse_json(message.json, "messages"));
    return;
  }
  writer.begin_object().member("role", message.role).member("content", message.content);
  writer.end_object();
}

}  // namespace

void Conversation::add_answer(const Completion& completion) {
  turns_.push_back(completion.turn
                       ? assistant_message(completion.turn->content, completion.turn->reasoning)
                       : assistant_message(completion.text.value_or(""), ""));
}

void Conversation::drop_question() {
  if (!turns_.empty() && turns_.back().role == "user") turns_.pop_back();
}

std::optional<ChatMessage> Conversation::take_answer() {
  const size_t size = turns_.size();
  if (size < 2 || turns_[size - 1].role != "assistant" || turns_[size - 2].role != "user") {
    return std::nullopt;
  }
  ChatMessage answer = std::move(turns_.back());
  turns_.pop_back();
  return answer;
}

std::vector<ChatMessage> Conversation::messages() const {
  std::vector<ChatMessage> all;
  if (!system_.empty()) all.push_back({"system", system_});
  all.insert(all.end(), turns_.begin(), turns_.end());
  return all;
}

std::string Conversation::to_json() const {
  const std::string json = object_json([&](JsonWriter& writer) {
    writer.key("messages").begin_array();
    for (const ChatMessage& message : messages()) write_message(writer, message);
    writer.end_array();
  });
  return json + "\n";
}

void Conversation::read_json(std::string_view json, std::string_view where) {
  const Json document = parse_json(json, where);
  const JsonCursor root(document, std::string(where));
  std::string system;
  std::vector<ChatMessage> turns;
  const JsonCursor list = root.is_array() ? root.below("messages", document) : root.at("messages");
  for (const JsonCursor& message : list.items()) {
    ChatMessage turn{message.at("role").string(), message.at("content").string()};
    const auto reasoning = message.find("reasoning_content");
    if (reasoning && turn.role == "assistant") {
      turn = assistant_message(std::move(turn.content), reasoning->string());
    }
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
