#include "tools/told_calls.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"
#include "tests/tools/mini_templates.h"
#include "tests/tools/turn_reading.h"

namespace paceline {
namespace {

constexpr std::string_view kFindTool =
    R"([{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}])";

std::string rendered(const ChatInput& input, bool writes_system = true) {
  const auto chat_template = ChatTemplate::parse(
      "{%- for m in messages %}{{- '<' + m.role + '>' + m.content + '\\n' }}{%- endfor %}",
      "plain");
  return chat_template.render(with_told_tools(input, writes_system));
}

ChatMessage json(std::string text) { return {.role = {}, .content = {}, .json = std::move(text)}; }

TEST(ToldCalls, AreWrittenAsATemplateWithSuchCallsWritesThem) {
  const TurnFormat derived = format_of(mini_templates().front().source);
  ASSERT_TRUE(derived.calls.has_value());
  const CallFormat told = told_call_format();
  std::string whole = derived.calls->lead;
  for (const CallPiece& piece : derived.calls->pieces) whole += piece.text;
  std::string whole_told = told.lead;
  for (const CallPiece& piece : told.pieces) whole_told += piece.text;
  EXPECT_EQ(whole, whole_told);
  EXPECT_EQ(derived.calls->between, told.between);
  EXPECT_EQ(derived.calls->closing, told.closing);
  EXPECT_EQ(derived.calls->trigger, told.trigger);
  EXPECT_EQ(derived.calls->behind_content, told.behind_content);
  EXPECT_EQ(derived.calls->may_follow_content, told.may_follow_content);
  EXPECT_EQ(derived.calls->content_may_follow, told.content_may_follow);
  EXPECT_EQ(derived.calls->is_parallel, told.is_parallel);
  EXPECT_EQ(derived.calls->name_is_json, told.name_is_json);
}

TEST(ToldCalls, ToolsStandInTheSystemMessage) {
  ChatInput input{.messages = {{"system", "Be brief."}, {"user", "Hi"}},
                  .tools_json = std::string(kFindTool)};
  const std::string with_system = rendered(input);
  EXPECT_TRUE(with_system.starts_with("<system>Be brief.\n\n# Tools\n")) << with_system;
  EXPECT_NE(with_system.find(R"({"name":"find","parameters":{"type":"object"}})"),
            std::string::npos)
      << with_system;
  EXPECT_NE(with_system.find("<tool_call>\n{\"name\": "), std::string::npos);
  EXPECT_TRUE(with_system.ends_with("<user>Hi\n"));
  input.messages.erase(input.messages.begin());
  EXPECT_TRUE(rendered(input).starts_with("<system># Tools\n"));
  const std::string without_system = rendered(input, false);
  EXPECT_TRUE(without_system.starts_with("<user># Tools\n")) << without_system;
  EXPECT_TRUE(without_system.ends_with("\n\nHi\n")) << without_system;
}

TEST(ToldCalls, CallsAndResultsAreTexts) {
  const ChatInput input{
      .messages = {{"user", "Both?"},
                   json(R"({"role": "assistant", "content": null, "tool_calls": [
                        {"id": "1", "function": {"name": "a\"b", "arguments": "{\"x\": 1}"}},
                        {"id": "2", "function": {"name": "c", "arguments": {"y": [2]}}}]})"),
                   json(R"({"role": "tool", "tool_call_id": "1", "content": "one"})"),
                   json(R"({"role": "tool", "tool_call_id": "2",
                            "content": [{"type": "text", "text": "two"}]})"),
                   {"user", "And?"},
                   json(R"({"role": "assistant", "content": "Well.", "tool_calls": [
                        {"id": "3", "function": {"name": "d"}}]})")}};
  EXPECT_TRUE(has_tools(input));
  EXPECT_EQ(
      rendered(input),
      "<user>Both?\n"
      "<assistant><tool_call>\n{\"name\": \"a\\\"b\", \"arguments\": {\"x\": 1}}\n</tool_call>\n"
      "<tool_call>\n{\"name\": \"c\", \"arguments\": {\"y\":[2]}}\n</tool_call>\n"
      "<user><tool_response>\none\n</tool_response>\n"
      "<tool_response>\ntwo\n</tool_response>\nAnd?\n"
      "<assistant>Well.\n<tool_call>\n{\"name\": \"d\", \"arguments\": {}}\n</tool_call>\n");
}

TEST(ToldCalls, OtherConversationsStayAsTheyAre) {
  const ChatInput input{.messages = {{"user", "Hi"}, {"assistant", "Hello."}, {"user", "Bye"}}};
  EXPECT_FALSE(has_tools(input));
  EXPECT_EQ(rendered(input), "<user>Hi\n<assistant>Hello.\n<user>Bye\n");
}

TEST(ToldCalls, MalformedToolsAreErrors) {
  expect_error(ErrorCode::invalid, {"tools"},
               [] { with_told_tools({.messages = {}, .tools_json = "{}"}, true); });
  expect_error(ErrorCode::invalid, {"tool_calls.name"}, [] {
    with_told_tools(
        {.messages = {json(R"({"role": "assistant", "tool_calls": [{"function": {"name": 1}}]})")}},
        true);
  });
}

}  // namespace
}  // namespace paceline
