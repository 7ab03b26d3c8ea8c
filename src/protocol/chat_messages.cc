#include "protocol/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "chat/message_json.h"
#include "protocol/chat_tools.h"
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
  std::optional<HistoryCall> function_call;
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
    required("type", only_words_type(kPartTypes),
             "text; refusal in the assistant's messages; of others, in a tool's result, a note is "
             "left.",
             store<&Part::type>),
    field("text", kAnyText, "The text.", store<&Part::text>),
    field("refusal", kAnyText, "Why the assistant refused.", store<&Part::text>),
    ignored("image_url", "Images aren't read."),
    ignored("input_audio", "Audio isn't read."),
    ignored("file", "Files aren't read."),
    ignored("video_url", "Videos aren't read."),
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
  auto part = read_object<kPartFields, FieldLevel::part>(value);
  if (part.type == "text" || (part.type == "refusal" && owner.role == "assistant")) {
    RequestReader(value).require(part.type);
    return std::move(part.text);
  }
  if (part.type == "refusal" || (owner.role != "tool" && owner.role != "function")) {
    value.member("type").refuse_unsupported("\"text\"");
  }
  return omission_note(value, medium_of(part.type), *owner.warnings);
}

std::string read_content_of(const FieldValue& value, const ContentOwner& owner) {
  return joined_text(value, "\n", [&](const FieldValue& part) { return read_part(part, owner); });
}

constexpr FieldDef<HistoryCall> kCallFunctionFields[] = {
    required("name", kAnyText, "The function.", store<&HistoryCall::name>),
    field("arguments", kAnyText,
          "The JSON of an object; any other text counts as the beginning of one that was cut off.",
          [](const FieldValue& v, HistoryCall& t) { t.arguments = arguments_of(v.text()); }),
};

constexpr FieldDef<HistoryCall> kCallFields[] = {
    field("id", kAnyText, "What the tool's message refers to.", store<&HistoryCall::id>),
    field("type", kOnlyFunction, "Only function."),
    required(
        object<kCallFunctionFields, FieldLevel::call_function>("function", "Name and arguments.")),
};

constexpr FieldType kCall = object_type(fields_of<kCallFields, FieldLevel::call>);
constexpr FieldType kReasoningBlocks = array_type(kAnyObject, 0, kNoMaximum);

// Clients send the reasoning as one text beside its pieces, or the pieces alone.
void read_reasoning_blocks(const FieldValue& value, Message& message) {
  if (message.reasoning_content) return;
  std::string reasoning;
  for (const FieldValue& item : value.items()) {
    for (const std::string_view name : {"text", "thinking", "summary"}) {
      if (const auto* const text = item.json().find_text(name)) reasoning += *text;
    }
  }
  if (!reasoning.empty()) message.reasoning_content = std::move(reasoning);
}

constexpr FieldDef<Message> kMessageFields[] = {
    required("role", word_type(kRoles), "Who speaks; developer is the same as system.",
             [](const FieldValue& v, Message& t) {
               t.role = v.text() == "developer" ? "system" : v.text();
             }),
    field("content", kContent,
          "The text; only an assistant's message with calls or a refusal may omit it.",
          [](const FieldValue& v, Message& t) {
            t.content = read_content_of(v, {t.role, &t.warnings});
          }),
    field("name", kAnyText, "The name of who speaks.", store<Message, &Message::name>),
    field("tool_call_id", kAnyText, "The call that a tool answers.",
          store<Message, &Message::tool_call_id>),
    field("reasoning_content", kAnyText, "What the assistant thought, for templates that show it.",
          store<Message, &Message::reasoning_content>),
    field("tool_calls", array_type(kCall, 0, kMaxTools), "The calls that the assistant made.",
          [](const FieldValue& v, Message& t) {
            t.tool_calls = read_objects<kCallFields, FieldLevel::call>(v);
          }),
    field("reasoning", kAnyText, "The same under vLLM's name.", {.alias_of = "reasoning_content"},
          store<Message, &Message::reasoning_content>),
    field("function_call", object_type(fields_of<kCallFunctionFields, FieldLevel::call_function>),
          "A single call without an id, from before tool_calls.",
          [](const FieldValue& v, Message& t) {
            t.function_call = read_object<kCallFunctionFields, FieldLevel::call_function>(v);
          }),
    field("refusal", kAnyText,
          "Why the assistant refused; stands for the content of a message without one.",
          store<&Message::refusal>),
    field("reasoning_details", kReasoningBlocks,
          "The reasoning in pieces, as OpenRouter has it; read where reasoning_content isn't.",
          read_reasoning_blocks),
    field("thinking_blocks", kReasoningBlocks,
          "The reasoning in pieces, as LiteLLM has it; read where reasoning_content isn't.",
          read_reasoning_blocks),
};

// Checks a member whose presence depends on the role.
void check_member(bool is_there, bool is_wanted, const FieldValue& value, std::string_view name,
                  std::string_view why) {
  if (is_there == is_wanted) return;
  const std::string path = value.at().name_of(name);
  throw RequestError(path, is_wanted ? ErrorReason::missing_parameter : ErrorReason::invalid_value,
                     fmt::format("{}: {} {}", path, is_wanted ? "missing," : "not allowed,", why));
}

ChatMessage read_message(const FieldValue& value, std::vector<std::string>& warnings) {
  auto message = read_object<kMessageFields, FieldLevel::message>(value);
  warnings.insert(warnings.end(), message.warnings.begin(), message.warnings.end());
  // A refusal replaces missing content, a function_call replaces missing tool_calls.
  if (!message.content && message.refusal) message.content = std::move(message.refusal);
  if (message.tool_calls.empty() && message.function_call) {
    message.tool_calls.push_back(std::move(*message.function_call));
  }
  const bool is_assistant = message.role == "assistant";
  const bool has_calls = !message.tool_calls.empty();
  if (!has_calls && !message.content) RequestReader(value).require("content");
  if (!is_assistant) {
    check_member(has_calls, false, value, "tool_calls", "only the assistant has them");
    check_member(message.reasoning_content.has_value(), false, value, "reasoning_content",
                 "only the assistant has it");
  }
  check_member(message.tool_call_id.has_value(), message.role == "tool", value, "tool_call_id",
               "a message of the role tool has it, no other");
  return template_message(std::move(message));
}

Json call_json(HistoryCall call) {
  Json::Object function{{"name", std::move(call.name)}, {"arguments", std::move(call.arguments)}};
  return Json::Object{
      {"id", std::move(call.id)}, {"type", "function"}, {"function", std::move(function)}};
}

}  // namespace

Json arguments_of(const std::string& json) {
  if (json.empty()) return Json::Object();
  return parse_object(json).value_or(json);
}

const KindNeed* find_need(std::span<const KindNeed> table, std::string_view kind) {
  const auto row = std::find_if(table.begin(), table.end(),
                                [&](const KindNeed& need) { return need.kind == kind; });
  return row == table.end() ? nullptr : &*row;
}

void require_members(const FieldValue& value, const KindNeed& need) {
  for (const std::string_view member : need.members) {
    if (!member.empty()) RequestReader(value).require(member);
  }
}

std::string omission_note(const FieldValue& part, std::string_view kind,
                          std::vector<std::string>& warnings) {
  warnings.push_back(fmt::format("{}: {} left out, the model reads text only", part.path(), kind));
  return fmt::format("[{} omitted: the model reads text only]", kind);
}

ChatMessage template_message(HistoryMessage message) {
  if (!message.name && !message.tool_call_id && !message.reasoning_content &&
      message.tool_calls.empty()) {
    return {.role = std::move(message.role), .content = message.content.value_or("")};
  }
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("role", message.role);
  writer.member("content", message.content.value_or(""));
  if (message.name) writer.member("name", *message.name);
  if (message.tool_call_id) writer.member("tool_call_id", *message.tool_call_id);
  if (message.reasoning_content) writer.member("reasoning_content", *message.reasoning_content);
  if (!message.tool_calls.empty()) {
    writer.key("tool_calls").begin_array();
    for (HistoryCall& call : message.tool_calls) writer.tree(call_json(std::move(call)));
    writer.end_array();
  }
  writer.end_object();
  return {.json = std::move(json)};
}

FieldList content_part_fields() { return fields_of<kPartFields, FieldLevel::part>(); }

std::string read_content(const FieldValue& value) { return read_content_of(value, {}); }

FieldList message_fields() { return fields_of<kMessageFields, FieldLevel::message>(); }

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
      throw invalid_field(value.at().name_of(name), "not a variable that a request may set");
    }
  }
  return to_json(value.json());
}

}  // namespace paceline
