// Reasoning that real templates write is read back as it was given.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/mapped_file.h"
#include "tests/tools/turn_reading.h"
#include "tools/text_units.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const fs::path kJinja = fs::path(PACELINE_SOURCE_DIR).parent_path() / "shared/templates/jinja";
const std::string kReasoning = "Let me\nthink.";
const std::string kAnswer = "The answer.";
const char* const kTools = R"([{"type": "function", "function": {"name": "f", "description": "d",
  "parameters": {"type": "object", "properties": {}}}}])";
const char* const kCalls = R"([{"id": "abcdefgh1", "type": "function",
  "function": {"name": "f", "arguments": {}}}])";

// The assistant's message, with reasoning where the template reads it.
Json message_with(const std::string& field, bool has_call) {
  const auto part = [](const char* type, const std::string& text) {
    return Json(Json::Object{{"type", Json(std::string(type))}, {type, Json(text)}});
  };
  Json::Object message{{"role", Json(std::string("assistant"))}};
  if (field == "content") {
    Json::Array parts{part("thinking", kReasoning)};
    if (!has_call) parts.push_back(part("text", kAnswer));
    message.emplace_back("content", Json(std::move(parts)));
  } else {
    message.emplace_back("content", Json(has_call ? std::string() : kAnswer));
    message.emplace_back(field, Json(kReasoning));
  }
  if (has_call) message.emplace_back("tool_calls", parse_json(kCalls, "calls"));
  return Json(std::move(message));
}

// Whether the template writes the reasoning; then it must be read back.
bool expect_reasoning(const ChatTemplate& chat_template, const TurnFormat& format, bool has_call) {
  const ReasoningFormat& reasoning = *format.reasoning;
  ChatInput input{.messages = {{"user", "Hi"}},
                  .tools_json = kTools,
                  .kwargs_json = reasoning.kwargs_for_effort("high"),
                  .special_tokens = {{"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}}};
  const std::string prompt = chat_template.render(input);
  input.messages.push_back({.json = to_json(message_with(reasoning.field, has_call))});
  input.add_generation_prompt = false;
  const std::string rendered = chat_template.render(input);
  if (rendered.find(kReasoning) == std::string::npos) return false;
  TurnText turn{.text = rendered.substr(common_prefix(rendered, prompt).size())};
  turn.begins_in_reasoning = reasoning.is_opened_by(prompt);
  const std::string_view end = trimmed(format.turn_end);
  if (!end.empty()) turn.text.resize(std::min(turn.text.find(end), turn.text.size()));
  SCOPED_TRACE(turn.text);
  const auto tools = std::make_shared<const ToolSet>(std::vector<ToolSpec>{{"f", ""}});
  TurnRead expected{.reasoning = kReasoning, .content = has_call ? "" : kAnswer, .calls = {}};
  if (has_call) expected.calls.push_back({.name = "f", .arguments = "{}"});
  TurnRead read = read_turn(format, tools, turn);
  for (CallRead& call : read.calls) call.id = "made0";
  EXPECT_EQ(read, expected);
  return true;
}

TEST(TemplateReasoningGolden, IsReadBackAsItWasGiven) {
  if (!fs::exists(kJinja)) GTEST_SKIP() << kJinja << " isn't there";
  size_t num_marks = 0;
  size_t num_turns = 0;
  for (const auto& entry : fs::directory_iterator(kJinja)) {
    const std::string name = entry.path().stem().string();
    SCOPED_TRACE(name);
    const auto chat_template = ChatTemplate::parse(read_text_file(entry.path(), 1 << 20), name);
    const TurnFormat format =
        derive_turn_format(chat_template, {{"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}});
    if (!format.reasoning) continue;
    ++num_marks;
    if (format.reasoning->field.empty()) {
      // The marks are known from the prompts, or from where the template splits content.
      EXPECT_EQ(format.reasoning->begin, "<think>");
      EXPECT_EQ(format.reasoning->end, "</think>");
      continue;
    }
    for (const bool has_call : {false, true}) {
      if (has_call && !format.calls) continue;
      num_turns += expect_reasoning(chat_template, format, has_call) ? 1 : 0;
    }
  }
  EXPECT_GE(num_marks, 24U);
  EXPECT_GE(num_turns, 29U);
}

}  // namespace
}  // namespace paceline
