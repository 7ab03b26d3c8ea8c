#include "tools/told_calls.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/json_writer.h"
#include "chat/message_json.h"

namespace paceline {
namespace {

using Kind = CallPiece::Kind;

constexpr std::string_view kBegin = "<tool_call>\n{\"name\": \"";
constexpr std::string_view kMiddle = "\", \"arguments\": ";
constexpr std::string_view kEnd = "}\n</tool_call>";

std::string without_quotes(const std::string& quoted) {
  return quoted.substr(1, quoted.size() - 2);
}

const Json& function_of(const Json& tool_or_call) {
  const Json* const function = tool_or_call.find_value("function");
  return function == nullptr ? tool_or_call : *function;
}

std::string written_call(const Json& call) {
  const Json& function = function_of(call);
  const Json* const name = function.find_value("name");
  const Json* const arguments = function.find_value("arguments");
  std::string text(kBegin);
  if (name != nullptr) text += without_quotes(json_quote(name->as_string("tool_calls.name")));
  text += kMiddle;
  if (arguments == nullptr) {
    text += "{}";
  } else {
    text += arguments->is_string() ? *arguments->string() : to_json(*arguments);
  }
  return text.append(kEnd);
}

std::string instructions(const std::string& tools_json) {
  std::string text =
      "# Tools\n\nThese functions can be called, each described by a line of JSON:\n<tools>\n";
  const Json tools = parse_json(tools_json, "tools");
  for (const Json& tool : tools.as_array("tools")) text += to_json(function_of(tool)) + "\n";
  text += "</tools>\n\nTo call a function, write its name and its arguments as JSON like this:\n";
  text +=
      std::string(kBegin) + "function_name" + std::string(kMiddle) + "{\"argument\": \"value\"}";
  return text.append(kEnd) + "\nThe result comes between <tool_response> and </tool_response>.";
}

std::string joined(std::string first, std::string_view between, std::string_view second) {
  if (!first.empty() && !second.empty()) first += between;
  return first.append(second);
}

class ToldConversation {
 public:
  void add(const ChatMessage& message) {
    const Json json = message_json(message, messages_.size());
    const std::string name = text_member(json, "role");
    if (name == "tool") {
      add_result(content_text(json));
    } else if (name == "user" && ends_in_results_) {
      append_to(messages_.back(), "\n", content_text(json));
      ends_in_results_ = false;
    } else {
      messages_.push_back(without_calls(json));
      ends_in_results_ = false;
    }
  }

  void tell(const std::string& text, bool writes_system) {
    const std::string_view role = writes_system ? "system" : "user";
    const auto found = std::find_if(messages_.begin(), messages_.end(), [&](const Json& message) {
      return text_member(message, "role") == role;
    });
    if (found == messages_.end() || (writes_system && found != messages_.begin())) {
      messages_.insert(messages_.begin(), Json(Json::Object{{"role", Json(std::string(role))},
                                                            {"content", Json(text)}}));
      return;
    }
    const std::string content = content_text(*found);
    set_content(*found,
                writes_system ? joined(content, "\n\n", text) : joined(text, "\n\n", content));
  }

  std::vector<ChatMessage> messages() const {
    std::vector<ChatMessage> written;
    for (const Json& message : messages_) {
      written.push_back({.role = {}, .content = {}, .json = to_json(message)});
    }
    return written;
  }

 private:
  static void set_content(Json& message, std::string text) {
    message = with_member(message, "content", Json(std::move(text)));
  }

  static void append_to(Json& message, std::string_view between, std::string_view text) {
    set_content(message, joined(content_text(message), between, text));
  }

  // The results of several calls, and what the user says behind them, are one message: some
  // templates want the roles to alternate.
  void add_result(const std::string& result) {
    const std::string text = "<tool_response>\n" + result + "\n</tool_response>";
    if (ends_in_results_) {
      append_to(messages_.back(), "\n", text);
      return;
    }
    messages_.push_back(
        Json(Json::Object{{"role", Json(std::string("user"))}, {"content", Json(text)}}));
    ends_in_results_ = true;
  }

  static Json without_calls(const Json& message) {
    const Json* const calls = message.find("tool_calls");
    if (calls == nullptr) return message;
    std::string text = content_text(message);
    if (calls->is_array()) {
      for (const Json& call : *calls->array()) text = joined(text, "\n", written_call(call));
    }
    Json told = without_member(message, "tool_calls");
    set_content(told, std::move(text));
    return told;
  }

  std::vector<Json> messages_;
  bool ends_in_results_ = false;
};

}  // namespace

CallFormat told_call_format() {
  CallFormat format;
  format.pieces = {{.kind = Kind::literal, .text = std::string(kBegin)},
                   {.kind = Kind::name},
                   {.kind = Kind::literal, .text = std::string(kMiddle)},
                   {.kind = Kind::arguments},
                   {.kind = Kind::literal, .text = std::string(kEnd)}};
  format.between = "\n";
  format.trigger = "<tool_call>";
  format.may_follow_content = true;
  format.is_parallel = true;
  format.name_is_json = true;
  format.behind_content = "\n";
  return format;
}

bool has_tools(const ChatInput& input) {
  return !input.tools_json.empty() ||
         std::any_of(input.messages.begin(), input.messages.end(), [](const ChatMessage& message) {
           return message.role == "tool" || message.json.find("\"tool") != std::string::npos;
         });
}

ChatInput with_told_tools(const ChatInput& input, bool writes_system) {
  ToldConversation conversation;
  for (const ChatMessage& message : input.messages) conversation.add(message);
  if (!input.tools_json.empty()) conversation.tell(instructions(input.tools_json), writes_system);
  ChatInput told = input;
  told.messages = conversation.messages();
  told.tools_json.clear();
  return told;
}

}  // namespace paceline
