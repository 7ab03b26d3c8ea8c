#include "protocol/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "chat/message_json.h"
#include "protocol/chat_tools.h"
#include "protocol/client_fields.h"
#include "protocol/request_reader.h"

namespace paceline {
namespace {

// Variables that the request's own fields set, or that would change how the template runs.
constexpr std::array<std::string_view, 9> kReservedVariables = {
    "messages",       "tools",         "documents",
    "tokenize",       "chat_template", "add_generation_prompt",
    "return_tensors", "return_dict",   "continue_final_message"};

constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};

struct Message : HistoryMessage {
  std::optional<Json> function_call;
  std::optional<std::string> refusal;
  std::vector<std::string> warnings;
};

constexpr std::array<std::string_view, 6> kPartTypes = {"text",        "refusal", "image_url",
                                                        "input_audio", "file",    "video_url"};

struct Part {
  std::string type;
  std::string text;
};

constexpr FieldDef<Part> kPartFields[] = {
    {.name = "type",
     .type = only_words_type(kPartTypes),
     .is_required = true,
     .help = "text; refusal in the assistant's messages; of others, in a tool's result, a note is "
             "left.",
     .read = [](const FieldValue& v, Part& t) { t.type = v.text(); }},
    {.name = "text",
     .type = kAnyText,
     .help = "The text.",
     .read = [](const FieldValue& v, Part& t) { t.text = v.text(); }},
    {.name = "refusal",
     .type = kAnyText,
     .help = "Why the assistant refused.",
     .read = [](const FieldValue& v, Part& t) { t.text = v.text(); }},
    {.name = "image_url", .use = FieldUse::accepted, .help = "Images aren't read."},
    {.name = "input_audio", .use = FieldUse::accepted, .help = "Audio isn't read."},
    {.name = "file", .use = FieldUse::accepted, .help = "Files aren't read."},
    {.name = "video_url", .use = FieldUse::accepted, .help = "Videos aren't read."},
};

std::string_view medium_of(std::string_view part_type) {
  if (part_type == "image_url") return "image";
  if (part_type == "input_audio") return "audio";
  return part_type == "file" ? "file" : "video";
}

// What a content is of.
struct ContentOwner {
  std::string_view role;                         // of the message; empty: no message
  std::vector<std::string>* warnings = nullptr;  // of a message
};

std::string read_part(const FieldValue& value, const ContentOwner& owner) {
  Part part;
  RequestReader reader(value);
  reader.read<Part>(kPartFields, part);
  read_client_fields(FieldLevel::part, reader);
  reader.finish();
  if (part.type == "text" || (part.type == "refusal" && owner.role == "assistant")) {
    reader.require(part.type);
    return std::move(part.text);
  }
  const std::string path = value.at().name_of("type");
  if (part.type == "refusal" || (owner.role != "tool" && owner.role != "function")) {
    throw RequestError(
        path, ErrorReason::unsupported_parameter,
        fmt::format("{}: found \"{}\", only \"text\" is supported", path, part.type));
  }
  const std::string_view medium = medium_of(part.type);
  owner.warnings->push_back(
      fmt::format("{}: {} left out, the model reads text only", value.path(), medium));
  return fmt::format("[{} omitted: the model reads text only]", medium);
}

std::string read_content_of(const FieldValue& value, const ContentOwner& owner) {
  if (value.json().is_string()) return value.text();
  std::string content;
  bool is_first = true;
  for (const FieldValue& item : value.items()) {
    if (!is_first) content += '\n';
    is_first = false;
    content += read_part(item, owner);
  }
  return content;
}

struct MessageCall {
  std::string id;
  std::string name;
  Json arguments = Json(Json::Object());
};

// Models are trained on the arguments as an object; the API has the object's JSON as a string. A
// string that isn't stays as it is: the call was cut off.
void read_arguments(const FieldValue& value, MessageCall& call) {
  if (value.text().empty()) return;
  try {
    Json arguments = parse_json(value.text(), value.path());
    if (arguments.is_object()) {
      call.arguments = std::move(arguments);
      return;
    }
  } catch (const Error&) {
  }
  call.arguments = Json(value.text());
}

constexpr FieldDef<MessageCall> kCallFunctionFields[] = {
    {.name = "name",
     .type = kAnyText,
     .is_required = true,
     .help = "The function.",
     .read = [](const FieldValue& v, MessageCall& t) { t.name = v.text(); }},
    {.name = "arguments",
     .type = kAnyText,
     .help = "The JSON of an object; any other text counts as the beginning of one that was cut "
             "off.",
     .read = read_arguments},
};

FieldList call_function_fields() {
  FieldList list = list_fields<MessageCall>(kCallFunctionFields);
  append_client_fields(FieldLevel::call_function, list);
  return list;
}

void read_function(const FieldValue& value, MessageCall& call) {
  RequestReader reader(value);
  reader.read<MessageCall>(kCallFunctionFields, call);
  read_client_fields(FieldLevel::call_function, reader);
  reader.finish();
}

constexpr FieldDef<MessageCall> kCallFields[] = {
    {.name = "id",
     .type = kAnyText,
     .help = "What the tool's message refers to.",
     .read = [](const FieldValue& v, MessageCall& t) { t.id = v.text(); }},
    {.name = "type", .type = kOnlyFunction, .help = "Only function."},
    {.name = "function",
     .type = object_type(call_function_fields),
     .is_required = true,
     .help = "Name and arguments.",
     .read = read_function},
};

FieldList call_fields() {
  FieldList list = list_fields<MessageCall>(kCallFields);
  append_client_fields(FieldLevel::call, list);
  return list;
}

constexpr FieldType kCall = object_type(call_fields);
constexpr FieldType kReasoningBlocks = array_type(kAnyObject, 0, kNoMaximum);

Json as_tool_call(MessageCall call) {
  return history_call(std::move(call.id), std::move(call.name), std::move(call.arguments));
}

Json read_call(const FieldValue& value) {
  MessageCall call;
  RequestReader reader(value);
  reader.read<MessageCall>(kCallFields, call);
  read_client_fields(FieldLevel::call, reader);
  reader.finish();
  return as_tool_call(std::move(call));
}

// Clients send the reasoning as one text beside its pieces, or the pieces alone.
void read_reasoning_blocks(const FieldValue& value, Message& message) {
  if (message.reasoning_content) return;
  std::string reasoning;
  for (const FieldValue& item : value.items()) {
    for (const std::string_view name : {"text", "thinking", "summary"}) {
      const Json* const text = item.json().find_value(name);
      if (text != nullptr && text->is_string()) reasoning += *text->string();
    }
  }
  if (!reasoning.empty()) message.reasoning_content = std::move(reasoning);
}

constexpr FieldDef<Message> kMessageFields[] = {
    {.name = "role",
     .type = word_type(kRoles),
     .is_required = true,
     .help = "Who speaks; developer is the same as system.",
     .read = [](const FieldValue& v,
                Message& t) { t.role = v.text() == "developer" ? "system" : v.text(); }},
    {.name = "content",
     .type = kContent,
     .help = "The text; only an assistant's message with calls or a refusal may omit it.",
     .read =
         [](const FieldValue& v, Message& t) {
           t.content = read_content_of(v, {t.role, &t.warnings});
         }},
    {.name = "name",
     .type = kAnyText,
     .help = "The name of who speaks.",
     .read = [](const FieldValue& v, Message& t) { t.name = v.text(); }},
    {.name = "tool_call_id",
     .type = kAnyText,
     .help = "The call that a tool answers.",
     .read = [](const FieldValue& v, Message& t) { t.tool_call_id = v.text(); }},
    {.name = "reasoning_content",
     .type = kAnyText,
     .help = "What the assistant thought, for templates that show it.",
     .read = [](const FieldValue& v, Message& t) { t.reasoning_content = v.text(); }},
    {.name = "tool_calls",
     .type = array_type(kCall, 0, kMaxTools),
     .help = "The calls that the assistant made.",
     .read =
         [](const FieldValue& v, Message& t) {
           t.tool_calls.emplace();
           for (const FieldValue& item : v.items()) t.tool_calls->push_back(read_call(item));
         }},
    {.name = "reasoning",
     .type = kAnyText,
     .alias_of = "reasoning_content",
     .help = "The same under vLLM's name.",
     .read = [](const FieldValue& v, Message& t) { t.reasoning_content = v.text(); }},
    {.name = "function_call",
     .type = object_type(call_function_fields),
     .help = "A single call without an id, from before tool_calls.",
     .read =
         [](const FieldValue& v, Message& t) {
           MessageCall call;
           read_function(v, call);
           t.function_call = as_tool_call(std::move(call));
         }},
    {.name = "refusal",
     .type = kAnyText,
     .help = "Why the assistant refused; stands for the content of a message without one.",
     .read = [](const FieldValue& v, Message& t) { t.refusal = v.text(); }},
    {.name = "reasoning_details",
     .type = kReasoningBlocks,
     .help = "The reasoning in pieces, as OpenRouter has it; read where reasoning_content isn't.",
     .read = read_reasoning_blocks},
    {.name = "thinking_blocks",
     .type = kReasoningBlocks,
     .help = "The reasoning in pieces, as LiteLLM has it; read where reasoning_content isn't.",
     .read = read_reasoning_blocks},
};

// Checks a member whose presence depends on the role.
void check_member(bool is_there, bool is_wanted, const FieldValue& value, std::string_view name,
                  std::string_view why) {
  if (is_there == is_wanted) return;
  const std::string path = value.at().name_of(name);
  throw RequestError(path, is_wanted ? ErrorReason::missing_parameter : ErrorReason::invalid_value,
                     fmt::format("{}: {} {}", path, is_wanted ? "missing," : "not allowed,", why));
}

// A refusal replaces missing content, a function_call replaces missing tool_calls.
void fill_missing_members(Message& message) {
  if (!message.content && message.refusal) message.content = std::move(message.refusal);
  const bool has_calls = message.tool_calls && !message.tool_calls->empty();
  if (has_calls || !message.function_call) return;
  message.tool_calls.emplace();
  message.tool_calls->push_back(std::move(*message.function_call));
}

ChatMessage read_message(const FieldValue& value, std::vector<std::string>& warnings) {
  Message message;
  RequestReader reader(value);
  reader.read<Message>(kMessageFields, message);
  read_client_fields(FieldLevel::message, reader);
  reader.finish();
  warnings.insert(warnings.end(), message.warnings.begin(), message.warnings.end());
  fill_missing_members(message);
  const bool is_assistant = message.role == "assistant";
  const bool has_calls = message.tool_calls && !message.tool_calls->empty();
  if (!has_calls) {
    message.tool_calls.reset();
    if (!message.content) reader.require("content");
  }
  if (!is_assistant) {
    check_member(has_calls, false, value, "tool_calls", "only the assistant has them");
    check_member(message.reasoning_content.has_value(), false, value, "reasoning_content",
                 "only the assistant has it");
  }
  check_member(message.tool_call_id.has_value(), message.role == "tool", value, "tool_call_id",
               "a message of the role tool has it, no other");
  return template_message(std::move(message));
}

}  // namespace

Json history_call(std::string id, std::string name, Json arguments) {
  Json::Object function{{"name", Json(std::move(name))}, {"arguments", std::move(arguments)}};
  return Json(Json::Object{{"id", Json(std::move(id))},
                           {"type", Json(std::string("function"))},
                           {"function", Json(std::move(function))}});
}

ChatMessage template_message(HistoryMessage message) {
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

FieldList content_part_fields() {
  FieldList list = list_fields<Part>(kPartFields);
  append_client_fields(FieldLevel::part, list);
  return list;
}

std::string read_content(const FieldValue& value) { return read_content_of(value, {}); }

FieldList message_fields() {
  FieldList list = list_fields<Message>(kMessageFields);
  append_client_fields(FieldLevel::message, list);
  return list;
}

std::vector<ChatMessage> read_messages(const FieldValue& value,
                                       std::vector<std::string>& warnings) {
  std::vector<ChatMessage> messages;
  for (const FieldValue& item : value.items()) messages.push_back(read_message(item, warnings));
  return messages;
}

void check_continuation(const ChatInput& input) {
  if (!input.continue_final_message || !input.add_generation_prompt) return;
  throw invalid_field("continue_final_message", "only allowed when add_generation_prompt is false");
}

void add_template_variable(std::string_view name, Json value, ChatInput& input) {
  const Json asked = input.kwargs_json.empty()
                         ? Json(Json::Object{})
                         : parse_json(input.kwargs_json, "chat_template_kwargs");
  if (asked.find(name) != nullptr) return;
  input.kwargs_json = to_json(with_member(asked, name, std::move(value)));
}

std::string read_template_variables(const FieldValue& value) {
  for (const auto& [name, unused] : value.object()) {
    if (std::find(kReservedVariables.begin(), kReservedVariables.end(), name) !=
        kReservedVariables.end()) {
      const std::string path = value.at().name_of(name);
      throw invalid_field(path, "not a variable that a request may set");
    }
  }
  return to_json(value.json());
}

}  // namespace paceline
