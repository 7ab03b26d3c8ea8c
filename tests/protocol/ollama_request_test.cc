#include "protocol/ollama_request.h"

#include <gmock/gmock.h>

#include "tests/protocol/requests.h"

namespace paceline {
namespace {

using testing::HasSubstr;

OllamaRequest chat_request(std::string_view body) {
  return parse_ollama_chat(parse_json(body, "body"));
}
OllamaRequest generate_request(std::string_view body) {
  return parse_ollama_generate(parse_json(body, "body"));
}
OllamaEmbedRequest embed_request(std::string_view body) {
  return parse_ollama_embed(parse_json(body, "body"));
}

const ChatRequest& chat_of(const OllamaRequest& asked) {
  return std::get<ChatRequest>(asked.request);
}
const CompletionRequest& completion_of(const OllamaRequest& asked) {
  return std::get<CompletionRequest>(asked.request);
}

// One message of the user, then `members`.
std::string user_body(std::string_view members) {
  return R"({"model": "m", "messages": [{"role": "user", "content": "x"}], )" +
         std::string(members) + "}";
}

// As Ollama's Python package sends a chat with a tool's result.
TEST(OllamaRequest, ReadsARecordedChat) {
  const OllamaRequest asked = chat_request(R"({
    "model": "qwen3:latest", "stream": false, "think": false, "keep_alive": "5m",
    "options": {"temperature": 0, "seed": 7, "num_predict": 32, "num_ctx": 512, "num_thread": 8,
                "top_k": 40, "top_p": 0.9, "min_p": 0.1, "stop": ["END"], "repeat_penalty": 1.1},
    "messages": [
      {"role": "system", "content": "Be brief."},
      {"role": "user", "content": "What is the weather?"},
      {"role": "assistant", "content": "", "thinking": "Two cities.", "images": [], "tool_calls": [
        {"function": {"name": "weather", "arguments": {"city": "Oslo"}}},
        {"function": {"name": "clock", "arguments": {}}}]},
      {"role": "tool", "content": "12:00", "tool_name": "clock"},
      {"role": "tool", "content": "rain", "tool_name": "weather"}],
    "tools": [{"type": "function", "function": {"name": "weather", "description": "Of a city.",
      "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]})");
  const ChatRequest& chat = chat_of(asked);
  EXPECT_FALSE(asked.is_load);
  EXPECT_EQ(asked.model, "qwen3:latest");
  EXPECT_EQ(chat.common.model, "qwen3");
  EXPECT_EQ(chat.common.keep_alive_seconds, 300);
  EXPECT_FALSE(chat.generation.streaming.stream);
  EXPECT_TRUE(chat.generation.timings);
  EXPECT_EQ(chat.turn.reasoning_effort, "none");
  EXPECT_EQ(chat.options.temperature, 0.0f);
  EXPECT_EQ(chat.options.seed, 7u);
  EXPECT_EQ(chat.options.max_tokens, 32);
  EXPECT_EQ(chat.options.top_k, 40);
  EXPECT_EQ(chat.options.repetition_penalty, 1.1f);
  EXPECT_EQ(chat.options.stop, std::vector<std::string>{"END"});
  ASSERT_EQ(chat.turn.tools.size(), 1u);
  EXPECT_EQ(chat.turn.tools[0].name, "weather");
  EXPECT_THAT(chat.input.tools_json, HasSubstr("Of a city."));
  ASSERT_EQ(chat.input.messages.size(), 5u);
  EXPECT_EQ(chat.input.messages[0].role, "system");
  EXPECT_EQ(chat.input.messages[1].content, "What is the weather?");
  EXPECT_EQ(chat.input.messages[2].json,
            R"({"role":"assistant","content":"","reasoning_content":"Two cities.","tool_calls":[)"
            R"({"id":"call00000","type":"function","function":{"name":"weather","arguments":)"
            R"({"city":"Oslo"}}},{"id":"call00001","type":"function","function":{"name":"clock",)"
            R"("arguments":{}}}]})");
  EXPECT_EQ(chat.input.messages[3].json,
            R"({"role":"tool","content":"12:00","name":"clock","tool_call_id":"call00001"})");
  EXPECT_EQ(chat.input.messages[4].json,
            R"({"role":"tool","content":"rain","name":"weather","tool_call_id":"call00000"})");
}

TEST(OllamaRequest, DefaultsAreThoseOfOllamaOrTheModel) {
  const OllamaRequest asked = chat_request(R"({"messages": [{"role": "user", "content": "x"}]})");
  const ChatRequest& chat = chat_of(asked);
  EXPECT_TRUE(chat.generation.streaming.stream);
  EXPECT_FALSE(chat.options.temperature) << "the model's own";
  EXPECT_FALSE(chat.options.max_tokens);
  EXPECT_FALSE(chat.options.seed);
  EXPECT_FALSE(chat.turn.reasoning_effort);
  EXPECT_FALSE(chat.common.keep_alive_seconds);
  EXPECT_FALSE(chat.common.model);
  EXPECT_FALSE(asked.returns_context);
}

TEST(OllamaRequest, KeepsIdsAndFindsTheCallOfAResultInOrder) {
  const ChatRequest chat = chat_of(chat_request(R"({"messages": [
    {"role": "assistant", "tool_calls": [{"id": "a1", "type": "function", "index": 0,
      "function": {"index": 0, "name": "f", "arguments": {}}}]},
    {"role": "tool", "content": "1", "tool_call_id": "a1"},
    {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}, {"function": {"name": "f"}}]},
    {"role": "tool", "content": "2"}, {"role": "tool", "content": "3"},
    {"role": "tool", "content": "nobody asked"}]})"));
  EXPECT_THAT(chat.input.messages[0].json, HasSubstr(R"("id":"a1")"));
  EXPECT_THAT(chat.input.messages[1].json, HasSubstr(R"("tool_call_id":"a1")"));
  EXPECT_THAT(chat.input.messages[3].json, HasSubstr(R"("tool_call_id":"call00000")"));
  EXPECT_THAT(chat.input.messages[4].json, HasSubstr(R"("tool_call_id":"call00001")"));
  EXPECT_EQ(chat.input.messages[5].content, "nobody asked");
}

TEST(OllamaRequest, FormatIsAWordOrASchema) {
  const auto format = [](std::string_view json) {
    return chat_of(chat_request(user_body(R"("format": )" + std::string(json)))).options.constraint;
  };
  EXPECT_FALSE(format(R"("")"));
  EXPECT_FALSE(format("null"));
  EXPECT_EQ(format(R"("json")")->kind, ConstraintSpec::Kind::json_object);
  const auto schema = format(R"({"type": "object"})");
  EXPECT_EQ(schema->kind, ConstraintSpec::Kind::json_schema);
  EXPECT_EQ(schema->text, R"({"type":"object"})");
  EXPECT_TRUE(schema->best_effort);
}

TEST(OllamaRequest, ThinkIsASwitchOrALevel) {
  const auto effort = [](std::string_view json) {
    return chat_of(chat_request(user_body(R"("think": )" + std::string(json))))
        .turn.reasoning_effort;
  };
  EXPECT_EQ(effort("true"), "medium");
  EXPECT_EQ(effort("false"), "none");
  EXPECT_EQ(effort(R"("high")"), "high");
  EXPECT_EQ(effort("null"), std::nullopt);
}

TEST(OllamaRequest, OnlyTheLatest128CallsWaitForResults) {
  std::string calls;
  for (int i = 0; i < 100; ++i) {
    calls += std::string(i > 0 ? "," : "") + R"({"function": {"name": "f", "arguments": {}}})";
  }
  const std::string asking = R"({"role": "assistant", "tool_calls": [)" + calls + "]},";
  const ChatRequest chat = chat_of(chat_request(R"({"model": "m", "messages": [)" + asking +
                                                asking + R"({"role": "tool", "content": "1"}]})"));
  EXPECT_THAT(chat.input.messages[2].json, HasSubstr(R"("tool_call_id":"call00072")"));
}

TEST(OllamaRequest, KeepAliveIsSecondsOrADuration) {
  const auto seconds = [](std::string_view json) {
    return chat_of(chat_request(user_body(R"("keep_alive": )" + std::string(json))))
        .common.keep_alive_seconds;
  };
  EXPECT_EQ(seconds("0"), 0);
  EXPECT_EQ(seconds("90.5"), 90.5);
  EXPECT_EQ(seconds("-1"), -1);
  EXPECT_EQ(seconds(R"("0")"), 0);
  EXPECT_EQ(seconds(R"("10s")"), 10);
  EXPECT_EQ(seconds(R"("1h30m")"), 5400);
  EXPECT_EQ(seconds(R"("1.5m")"), 90);
  EXPECT_EQ(seconds(R"("-1m")"), -60);
  EXPECT_EQ(seconds(R"("250ms")"), 0.25);
  for (const char* wrong :
       {R"("")", R"("5")", R"("m")", R"("5 m")", R"("5x")", R"("nan")", R"("nans")", R"("infh")",
        R"("1m-0s")", R"("1e3s")", R"("--1s")", "true", "[]"}) {
    const ApiError error =
        refusal(chat_request, user_body(R"("keep_alive": )" + std::string(wrong)));
    EXPECT_THAT(error.message, HasSubstr("keep_alive: found")) << wrong;
  }
}

TEST(OllamaRequest, ANegativeSeedOrCountMeansNone) {
  const ChatRequest chat =
      chat_of(chat_request(user_body(R"("options": {"seed": -1, "num_predict": -1})")));
  EXPECT_FALSE(chat.options.seed);
  EXPECT_EQ(chat.options.max_tokens, static_cast<int64_t>(kMaxOutputTokens));
}

TEST(OllamaRequest, LogprobsNeedTheSwitch) {
  const ChatRequest with =
      chat_of(chat_request(user_body(R"("logprobs": true, "top_logprobs": 3)")));
  EXPECT_EQ(with.num_alternatives(), 3);
  const ChatRequest without = chat_of(chat_request(user_body(R"("top_logprobs": 3)")));
  EXPECT_EQ(without.num_alternatives(), std::nullopt);
}

TEST(OllamaRequest, GenerateIsAChatOfOneMessage) {
  const OllamaRequest asked = generate_request(
      R"({"model": "m", "prompt": "Hi", "system": "Be brief.", "template": "", "context": [5, 6],
          "images": []})");
  const ChatRequest& chat = chat_of(asked);
  ASSERT_EQ(chat.input.messages.size(), 2u);
  EXPECT_EQ(chat.input.messages[0].role, "system");
  EXPECT_EQ(chat.input.messages[1].content, "Hi");
  EXPECT_EQ(chat.turn.context, (std::vector<int32_t>{5, 6}));
  EXPECT_TRUE(asked.returns_context);
  EXPECT_TRUE(chat.generation.return_token_ids);
}

TEST(OllamaRequest, GenerateIsACompletionWithRawOrSuffix) {
  const OllamaRequest raw =
      generate_request(R"({"prompt": "Once", "raw": true, "logprobs": true})");
  EXPECT_EQ(std::get<std::string>(completion_of(raw).prompt.prompts.at(0)), "Once");
  EXPECT_EQ(completion_of(raw).options.max_tokens, static_cast<int64_t>(kMaxOutputTokens));
  EXPECT_EQ(completion_of(raw).logprobs, 0);
  EXPECT_FALSE(raw.returns_context);
  const OllamaRequest gap =
      generate_request(R"json({"prompt": "a(", "suffix": ")", "options": {"num_predict": 4}})json");
  EXPECT_EQ(completion_of(gap).suffix, ")");
  EXPECT_EQ(completion_of(gap).options.max_tokens, 4);
}

TEST(OllamaRequest, WithoutMessagesOrPromptTheModelIsLoaded) {
  EXPECT_TRUE(chat_request(R"({"model": "m", "messages": []})").is_load);
  EXPECT_TRUE(chat_request(R"({"model": "m"})").is_load);
  EXPECT_TRUE(generate_request(R"({"model": "m", "prompt": "", "keep_alive": 0})").is_load);
  EXPECT_TRUE(embed_request(R"({"model": "m", "input": ""})").is_load);
  EXPECT_TRUE(embed_request(R"({"model": "m", "input": []})").is_load);
}

TEST(OllamaRequest, EmbedTakesATextOrSeveral) {
  const OllamaEmbedRequest one = embed_request(R"({"model": "e:latest", "input": "x"})");
  EXPECT_EQ(one.request.common.model, "e");
  EXPECT_EQ(one.request.input.prompts.size(), 1u);
  EXPECT_EQ(one.request.truncates, true);
  EXPECT_FALSE(one.request.dimensions);
  const OllamaEmbedRequest two = embed_request(
      R"({"input": ["x", "y"], "truncate": false, "dimensions": 64, "options": {"num_ctx": 1}})");
  EXPECT_EQ(two.request.input.prompts.size(), 2u);
  EXPECT_EQ(two.request.truncates, false);
  EXPECT_EQ(two.request.dimensions, 64);
  const OllamaEmbedRequest old =
      parse_ollama_embeddings(parse_json(R"({"model": "e", "prompt": "x"})", "body"));
  EXPECT_EQ(old.request.input.prompts.size(), 1u);
}

TEST(OllamaRequest, RefusesByName) {
  const auto chat_error = [](std::string_view members) {
    return refusal(chat_request, user_body(members)).message;
  };
  EXPECT_EQ(refusal(chat_request, R"({"messages": [{"role": "user", "content": "x",
      "images": ["aGk="]}]})")
                .message,
            "messages[0].images: found an array, only an empty one is supported");
  EXPECT_THAT(chat_error(R"("options": {"mirostat": 1})"), HasSubstr("options.mirostat"));
  EXPECT_THAT(chat_error(R"("options": {"tempurature": 1})"), HasSubstr("temperature"));
  EXPECT_THAT(chat_error(R"("options": {"repeat_penalty": 1.1, "repeat_last_n": 64})"),
              HasSubstr("repeat_last_n"));
  EXPECT_THAT(chat_error(R"("think": "very")"), HasSubstr("think"));
  EXPECT_THAT(chat_error(R"("format": "xml")"), HasSubstr("format"));
  EXPECT_THAT(refusal(generate_request, R"({"prompt": "x", "template": "{{ .Prompt }}"})").message,
              HasSubstr("template"));
  EXPECT_THAT(refusal(generate_request, R"({"prompt": "x", "raw": true, "system": "y"})").message,
              HasSubstr("raw: "));
  EXPECT_THAT(refusal(chat_request, R"({"messages": [{"role": "assistant", "tool_calls":
      [{"function": {"name": "f", "arguments": "{}"}}]}]})")
                  .message,
              HasSubstr("messages[0].tool_calls[0].function.arguments"));
}

}  // namespace
}  // namespace paceline
