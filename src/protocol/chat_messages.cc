#include "protocol/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/json_writer.h"
#include "protocol/api_error.h"
#include "protocol/request_fields.h"

namespace paceline {
namespace {

// Names that a template takes from the request itself, or that would change how it is run.
constexpr std::array<std::string_view, 9> kReservedVariables = {
    "messages",       "tools",         "documents",
    "tokenize",       "chat_template", "add_generation_prompt",
    "return_tensors", "return_dict",   "continue_final_message"};

constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};

struct Message {
  std::string role;
  std::optional<std::string> content;
  std::optional<std::string> name;
  std::optional<std::string> tool_call_id;
  std::optional<std::string> reasoning_content;
  std::optional<Json::Array> tool_calls;
};

struct Part {
  std::string text;
};

constexpr FieldDef<Part> kPartFields[] = {
    {.name = "type",
     .help = "Only text.",
     .read =
         [](const FieldValue& v, Part&) {
           if (v.text() != "text") v.refuse_unsupported("\"text\"");
         }},
    {.name = "text",
     .help = "The text.",
     .read = [](const FieldValue& v, Part& t) { t.text = v.text(); }},
};

std::string read_content(const FieldValue& value) {
  if (value.json().is_string()) return value.text();
  if (!value.json().is_array()) value.refuse("a string or an array of parts");
  std::string content;
  bool is_first = true;
  for (const FieldValue& item : value.items(kMaxMessages)) {
    Part part;
    RequestReader reader(item);
    reader.require("type");
    reader.read<Part>(kPartFields, part);
    reader.require("text");
    reader.finish();
    if (!is_first) content += '\n';
    is_first = false;
    content += part.text;
  }
  return content;
}

struct Call {
  std::string id;
  std::string name;
  Json arguments = Json(Json::Object());
};

// Models are trained on the arguments as an object; the API has the object's JSON as a string.
void read_arguments(const FieldValue& value, Call& call) {
  if (value.text().empty()) return;
  call.arguments = parse_json(value.text(), value.path());
  if (!call.arguments.is_object()) value.refuse("the JSON of an object");
}

constexpr FieldDef<Call> kFunctionFields[] = {
    {.name = "name",
     .help = "The function.",
     .read = [](const FieldValue& v, Call& t) { t.name = v.text(); }},
    {.name = "arguments", .help = "The JSON of an object.", .read = read_arguments},
};

constexpr FieldDef<Call> kCallFields[] = {
    {.name = "id",
     .help = "What the tool's message refers to.",
     .read = [](const FieldValue& v, Call& t) { t.id = v.text(); }},
    {.name = "type",
     .help = "Only function.",
     .read =
         [](const FieldValue& v, Call&) {
           if (v.text() != "function") v.refuse_unsupported("\"function\"");
         }},
    {.name = "function",
     .help = "Name and arguments.",
     .read =
         [](const FieldValue& v, Call& t) {
           RequestReader reader(v);
           reader.read<Call>(kFunctionFields, t);
           reader.require("name");
           reader.finish();
         }},
};

Json read_call(const FieldValue& value) {
  Call call;
  RequestReader reader(value);
  reader.read<Call>(kCallFields, call);
  reader.require("function");
  reader.finish();
  Json::Object function{{"name", Json(call.name)}, {"arguments", std::move(call.arguments)}};
  return Json(Json::Object{{"id", Json(call.id)},
                           {"type", Json(std::string("function"))},
                           {"function", Json(std::move(function))}});
}

void read_role(const FieldValue& value, Message& message) {
  const std::string& role = value.text();
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
    value.refuse(fmt::format("one of {}", fmt::join(kRoles, ", ")));
  }
  message.role = role == "developer" ? "system" : role;
}

constexpr FieldDef<Message> kMessageFields[] = {
    {.name = "role",
     .help = "system, developer, user, assistant, tool or function.",
     .read = read_role},
    {.name = "content",
     .help = "A string or an array of {\"type\": \"text\", \"text\": ...}.",
     .read = [](const FieldValue& v, Message& t) { t.content = read_content(v); }},
    {.name = "name",
     .help = "Who speaks.",
     .read = [](const FieldValue& v, Message& t) { t.name = v.text(); }},
    {.name = "tool_call_id",
     .help = "The call that a tool answers.",
     .read = [](const FieldValue& v, Message& t) { t.tool_call_id = v.text(); }},
    {.name = "reasoning_content",
     .help = "What the assistant thought, for templates that show it.",
     .read = [](const FieldValue& v, Message& t) { t.reasoning_content = v.text(); }},
    {.name = "tool_calls",
     .help = "The calls that the assistant made.",
     .read =
         [](const FieldValue& v, Message& t) {
           t.tool_calls.emplace();
           for (const FieldValue& item : v.items(kMaxTools)) {
             t.tool_calls->push_back(read_call(item));
           }
         }},
    {.name = "refusal", .use = FieldUse::refused},
    {.name = "audio", .use = FieldUse::refused},
    {.name = "function_call", .use = FieldUse::refused, .help = "use tool_calls"},
};

// A member that must or must not be there, depending on the role.
void check_member(bool is_there, bool is_wanted, const FieldValue& value, std::string_view name,
                  std::string_view why) {
  if (is_there == is_wanted) return;
  const std::string path = fmt::format("{}.{}", value.path(), name);
  throw RequestError(path, is_wanted ? "missing_required_parameter" : "invalid_value",
                     fmt::format("{}: {} {}", path, is_wanted ? "missing," : "not allowed,", why));
}

ChatMessage as_template_input(Message message) {
  if (!message.name && !message.tool_call_id && !message.reasoning_content && !message.tool_calls) {
    return {.role = std::move(message.role), .content = message.content.value_or("")};
  }
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("role", message.role);
  writer.member("content", message.content.value_or(""));
  if (message.name) writer.member("name", *message.name);
  if (message.tool_call_id) writer.member("tool_call_id", *message.tool_call_id);
  if (message.reasoning_content) writer.member("reasoning_content", *message.reasoning_content);
  if (message.tool_calls) writer.key("tool_calls").tree(Json(std::move(*message.tool_calls)));
  writer.end_object();
  return {.role = {}, .content = {}, .json = std::move(json)};
}

ChatMessage read_message(const FieldValue& value) {
  Message message;
  RequestReader reader(value);
  reader.read<Message>(kMessageFields, message);
  reader.finish();
  reader.require("role");
  const bool is_assistant = message.role == "assistant";
  const bool has_calls = message.tool_calls && !message.tool_calls->empty();
  if (!has_calls) {
    message.tool_calls.reset();
    reader.require("content");
  }
  if (!is_assistant) {
    check_member(has_calls, false, value, "tool_calls", "only the assistant has them");
    check_member(message.reasoning_content.has_value(), false, value, "reasoning_content",
                 "only the assistant has it");
  }
  check_member(message.tool_call_id.has_value(), message.role == "tool", value, "tool_call_id",
               "a message of the role tool has it, no other");
  return as_template_input(std::move(message));
}

}  // namespace

std::vector<ChatMessage> read_messages(const FieldValue& value) {
  std::vector<ChatMessage> messages;
  for (const FieldValue& item : value.items(kMaxMessages)) messages.push_back(read_message(item));
  if (messages.empty()) value.refuse("at least one message");
  return messages;
}

std::string read_template_variables(const FieldValue& value) {
  for (const auto& [name, unused] : value.object()) {
    if (std::find(kReservedVariables.begin(), kReservedVariables.end(), name) !=
        kReservedVariables.end()) {
      const std::string path = fmt::format("{}.{}", value.path(), name);
      throw RequestError(path, "invalid_value",
                         fmt::format("{}: not a variable that a request may set", path));
    }
  }
  return to_json(value.json());
}

}  // namespace paceline
