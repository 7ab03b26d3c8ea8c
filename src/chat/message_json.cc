#include "chat/message_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_cursor.h"
#include "base/json_writer.h"

namespace paceline {

Json message_json(const ChatMessage& message, size_t index) {
  if (message.json.empty()) {
    return Json(Json::Object{{"role", Json(message.role)}, {"content", Json(message.content)}});
  }
  const std::string where = fmt::format("messages[{}]", index);
  Json json = parse_json(message.json, where);
  JsonCursor(json, where).object();
  return json;
}

std::string text_member(const Json& message, std::string_view key) {
  const std::string* const text = message.find_text(key);
  return text == nullptr ? std::string() : *text;
}

std::string content_text(const Json& message) {
  const Json* const content = message.find_value("content");
  if (content == nullptr) return {};
  if (content->is_string()) return *content->string();
  if (!content->is_array()) return to_json(*content);
  std::string text;
  for (const Json& part : *content->array()) text += text_member(part, "text");
  return text;
}

void set_member(Json::Object& members, std::string_view key, Json value) {
  const auto old = std::find_if(members.begin(), members.end(),
                                [&](const auto& one) { return one.first == key; });
  if (old != members.end()) {
    old->second = std::move(value);
  } else {
    members.emplace_back(std::string(key), std::move(value));
  }
}

Json with_member(const Json& message, std::string_view key, Json value) {
  Json::Object members = *message.object();
  set_member(members, key, std::move(value));
  return Json(std::move(members));
}

Json without_member(const Json& message, std::string_view key) {
  Json::Object members = *message.object();
  std::erase_if(members, [&](const Json::Member& member) { return member.first == key; });
  return Json(std::move(members));
}

}  // namespace paceline
