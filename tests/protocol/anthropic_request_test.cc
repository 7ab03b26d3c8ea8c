#include "protocol/anthropic_request.h"

#include <gmock/gmock.h>

#include "tests/protocol/requests.h"

namespace paceline::anthropic {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Request messages(const std::string& body, const RequestTerms& terms = {},
                 const SignatureReader& signatures = {}) {
  return parse_request(parse_json(body, "body"), terms, signatures);
}

std::string body_of(const std::string& members,
                    const std::string& said = R"({"role": "user", "content": "x"})") {
  return R"({"max_tokens": 64, "messages": [)" + said + "]" + (members.empty() ? "" : ", ") +
         members + "}";
}

ChatRequest asked(const std::string& members) { return messages(body_of(members)).chat; }

// The messages as templates see them, one a line.
std::string seen(const ChatRequest& request) {
  std::string all;
  for (const ChatMessage& message : request.input.messages) {
    if (!all.empty()) all += '\n';
    all += message.json.empty() ? message.role + ": " + message.content : message.json;
  }
  return all;
}
std::string seen_of(const std::string& said, const RequestTerms& terms = {}) {
  return seen(messages(body_of("", said), terms).chat);
}

std::string refusal_of(const std::string& body) {
  return refusal([](const std::string& text) { messages(text); }, body).message;
}

TEST(AnthropicRequest, RendersAsTheSameChat) {
  const ChatRequest one =
      messages(R"({"model": "m", "max_tokens": 9, "system": "Be brief", "messages": [
          {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
          {"role": "assistant", "content": [
              {"type": "thinking", "thinking": "hm", "signature": "theirs"},
              {"type": "text", "text": "I look"},
              {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": [1, 2.0]}}]},
          {"role": "user", "content": [
              {"type": "tool_result", "tool_use_id": "toolu_1", "content": "5"},
              {"type": "text", "text": "and?"}]}],
          "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
          "stop_sequences": ["END"], "temperature": 0.5, "top_k": 4, "top_p": 0.5})")
          .chat;
  const ChatRequest other = chat(R"({"model": "m", "max_tokens": 9, "messages": [
          {"role": "system", "content": "Be brief"},
          {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
          {"role": "assistant", "content": "I look", "reasoning_content": "hm", "tool_calls": [
              {"id": "toolu_1", "type": "function",
               "function": {"name": "look", "arguments": "{\"at\": [1, 2.0]}"}}]},
          {"role": "tool", "tool_call_id": "toolu_1", "content": "5"},
          {"role": "user", "content": "and?"}],
          "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.",
                     "parameters": {"type": "object"}}}],
          "stop": ["END"], "temperature": 0.5, "top_k": 4, "top_p": 0.5})");
  EXPECT_EQ(seen(one), seen(other));
  EXPECT_EQ(one.input.tools_json, other.input.tools_json);
  EXPECT_EQ(one.turn.tools.at(0).parameters, other.turn.tools.at(0).parameters);
  EXPECT_EQ(one.common.model, "m");
  EXPECT_EQ(one.options.stop, other.options.stop);
  EXPECT_EQ(one.options.temperature, other.options.temperature);
  EXPECT_EQ(one.options.top_k, other.options.top_k);
  EXPECT_EQ(one.options.max_tokens, 9);
  EXPECT_TRUE(one.input.add_generation_prompt);
  EXPECT_TRUE(one.turn.make_call_id().starts_with("toolu_"));
}

TEST(AnthropicRequest, BlocksOfAnAnswerAreOneText) {
  EXPECT_EQ(seen_of(R"({"role": "assistant", "content": [{"type": "text", "text": "a "},
                        {"type": "text", "text": "b"}]}, {"role": "user", "content": ""})"),
            "assistant: a b\nuser: ");
}

TEST(AnthropicRequest, TheAnswerGoesOnWithALastMessageOfTheAssistant) {
  const ChatRequest open = messages(body_of("", R"({"role": "user", "content": "x"},
                              {"role": "assistant", "content": "{"})"))
                               .chat;
  EXPECT_TRUE(open.input.continue_final_message);
  EXPECT_FALSE(open.input.add_generation_prompt);
}

TEST(AnthropicRequest, ResultsOfTools) {
  const auto result = [](const std::string& members) {
    return seen_of(R"({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c")" +
                   members + "}]}");
  };
  EXPECT_EQ(result(""), R"({"role":"tool","content":"","tool_call_id":"c"})");
  EXPECT_THAT(
      result(R"(, "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])"),
      HasSubstr(R"("content":"a\nb")"));
  EXPECT_THAT(result(R"(, "content": "no", "is_error": true)"), HasSubstr(R"("Error: no")"));
  EXPECT_THAT(result(R"(, "content": "Error 5", "is_error": true)"), HasSubstr(R"("Error 5")"));
  EXPECT_THAT(result(R"(, "is_error": true)"), HasSubstr(R"("Error: ")"));
}

TEST(AnthropicRequest, WhatIsNoTextIsNotedInResultsAndRefusedElsewhere) {
  const std::string image = R"({"type": "image", "source": {"type": "base64"}})";
  const ChatRequest noted =
      messages(body_of("", R"({"role": "user", "content": [{"type": "tool_result",
                              "tool_use_id": "c", "content": [)" +
                               image + "]}]}"))
          .chat;
  EXPECT_THAT(seen(noted), HasSubstr("[image omitted: the model reads text only]"));
  EXPECT_THAT(noted.warnings, ElementsAre("messages[0].content[0].content[0]: image left out, the "
                                          "model reads text only"));
  EXPECT_THAT(refusal_of(body_of("", R"({"role": "user", "content": [)" + image + "]}")),
              HasSubstr(R"(messages[0].content[0].type: found "image", only)"));
  EXPECT_THAT(refusal_of(body_of("", R"({"role": "user", "content": [{"type": "document"}]})")),
              HasSubstr(R"(found "document")"));
}

TEST(AnthropicRequest, BlocksBelongToRolesAndHaveTheirMembers) {
  EXPECT_THAT(refusal_of(body_of("", R"({"role": "user", "content": [{"type": "tool_use",
                                        "id": "c", "name": "f", "input": {}}]})")),
              HasSubstr("only messages of the assistant have tool_use"));
  EXPECT_THAT(refusal_of(body_of("", R"({"role": "assistant", "content": [
                                        {"type": "tool_result", "tool_use_id": "c"}]})")),
              HasSubstr("only messages of the user have tool_result"));
  EXPECT_EQ(refusal_of(body_of("", R"({"role": "assistant", "content": [{"type": "tool_use",
                                      "id": "c", "name": "f"}]})")),
            "messages[0].content[0].input: missing");
  EXPECT_EQ(refusal_of(body_of("", R"({"role": "user", "content": [{"type": "text"}]})")),
            "messages[0].content[0].text: missing");
  EXPECT_EQ(refusal_of(R"({"messages": [{"role": "user", "content": "x"}]})"),
            "max_tokens: missing");
}

// An agent's later instructions would move the beginning of the prompt if they stood in front.
TEST(AnthropicRequest, InstructionsStandWhereTheyWereSent) {
  EXPECT_EQ(seen(messages(R"({"max_tokens": 1, "system": [{"type": "text", "text": "A",
                            "cache_control": {"type": "ephemeral"}}], "messages": [
                            {"role": "system", "content": "B"}, {"role": "user", "content": "x"},
                            {"role": "system", "content": [{"type": "text", "text": "C"}]},
                            {"role": "assistant", "content": "y"}, {"role": "system", "content": "D"}
                            ]})")
                     .chat),
            "system: A\nB\nuser: x\n<system-reminder>\nC\n</system-reminder>\nassistant: y\n"
            "user: <system-reminder>\nD\n</system-reminder>");
}

constexpr const char* kCounted = R"({"max_tokens": 1,
    "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=COUNT;"},
               {"type": "text", "text": "You are Claude Code."}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "x"},
        {"type": "text", "text": "<total_tokens>COUNT tokens left</total_tokens>"}]},
      {"role": "system", "content": [
        {"type": "text", "text": "<total_tokens>COUNT tokens left</total_tokens>"}]}]})";

std::string counted(const std::string& count) {
  std::string body = kCounted;
  for (size_t at = body.find("COUNT"); at != std::string::npos; at = body.find("COUNT")) {
    body.replace(at, 5, count);
  }
  return body;
}

TEST(AnthropicRequest, ClientCountersAreLeftOutUnlessTheTermsKeepThem) {
  EXPECT_EQ(seen(messages(counted("7")).chat), "system: You are Claude Code.\nuser: x");
  const RequestTerms keeping{.keep_client_counters = true};
  EXPECT_NE(seen(messages(counted("7"), keeping).chat), seen(messages(counted("8"), keeping).chat));
}

TEST(AnthropicRequest, TheSealedReasoningGoesBeforeTheShownOne) {
  const Seal seal(Seal::Key{1});
  const SignatureReader reader{&seal, {.purpose = "thinking", .owner = "k"}};
  const auto reasoning = [&](const std::string& block) {
    return seen(messages(body_of("", R"({"role": "assistant", "content": [)" + block +
                                         R"(, {"type": "text", "text": "y"}]})"),
                         {}, reader)
                    .chat);
  };
  const std::string sealed = seal.close("long", {.purpose = "thinking", .owner = "k"});
  EXPECT_THAT(reasoning(R"({"type": "thinking", "thinking": "", "signature": ")" + sealed + "\"}"),
              HasSubstr(R"("reasoning_content":"long")"));
  EXPECT_THAT(reasoning(R"({"type": "thinking", "thinking": "short", "signature": "EpAB"})"),
              HasSubstr(R"("reasoning_content":"short")"));
  EXPECT_EQ(reasoning(R"({"type": "redacted_thinking", "data": "EpAB"})"), "assistant: y");
}

TEST(AnthropicRequest, Thinking) {
  const auto effort = [](const std::string& members) {
    return asked(members).turn.reasoning_effort.value_or("unset");
  };
  EXPECT_EQ(effort(""), "unset");
  EXPECT_EQ(effort(R"("thinking": {"type": "enabled", "budget_tokens": 2048})"), "medium");
  EXPECT_EQ(effort(R"("thinking": {"type": "adaptive"})"), "unset");
  EXPECT_EQ(effort(R"("thinking": {"type": "adaptive"}, "output_config": {"effort": "high"})"),
            "high");
  EXPECT_EQ(effort(R"("thinking": {"type": "disabled"}, "output_config": {"effort": "high"})"),
            "none");
  EXPECT_FALSE(messages(body_of(R"("thinking": {"type": "adaptive", "display": "omitted"})"))
                   .shows_reasoning);
}

TEST(AnthropicRequest, FormatsAreSchemas) {
  for (const char* members :
       {R"("output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}})",
        R"("output_format": {"type": "json_schema", "schema": {"type": "object"}})"}) {
    const auto spec = asked(members).options.constraint;
    ASSERT_TRUE(spec);
    EXPECT_EQ(spec->kind, ConstraintSpec::Kind::json_schema);
    EXPECT_EQ(spec->text, R"({"type":"object"})");
    EXPECT_TRUE(spec->best_effort);
  }
}

constexpr const char* kTools = R"("tools": [{"name": "f", "input_schema": {}, "type": "custom"},
                                 {"type": "web_search_20250305", "name": "web_search",
                                  "max_uses": 5}])";

TEST(AnthropicRequest, ToolsThatAnthropicDefinesAreLeftOut) {
  const ChatRequest request = asked(kTools);
  EXPECT_EQ(request.input.tools_json,
            R"([{"type":"function","function":{"name":"f","parameters":{}}}])");
  EXPECT_THAT(request.warnings, ElementsAre(HasSubstr("tools[1]: web_search_20250305 left out")));
  EXPECT_THAT(refusal_of(body_of(kTools + std::string(R"(, "tool_choice":
                  {"type": "tool", "name": "web_search"})"))),
              HasSubstr(R"(tool_choice.name: found "web_search", only)"));
  EXPECT_THAT(refusal_of(body_of(R"("tools": [{"type": "grammar", "name": "g"}])")),
              HasSubstr(R"(tools[0].type: found "grammar", only "custom")"));
  EXPECT_THAT(refusal_of(body_of(R"("tools": [{"name": "g"}])")),
              HasSubstr("tools[0].input_schema: missing"));
}

TEST(AnthropicRequest, ToolChoices) {
  const auto turn = [](const std::string& choice) {
    return asked(kTools + std::string(R"(, "tool_choice": )") + choice).turn;
  };
  EXPECT_EQ(turn(R"({"type": "auto", "disable_parallel_tool_use": true})").parallel_tool_calls,
            false);
  EXPECT_EQ(turn(R"({"type": "any"})").tool_choice, ToolChoice::required);
  EXPECT_EQ(turn(R"({"type": "none"})").tool_choice, ToolChoice::none);
  EXPECT_EQ(turn(R"({"type": "tool", "name": "f"})").tool_name, "f");
  EXPECT_THAT(refusal_of(body_of(R"("tool_choice": {"type": "any"})")),
              HasSubstr("tool_choice: asks for a call, but there are no tools"));
  EXPECT_THAT(refusal_of(body_of(kTools + std::string(R"(, "tool_choice": {"type": "tool"})"))),
              HasSubstr("tool_choice.name: missing"));
}

TEST(AnthropicRequest, NoTokensMeansThePromptAlone) {
  const ChatRequest request =
      messages(R"({"max_tokens": 0, "messages": [{"role": "user", "content": "x"}], )" +
               std::string(kTools) + "}")
          .chat;
  EXPECT_TRUE(request.turn.tools.empty());
  EXPECT_THAT(request.input.tools_json, HasSubstr("\"f\""));
}

// Claude Code's, of September 2026.
TEST(AnthropicRequest, WhatClaudeCodeSendsIsTaken) {
  const ChatRequest request = asked(R"("metadata": {"user_id": "u"}, "stream": true,
      "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"},
      "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
      "cache_control": {"type": "ephemeral", "ttl": "1h"}, "service_tier": "auto",
      "diagnostics": {"previous_message_id": null}, "speed": "standard")");
  EXPECT_TRUE(request.generation.streaming.stream);
  EXPECT_EQ(request.input.kwargs_json, R"({"preserve_thinking":true,"clear_thinking":false})");
  EXPECT_EQ(asked(R"("chat_template_kwargs": {"a": 1}, "context_management": {"edits": [
                {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}]})")
                .input.kwargs_json,
            R"({"a":1})");
  EXPECT_THAT(
      refusal_of(body_of(R"("context_management": {"edits": [{"type": "compact_20260112"}]})")),
      HasSubstr("context_management.edits[0].type: found \"compact_20260112\", only"));
  EXPECT_THAT(refusal_of(body_of(R"("mcp_servers": [])")), HasSubstr("mcp_servers: not supported"));
  EXPECT_EQ(refusal_of(body_of(R"("stop_sequence": ["x"])")),
            "unknown field stop_sequence; did you mean stop_sequences?");
}

TEST(AnthropicRequest, APromptAloneHasNoFieldsOfTheAnswer) {
  const Json body = parse_json(R"({"messages": [{"role": "user", "content": "x"}]})", "body");
  EXPECT_EQ(seen(parse_prompt(body).chat), "user: x");
  EXPECT_THROW(parse_prompt(parse_json(body_of(""), "body")), RequestError);
}

}  // namespace
}  // namespace paceline::anthropic
