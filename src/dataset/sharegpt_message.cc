#include "dataset/sharegpt_message.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace paceline {
namespace {

constexpr std::string_view kCallRole = "function_call";

// Who speaks, and the role that chat templates know.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kSpeakers = {{
    {"system", "system"},
    {"human", "user"},
    {"user", "user"},
    {"gpt", "assistant"},
    {"assistant", "assistant"},
    {"chatgpt", "assistant"},
    {"model", "assistant"},
    {"bard", "assistant"},
    {"bing", "assistant"},
    {kCallRole, "assistant"},
    {"observation", "tool"},
    {"function_response", "tool"},
    {"tool_response", "tool"},
    {"tool", "tool"},
}};

std::string_view read_speaker(const JsonCursor& from) {
  const std::string& name = from.string();
  const auto speaker = std::find_if(kSpeakers.begin(), kSpeakers.end(),
                                    [&](const auto& known) { return known.first == name; });
  if (speaker == kSpeakers.end()) {
    from.mismatch("system, human, gpt, function_call, observation or tool");
  }
  return speaker->second;
}

void add_calls(const JsonCursor& value, DatasetMessage& message) {
  const Json parsed = parse_json(value.string(), value.name());
  const JsonCursor calls(parsed, value.name());
  if (!calls.is_array()) return add_call(calls, message);
  if (calls.num_items() == 0) calls.fail("found no call, expected at least one");
  for (const JsonCursor& call : calls.items()) add_call(call, message);
}

DatasetMessage read_turn(const JsonCursor& cursor) {
  const JsonCursor from = cursor.at("from"), value = cursor.at("value");
  const std::string_view role = read_speaker(from);
  const bool is_call = from.string() == kCallRole;
  DatasetMessage message = text_message(role, is_call ? std::string() : value.string());
  if (is_call) add_calls(value, message);
  if (const auto weight = cursor.find("weight")) message.is_learnt = read_weight(*weight);
  return message;
}

}  // namespace

bool is_sharegpt(const JsonCursor& messages) {
  if (!messages.is_array() || messages.num_items() == 0) return false;
  const JsonCursor first = messages.item(0);
  return first.is_object() && first.contains("from");
}

std::vector<DatasetMessage> read_sharegpt_messages(const JsonCursor& messages) {
  std::vector<DatasetMessage> read;
  for (const JsonCursor& message : messages.items()) read.push_back(read_turn(message));
  return read;
}

}  // namespace paceline
