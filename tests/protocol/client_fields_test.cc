#include "protocol/request_reader.h"

#include <gmock/gmock.h>

#include "protocol/anthropic_request.h"
#include "tests/protocol/requests.h"

namespace paceline {
namespace {

using testing::HasSubstr;
using testing::Not;

// Where a test writes a field: HERE stands for its member.
std::string body_at(FieldLevel level, const std::string& member) {
  std::string body;
  switch (level) {
    case FieldLevel::request:
    case FieldLevel::chat:
      body = R"({"messages": [{"role": "user", "content": "x"}], HERE})";
      break;
    case FieldLevel::stream_options:
      body = R"({"messages": [{"role": "user", "content": "x"}], "stream": true,
                 "stream_options": {HERE}})";
      break;
    case FieldLevel::message:
      body = R"({"messages": [{"role": "assistant", "content": "x", HERE}]})";
      break;
    case FieldLevel::part:
      body = R"({"messages": [{"role": "user", "content":
                               [{"type": "text", "text": "x", HERE}]}]})";
      break;
    case FieldLevel::tool:
      body = R"({"messages": [{"role": "user", "content": "x"}], "tools":
                 [{"type": "function", "function": {"name": "f"}, HERE}]})";
      break;
    case FieldLevel::tool_function:
      body = R"({"messages": [{"role": "user", "content": "x"}], "tools":
                 [{"type": "function", "function": {"name": "f", HERE}}]})";
      break;
    case FieldLevel::call:
      body = R"({"messages": [{"role": "assistant", "tool_calls":
                               [{"id": "1", "function": {"name": "f"}, HERE}]}]})";
      break;
    case FieldLevel::call_function:
      body = R"({"messages": [{"role": "assistant", "tool_calls":
                               [{"id": "1", "function": {"name": "f", HERE}}]}]})";
      break;
    case FieldLevel::messages:
      body = R"({"messages": [{"role": "user", "content": "x"}], HERE})";
      break;
    case FieldLevel::block:
      body =
          R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "x", HERE}]}]})";
      break;
    case FieldLevel::custom_tool:
      body = R"({"messages": [{"role": "user", "content": "x"}],
                 "tools": [{"name": "f", "input_schema": {}, HERE}]})";
      break;
  }
  return body.replace(body.find("HERE"), 4, member);
}

constexpr FieldLevel kLevels[] = {
    FieldLevel::request,  FieldLevel::chat,          FieldLevel::stream_options,
    FieldLevel::message,  FieldLevel::part,          FieldLevel::tool,
    FieldLevel::call,     FieldLevel::tool_function, FieldLevel::call_function,
    FieldLevel::messages, FieldLevel::block,         FieldLevel::custom_tool};

ChatRequest parse_at(FieldLevel level, const std::string& body) {
  if (level < FieldLevel::messages) return chat(body);
  return anthropic::parse_prompt(parse_json(body, "body")).chat;
}

// A value that the type takes.
std::string sample_of(const FieldType& type) {
  switch (type.kind) {
    case FieldKind::boolean:
      return type.booleans == Booleans::only_false ? "false" : "true";
    case FieldKind::integer:
      return "1";
    case FieldKind::text:
      return "\"text\"";
    case FieldKind::array:
      return "[]";
    default:
      return R"({"key": "value"})";
  }
}

// Every part of a chat that the model sees, and what is asked for.
std::string asked_for(const ChatRequest& request) {
  std::string all = request.input.tools_json + request.input.kwargs_json +
                    request.turn.reasoning_effort.value_or("");
  for (const ChatMessage& message : request.input.messages) {
    all += message.role + message.content + message.json;
  }
  return all;
}

TEST(ClientFields, EachRowDoesWhatItSays) {
  for (const FieldLevel level : kLevels) {
    EXPECT_FALSE(client_fields(level).empty());
    for (const FieldDef<ClientField>& field : client_fields(level)) {
      SCOPED_TRACE(field.name);
      const std::string body =
          body_at(level, "\"" + std::string(field.name) + "\": " + sample_of(field.type));
      if (field.use == FieldUse::refused) {
        const ApiError error =
            refusal([&](const std::string& text) { parse_at(level, text); }, body);
        EXPECT_EQ(code_of(error), "unsupported_parameter");
        EXPECT_THAT(*error.field, HasSubstr(field.name));
        continue;
      }
      EXPECT_TRUE(field.help.ends_with('.'));
      std::string with;
      ASSERT_NO_THROW(with = asked_for(parse_at(level, body)));
      if (field.use != FieldUse::accepted) continue;
      EXPECT_EQ(with, asked_for(parse_at(level, body_at(level, "\"cache_control\": null"))))
          << "it is seen";
    }
  }
}

// What clients of October 2026 send beside the fields of OpenAI's specification.
TEST(ClientFields, WhatTheClientsSendIsTaken) {
  const struct {
    const char* client;
    FieldLevel level;
    const char* member;
  } kSent[] = {
      {"openai", FieldLevel::request, R"("prompt_cache_key": "k", "safety_identifier": "s")"},
      {"openai", FieldLevel::request,
       R"("store": false, "metadata": {"a": "b"}, "service_tier": "auto", "user": "u")"},
      {"openai", FieldLevel::request,
       R"("prompt_cache_retention": "24h", "prompt_cache_options": {"ttl": "30m"})"},
      {"openai", FieldLevel::chat, R"("verbosity": "low", "reasoning_effort": "minimal")"},
      {"openai", FieldLevel::chat,
       R"("parallel_tool_calls": true, "modalities": ["text"],
          "prediction": {"type": "content", "content": "x"})"},
      {"openai", FieldLevel::stream_options,
       R"("include_usage": true, "include_obfuscation": false)"},
      {"openai", FieldLevel::message,
       R"("refusal": null, "annotations": [], "audio": null, "function_call": null, "parsed": null)"},
      {"openai", FieldLevel::part, R"("prompt_cache_breakpoint": {"mode": "explicit"})"},
      {"openai", FieldLevel::call_function, R"("parsed_arguments": {"a": 1})"},
      {"openai-agents", FieldLevel::call,
       R"("type": "function", "extra_content": {"google": {"thought_signature": "x"}})"},
      {"openai-agents", FieldLevel::message,
       R"("thinking_blocks": [{"type": "thinking", "thinking": "x", "signature": "s"}])"},
      {"litellm", FieldLevel::message,
       R"("provider_specific_fields": {"a": 1}, "cache_control": {"type": "ephemeral"})"},
      {"litellm", FieldLevel::call, R"("index": 0, "provider_specific_fields": {"a": 1})"},
      {"litellm", FieldLevel::part, R"("cache_control": {"type": "ephemeral", "ttl": "5m"})"},
      {"litellm", FieldLevel::tool, R"("cache_control": {"type": "ephemeral"})"},
      {"litellm", FieldLevel::tool_function, R"("cache_control": {"type": "ephemeral"})"},
      {"litellm", FieldLevel::chat, R"("thinking": {"type": "enabled"})"},
      {"openrouter", FieldLevel::message,
       R"("reasoning_details": [{"type": "reasoning.text", "text": "x", "index": 0}])"},
      {"openrouter", FieldLevel::chat,
       R"("reasoning": {"effort": "high"}, "usage": {"include": true}, "transforms": [])"},
      {"openrouter", FieldLevel::request,
       R"("provider": {"order": ["a"]}, "models": ["a", "b"], "route": "fallback",
          "session_id": "s")"},
      {"openrouter", FieldLevel::chat, R"("include_reasoning": true, "plugins": [])"},
      {"cline", FieldLevel::chat, R"("reasoning": {"enabled": true, "exclude": false})"},
      {"opencode", FieldLevel::chat, R"("thinking": {"type": "enabled", "clear_thinking": false})"},
      {"opencode", FieldLevel::chat, R"("chat_template_args": {"enable_thinking": true})"},
      {"vercel", FieldLevel::message, R"("providerOptions": {"a": {}}, "reasoning_content": "x")"},
      {"dashscope", FieldLevel::chat, R"("enable_thinking": false, "enable_search": false)"},
      {"z.ai", FieldLevel::chat, R"("thinking": {"type": "disabled"}, "tool_stream": true)"},
      {"sglang", FieldLevel::chat, R"("separate_reasoning": true, "stream_reasoning": true)"},
      {"vllm", FieldLevel::chat, R"("mm_processor_kwargs": {}, "chat_template_kwargs": {"a": 1})"},
      {"copilot", FieldLevel::message, R"("reasoning_opaque": "x")"},
      {"mistral", FieldLevel::message, R"("prefix": false)"},
      {"langchain", FieldLevel::part, R"("annotations": [], "id": "x")"},
  };
  for (const auto& [client, level, member] : kSent) {
    EXPECT_NO_THROW(chat(body_at(level, member))) << client << ": " << member;
  }
}

TEST(ClientFields, OthersAreRefusedWithASuggestion) {
  for (const FieldLevel level : kLevels) {
    const ApiError error = refusal([&](const std::string& text) { parse_at(level, text); },
                                   body_at(level, "\"cache_contrl\": 1"));
    EXPECT_EQ(code_of(error), "unknown_parameter");
  }
  EXPECT_THAT(refusal(chat, body_at(FieldLevel::part, "\"cache_contrl\": 1")).message,
              HasSubstr("did you mean cache_control?"));
  EXPECT_THAT(code_of(refusal(chat, body_at(FieldLevel::chat, "\"web_search_options\": {}"))),
              "unsupported_parameter");
}

TEST(ClientFields, NoTemplateShowsTheMarksOfATool) {
  const ChatRequest request = chat(chat_body(R"("tools": [{"type": "function", "function":
      {"name": "f", "cache_control": {"type": "ephemeral"}, "returns": {"type": "string"},
       "parameters": {"type": "object", "properties": {"cache_control": {"type": "string"}}}},
      "cache_control": {"type": "ephemeral"}}])"));
  EXPECT_EQ(
      request.input.tools_json,
      R"([{"type":"function","function":{"name":"f","returns":{"type":"string"},)"
      R"("parameters":{"type":"object","properties":{"cache_control":{"type":"string"}}}}}])");
}

TEST(ClientFields, SwitchesForReasoningAreThoseOfReasoningEffort) {
  const auto effort = [](const char* members) {
    return chat(chat_body(members)).turn.reasoning_effort.value_or("");
  };
  EXPECT_EQ(effort(R"("thinking": {"type": "disabled"})"), "none");
  EXPECT_EQ(effort(R"("thinking": {"type": "enabled"})"), "medium");
  EXPECT_EQ(effort(R"("thinking": {"type": "adaptive"})"), "");
  EXPECT_EQ(effort(R"("enable_thinking": false)"), "none");
  EXPECT_EQ(effort(R"("reasoning": {"effort": "high"})"), "high");
  EXPECT_EQ(effort(R"("reasoning": {"enabled": false})"), "none");
  EXPECT_EQ(effort(R"("enable_thinking": true, "reasoning_effort": "low")"), "low");
  EXPECT_EQ(
      refusal(chat, chat_body(R"("thinking": {"type": "enabled", "budget_tokens": 5})")).field,
      "thinking.budget_tokens");
  EXPECT_EQ(refusal(chat, chat_body(R"("reasoning": {"exclude": true})")).field,
            "reasoning.exclude");
  EXPECT_EQ(chat(chat_body(R"("thinking": {"type": "enabled", "clear_thinking": false})"))
                .input.kwargs_json,
            R"({"clear_thinking":false})");
}

TEST(ClientFields, ReasoningInPiecesIsReadWhereThereIsNoOther) {
  const auto message = [](const std::string& members) {
    return chat(R"({"messages": [{"role": "assistant", "content": "x", )" + members + "}]}")
        .input.messages[0]
        .json;
  };
  constexpr std::string_view kHm = R"({"role":"assistant","content":"x","reasoning_content":"hm"})";
  EXPECT_EQ(message(R"("reasoning_details": [{"type": "reasoning.text", "text": "h"},
                                             {"type": "reasoning.encrypted", "data": "?"},
                                             {"type": "reasoning.text", "text": "m"}])"),
            kHm);
  EXPECT_EQ(message(R"("thinking_blocks": [{"type": "thinking", "thinking": "hm"}])"), kHm);
  EXPECT_EQ(message(R"("thinking_blocks": [{"thinking": "other"}], "reasoning_content": "hm")"),
            kHm);
}

TEST(ClientFields, TheUsageOfAStreamMayBeAskedForAsOpenRouterHasIt) {
  EXPECT_TRUE(chat(chat_body(R"("stream": true, "usage": {"include": true})"))
                  .generation.streaming.include_usage);
  EXPECT_THAT(asked_for(chat(chat_body(R"("usage": {"include": false})"))),
              Not(HasSubstr("usage")));
}

}  // namespace
}  // namespace paceline
