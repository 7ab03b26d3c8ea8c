#include "dataset/dataset_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/json_writer.h"
#include "base/suggest.h"

namespace paceline {
namespace {

constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};

std::string read_role(const JsonCursor& role) {
  const std::string& name = role.string();
  if (std::find(kRoles.begin(), kRoles.end(), name) == kRoles.end()) {
    role.mismatch(fmt::format("one of {}{}", fmt::join(kRoles, ", "), did_you_mean(name, kRoles)));
  }
  return name == "developer" ? "system" : name;
}

// Parts are joined with line breaks.
std::string read_content(const JsonCursor& content) {
  if (content.is_string()) return content.string();
  if (!content.is_array()) content.mismatch("a string, null or an array of parts");
  std::string text;
  for (size_t i = 0; i < content.num_items(); ++i) {
    const JsonCursor part = content.item(i);
    const JsonCursor type = part.at("type");
    if (type.string() != "text")
      type.mismatch("\"text\", the only kind of part that is trained on");
    if (i > 0) text += '\n';
    text += part.at("text").string();
  }
  return text;
}

Json read_arguments(const JsonCursor& arguments) {
  if (arguments.is_object()) return arguments.node().json();
  if (!arguments.is_string()) arguments.mismatch("an object, or the JSON of one in a string");
  if (arguments.string().empty()) return Json(Json::Object());
  Json parsed = parse_json(arguments.string(), arguments.name());
  if (!parsed.is_object()) arguments.mismatch("the JSON of an object");
  return parsed;
}

// `object` with the value of `key` replaced, or added.
Json with_member(const Json& object, std::string_view key, Json value) {
  Json::Object members = *object.object();
  const auto place = std::find_if(members.begin(), members.end(),
                                  [&](const Json::Member& member) { return member.first == key; });
  if (place == members.end()) {
    members.emplace_back(std::string(key), std::move(value));
  } else {
    place->second = std::move(value);
  }
  return Json(std::move(members));
}

// {"name", "arguments"} inside "function", or without it.
Json read_call(const JsonCursor& call) {
  const std::optional<JsonCursor> inside = call.find("function");
  const JsonCursor& function = inside ? *inside : call;
  function.at("name").string();
  const std::optional<JsonCursor> arguments = function.find("arguments");
  Json read = with_member(function.node().json(), "arguments",
                          arguments ? read_arguments(*arguments) : Json(Json::Object()));
  return inside ? with_member(call.node().json(), "function", std::move(read)) : read;
}

bool read_weight(const JsonCursor& weight) {
  const double number = weight.number();
  if (number != 0 && number != 1) weight.mismatch("0 or 1");
  return number == 1;
}

DatasetMessage read_message(const JsonCursor& cursor) {
  DatasetMessage message{.role = read_role(cursor.at("role")), .fields = {}};
  const std::optional<JsonCursor> content = cursor.find("content"),
                                  calls = cursor.find("tool_calls");
  const bool has_calls = calls && calls->num_items() > 0;
  if (!content && !has_calls) {
    cursor.fail("no content; only a message with tool_calls may omit it");
  }
  message.fields.emplace_back("role", message.role);
  message.fields.emplace_back("content", content ? read_content(*content) : std::string());
  for (const auto& [key, value] : cursor.members()) {
    const JsonCursor member = cursor.below(key, value);
    if (key == "role" || key == "content") continue;
    if (member.is_null()) continue;
    if (key == "weight") {
      message.is_learnt = read_weight(member);
    } else if (key == "tool_calls") {
      Json::Array read;
      for (const JsonCursor& call : member.items()) read.push_back(read_call(call));
      if (!read.empty()) message.fields.emplace_back("tool_calls", std::move(read));
    } else {
      if (key == "name" || key == "reasoning_content") member.string();
      message.fields.emplace_back(std::string(key), value.json());
    }
  }
  return message;
}

}  // namespace

std::vector<DatasetMessage> read_dataset_messages(const JsonCursor& messages) {
  std::vector<DatasetMessage> read;
  for (const JsonCursor& message : messages.items()) read.push_back(read_message(message));
  return read;
}

std::string read_dataset_tools(const JsonCursor& line) {
  const std::optional<JsonCursor> tools = line.find("tools");
  if (!tools || tools->num_items() == 0) return {};
  for (const JsonCursor& tool : tools->items()) tool.object();
  return to_json(tools->node().json());
}

}  // namespace paceline
