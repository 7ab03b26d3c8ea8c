#include "dataset/dataset_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"

namespace paceline {
namespace {

constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};
// Members that read_message() reads itself.
constexpr std::array<std::string_view, 10> kReadMembers = {
    "role",      "content",    "name",          "tool_call_id", "reasoning_content",
    "reasoning", "tool_calls", "function_call", "refusal",      "weight"};

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

// In the shape that requests to the server give to templates.
Json read_call(const JsonCursor& call) {
  const JsonCursor function = call.find("function").value_or(call);
  const std::optional<JsonCursor> arguments = function.find("arguments"), id = call.find("id");
  Json::Object read{{"name", Json(function.at("name").string())},
                    {"arguments", arguments ? read_arguments(*arguments) : Json(Json::Object())}};
  return Json(Json::Object{{"id", Json(id ? id->string() : std::string())},
                           {"type", Json(std::string("function"))},
                           {"function", Json(std::move(read))}});
}

void add_text(const JsonCursor& message, std::string_view key, std::string_view name,
              DatasetMessage& read) {
  const std::optional<JsonCursor> text = message.find(key);
  if (text) read.fields.emplace_back(std::string(name), Json(text->string()));
}

void read_calls(const JsonCursor& message, DatasetMessage& read) {
  if (const auto calls = message.find("tool_calls"); calls && calls->num_items() > 0) {
    for (const JsonCursor& call : calls->items()) add_call(call, read);
  } else if (const auto call = message.find("function_call")) {
    add_call(*call, read);
  }
}

DatasetMessage read_message(const JsonCursor& cursor) {
  std::optional<JsonCursor> content = cursor.find("content");
  if (!content) content = cursor.find("refusal");
  DatasetMessage message =
      text_message(read_role(cursor.at("role")), content ? read_content(*content) : std::string());
  add_text(cursor, "name", "name", message);
  add_text(cursor, "tool_call_id", "tool_call_id", message);
  const bool is_short = !cursor.find("reasoning_content");
  add_text(cursor, is_short ? "reasoning" : "reasoning_content", "reasoning_content", message);
  const size_t num_fields = message.fields.size();
  read_calls(cursor, message);
  if (!content && message.fields.size() == num_fields) {
    cursor.fail("no content; only a message with tool_calls may omit it");
  }
  for (const auto& [key, value] : cursor.members()) {
    const bool is_read =
        std::find(kReadMembers.begin(), kReadMembers.end(), key) != kReadMembers.end();
    if (!is_read && !value.is_null()) message.fields.emplace_back(std::string(key), value.json());
  }
  if (const auto weight = cursor.find("weight")) message.is_learnt = read_weight(*weight);
  return message;
}

}  // namespace

DatasetMessage text_message(std::string_view role, std::string content) {
  return {.role = std::string(role),
          .fields = {{"role", Json(std::string(role))}, {"content", Json(std::move(content))}}};
}

void add_call(const JsonCursor& call, DatasetMessage& message) {
  Json read = read_call(call);
  const auto calls =
      std::find_if(message.fields.begin(), message.fields.end(),
                   [](const Json::Member& field) { return field.first == "tool_calls"; });
  if (calls == message.fields.end()) {
    message.fields.emplace_back("tool_calls", Json(Json::Array{std::move(read)}));
    return;
  }
  Json::Array all = *calls->second.array();
  all.push_back(std::move(read));
  calls->second = Json(std::move(all));
}

bool read_weight(const JsonCursor& weight) {
  const double number = weight.number();
  if (number != 0 && number != 1) weight.mismatch("0 or 1");
  return number == 1;
}

std::vector<DatasetMessage> read_dataset_messages(const JsonCursor& messages) {
  std::vector<DatasetMessage> read;
  for (const JsonCursor& message : messages.items()) read.push_back(read_message(message));
  return read;
}

}  // namespace paceline
