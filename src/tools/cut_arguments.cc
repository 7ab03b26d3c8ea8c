#include "tools/cut_arguments.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_writer.h"
#include "chat/message_json.h"
#include "paceline/error.h"

namespace paceline {
namespace {

bool is_object_text(const std::string& text) {
  try {
    return parse_json(text, "arguments").is_object();
  } catch (const Error&) {
    return false;
  }
}

// Null unless the call has such arguments.
const std::string* cut_arguments_of(const Json& call) {
  const Json* const function = call.find_value("function");
  const Json* const arguments = function == nullptr ? nullptr : function->find_value("arguments");
  const std::string* const text = arguments == nullptr ? nullptr : arguments->string();
  return text == nullptr || text->empty() || is_object_text(*text) ? nullptr : text;
}

Json with_whole_arguments(const Json& call, bool are_text) {
  const std::string* const text = cut_arguments_of(call);
  if (text == nullptr) return call;
  Json whole(Json::Object{{"invalid_arguments", Json(*text)}});
  if (are_text) whole = Json(to_json(whole));
  const Json& function = *call.find_value("function");
  return with_member(call, "function", with_member(function, "arguments", std::move(whole)));
}

// Null unless the message has calls.
const Json::Array* calls_of(const Json& message) {
  const Json* const calls = message.find_value("tool_calls");
  return calls == nullptr ? nullptr : calls->array();
}

std::vector<std::string> cut_arguments(const ChatInput& input) {
  std::vector<std::string> texts;
  for (const ChatMessage& message : input.messages) {
    if (message.json.find("\"tool_calls\"") == std::string::npos) continue;
    const Json json = parse_json(message.json, "messages");
    const Json::Array* const calls = calls_of(json);
    if (calls == nullptr) continue;
    for (const Json& call : *calls) {
      if (const std::string* const text = cut_arguments_of(call)) texts.push_back(*text);
    }
  }
  return texts;
}

ChatInput with_whole_arguments(const ChatInput& input, bool are_text) {
  ChatInput whole = input;
  for (ChatMessage& message : whole.messages) {
    if (message.json.find("\"tool_calls\"") == std::string::npos) continue;
    const Json json = parse_json(message.json, "messages");
    const Json::Array* const calls = calls_of(json);
    if (calls == nullptr) continue;
    Json::Array written;
    for (const Json& call : *calls) written.push_back(with_whole_arguments(call, are_text));
    message.json = to_json(with_member(json, "tool_calls", Json(std::move(written))));
  }
  return whole;
}

}  // namespace

std::string render_with_cut_arguments(const ChatInput& input, bool are_text,
                                      const std::function<std::string(const ChatInput&)>& render) {
  const std::vector<std::string> texts = cut_arguments(input);
  if (texts.empty()) return render(input);
  try {
    std::string prompt = render(input);
    const auto stands = [&](const std::string& text) { return prompt.find(text) != prompt.npos; };
    if (std::all_of(texts.begin(), texts.end(), stands)) return prompt;
  } catch (const Error&) {  // if it isn't about the arguments it follows again
  }
  return render(with_whole_arguments(input, are_text));
}

}  // namespace paceline
