#include <gmock/gmock.h>

#include <set>

#include "protocol/field_list.h"
#include "tests/protocol/endpoints.h"

namespace paceline {
namespace {

// Every field that OpenAI's two requests have.
constexpr std::string_view kOpenAiCompletion[] = {"model",
                                                  "prompt",
                                                  "best_of",
                                                  "echo",
                                                  "frequency_penalty",
                                                  "logit_bias",
                                                  "logprobs",
                                                  "max_tokens",
                                                  "n",
                                                  "presence_penalty",
                                                  "seed",
                                                  "stop",
                                                  "stream",
                                                  "stream_options",
                                                  "suffix",
                                                  "temperature",
                                                  "top_p",
                                                  "user"};
constexpr std::string_view kOpenAiChat[] = {"messages",
                                            "model",
                                            "audio",
                                            "frequency_penalty",
                                            "function_call",
                                            "functions",
                                            "logit_bias",
                                            "logprobs",
                                            "max_completion_tokens",
                                            "max_tokens",
                                            "metadata",
                                            "modalities",
                                            "n",
                                            "parallel_tool_calls",
                                            "prediction",
                                            "presence_penalty",
                                            "prompt_cache_key",
                                            "reasoning_effort",
                                            "response_format",
                                            "safety_identifier",
                                            "seed",
                                            "service_tier",
                                            "stop",
                                            "store",
                                            "stream",
                                            "stream_options",
                                            "temperature",
                                            "tool_choice",
                                            "tools",
                                            "top_logprobs",
                                            "top_p",
                                            "user",
                                            "verbosity",
                                            "web_search_options"};

TEST(FieldTable, NamesAreUniqueAndDocumented) {
  for (const Endpoint& endpoint : endpoints()) {
    std::set<std::string_view> names;
    for (const FieldInfo& field : endpoint.fields) {
      EXPECT_TRUE(names.insert(field.name).second) << endpoint.name << ": " << field.name;
      EXPECT_TRUE(is_request_field(field.name));
      if (field.use == FieldUse::refused) continue;
      EXPECT_TRUE(field.help.ends_with('.')) << field.name;
    }
  }
  EXPECT_FALSE(is_request_field("position"));
}

TEST(FieldTable, NoFieldOfTheApiIsUnknown) {
  std::set<std::string_view> completions, chats;
  for (const FieldInfo& field : completion_request_fields()) completions.insert(field.name);
  for (const FieldInfo& field : chat_request_fields()) chats.insert(field.name);
  for (const std::string_view name : kOpenAiCompletion)
    EXPECT_TRUE(completions.contains(name)) << name;
  for (const std::string_view name : kOpenAiChat) EXPECT_TRUE(chats.contains(name)) << name;
}

TEST(FieldTable, ANullIsNoValueInAnyField) {
  for (const Endpoint& endpoint : endpoints()) {
    for (const FieldInfo& field : endpoint.fields) {
      if (endpoint.required.starts_with("\"" + std::string(field.name))) continue;
      EXPECT_NO_THROW(
          endpoint.parse("{" + endpoint.required + ", \"" + std::string(field.name) + "\": null}"))
          << field.name;
    }
  }
}

TEST(FieldTable, EveryFieldRefusesWhatItCanNotTake) {
  for (const Endpoint& endpoint : endpoints()) {
    for (const FieldInfo& field : endpoint.fields) {
      if (endpoint.required.starts_with("\"" + std::string(field.name))) continue;
      const ApiError error =
          refusal(endpoint.parse,
                  "{" + endpoint.required + ", \"" + std::string(field.name) + "\": [[[0.5]]]}");
      ASSERT_TRUE(error.param) << field.name;
      EXPECT_TRUE(error.param->starts_with(field.name)) << field.name << " " << error.message;
      if (field.use == FieldUse::refused) {
        EXPECT_EQ(error.code, "unsupported_parameter");
      }
      EXPECT_TRUE(error.message.starts_with(*error.param + ": ")) << error.message;
    }
  }
}

}  // namespace
}  // namespace paceline
