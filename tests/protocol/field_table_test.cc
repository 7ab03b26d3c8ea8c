#include <gmock/gmock.h>

#include <set>

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
      if (field.use == FieldUse::refused) continue;
      EXPECT_TRUE(field.help.ends_with('.')) << field.name;
    }
  }
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
      if (endpoint.requires_field(field.name)) continue;
      EXPECT_NO_THROW(
          endpoint.parse("{" + endpoint.required + ", \"" + std::string(field.name) + "\": null}"))
          << field.name;
    }
  }
}

TEST(FieldTable, EveryFieldRefusesWhatItCanNotTake) {
  for (const Endpoint& endpoint : endpoints()) {
    for (const FieldInfo& field : endpoint.fields) {
      if (endpoint.requires_field(field.name)) continue;
      const ApiError error =
          refusal(endpoint.parse,
                  "{" + endpoint.required + ", \"" + std::string(field.name) + "\": [[[0.5]]]}");
      ASSERT_TRUE(error.field) << field.name;
      EXPECT_TRUE(error.field->starts_with(field.name)) << field.name << " " << error.message;
      if (field.use == FieldUse::refused) {
        EXPECT_EQ(code_of(error), "unsupported_parameter");
      }
      EXPECT_TRUE(error.message.starts_with(*error.field + ": ")) << error.message;
    }
  }
}

FieldDefault documented(const FieldList& fields, std::string_view name) {
  for (const FieldInfo& field : fields) {
    if (field.name == name) return field.by_default;
  }
  ADD_FAILURE() << "no field: " << name;
  return {};
}

void expect_generation_defaults(const FieldList& fields, const GenerationFields& parsed) {
  EXPECT_EQ(documented(fields, "n"), FieldDefault(int64_t{parsed.n}));
  EXPECT_EQ(documented(fields, "return_token_ids"), FieldDefault(parsed.return_token_ids));
  EXPECT_EQ(documented(fields, "return_tokens"), FieldDefault(false)) << "llama.cpp's name";
  EXPECT_EQ(documented(fields, "timings"), FieldDefault(parsed.timings));
  EXPECT_EQ(documented(fields, "return_tokens_as_token_ids"),
            FieldDefault(parsed.return_tokens_as_token_ids));
  EXPECT_EQ(documented(fields, "stream"), FieldDefault(parsed.streaming.stream));
  EXPECT_EQ(documented(fields, "stream_interval"), FieldDefault(parsed.streaming.interval));
  for (const FieldInfo& field : fields) {
    if (field.name != "stream_options") continue;
    const FieldList options = field.type.members();
    EXPECT_EQ(documented(options, "include_usage"), FieldDefault(parsed.streaming.include_usage));
    EXPECT_EQ(documented(options, "continuous_usage_stats"),
              FieldDefault(parsed.streaming.continuous_usage));
  }
}

TEST(FieldTable, DocumentedDefaultsOfGenerationsAreThoseOfTheReaders) {
  const FieldList completions = completion_request_fields();
  const CompletionRequest text = completion(R"({"prompt": "x"})");
  expect_generation_defaults(completions, text.generation);
  EXPECT_EQ(documented(completions, "max_tokens"), FieldDefault(*text.options.max_tokens));
  EXPECT_EQ(documented(completions, "echo"), FieldDefault(text.echo));
  EXPECT_EQ(documented(completions, "add_special_tokens"),
            FieldDefault(text.options.add_special_tokens));
  EXPECT_EQ(documented(completions, "priority"), FieldDefault(int64_t{text.common.priority}));

  const FieldList chats = chat_request_fields();
  const ChatRequest talk = chat(chat_body(R"("n": 1)"));
  expect_generation_defaults(chats, talk.generation);
  EXPECT_EQ(talk.options.max_tokens, std::nullopt) << "the rest of the context";
  EXPECT_EQ(documented(chats, "logprobs"), FieldDefault(talk.logprobs));
  EXPECT_EQ(documented(chats, "add_generation_prompt"),
            FieldDefault(talk.input.add_generation_prompt));
  EXPECT_EQ(documented(chats, "continue_final_message"),
            FieldDefault(talk.input.continue_final_message));

  const FieldList llama = llama_request_fields();
  const LlamaRequest own = parse_llama_request(body_json(R"({"prompt": "x"})"));
  EXPECT_EQ(documented(llama, "timings"), FieldDefault(own.generation.timings));
  EXPECT_EQ(documented(llama, "add_special_tokens"), FieldDefault(own.options.add_special_tokens));
  EXPECT_EQ(documented(kGenerateDialect.fields(), "return_token_ids"), FieldDefault(true));
}

TEST(FieldTable, DocumentedDefaultsOfOtherRequestsAreThoseOfTheReaders) {
  const FieldList classify = classification_request_fields();
  const ClassificationRequest input = classification(R"({"input": "x"})");
  EXPECT_EQ(documented(classify, "with_token_id"), FieldDefault(input.with_token_id));
  EXPECT_EQ(documented(classify, "with_logits"), FieldDefault(input.with_logits));
  EXPECT_EQ(documented(classify, "add_special_tokens"),
            FieldDefault(input.options.add_special_tokens));
  const FieldList score = token_score_request_fields();
  const TokenScoreRequest scored = parse_token_score_request(body_json(R"({"input": "x"})"));
  EXPECT_EQ(documented(score, "top_logprobs"), FieldDefault(int64_t{scored.top_logprobs}));
  EXPECT_EQ(documented(score, "add_special_tokens"), FieldDefault(scored.add_special_tokens));
  const FieldList embed = embedding_request_fields();
  const EmbeddingRequest embedded = parse_embedding_request(body_json(R"({"input": "x"})"));
  EXPECT_EQ(documented(embed, "add_special_tokens"), FieldDefault(embedded.add_special_tokens));
  EXPECT_EQ(documented(embed, "encoding_format"), FieldDefault(std::string_view("float")));
  EXPECT_EQ(embedded.format, EmbeddingFormat::floats);
  const FieldList tokenize = tokenize_request_fields();
  const TokenizeRequest tokens = parse_tokenize_request(body_json(R"({"prompt": "x"})"));
  EXPECT_EQ(documented(tokenize, "parse_special"), FieldDefault(tokens.parse_special));
  EXPECT_EQ(documented(tokenize, "return_token_strs"), FieldDefault(tokens.return_token_strs));
  EXPECT_EQ(documented(tokenize, "with_pieces"), FieldDefault(tokens.with_pieces));
  const FieldList conversation = template_request_fields();
  const TemplateRequest rendered = parse_template_request(body_json(chat_body(R"("model": "m")")));
  EXPECT_EQ(documented(conversation, "add_generation_prompt"),
            FieldDefault(rendered.input.add_generation_prompt));
  EXPECT_EQ(documented(conversation, "continue_final_message"),
            FieldDefault(rendered.input.continue_final_message));
}

}  // namespace
}  // namespace paceline
