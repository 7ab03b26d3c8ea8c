#include <gmock/gmock.h>

#include "protocol/chat_messages.h"
#include "protocol/chat_tools.h"
#include "tests/protocol/requests.h"

namespace paceline {
namespace {

using testing::HasSubstr;

// The second message of message_body().
ChatMessage message(std::string_view text) { return chat(message_body(text)).input.messages.at(1); }

TEST(ChatRequest, DefaultsAndMessages) {
  const ChatRequest request = chat(R"({"messages": [
      {"role": "developer", "content": "Be brief"}, {"role": "user", "content": "Hi"}]})");
  ASSERT_EQ(request.input.messages.size(), 2u);
  EXPECT_EQ(request.input.messages[0].role, "system");
  EXPECT_EQ(request.input.messages[0].content, "Be brief");
  EXPECT_EQ(request.input.messages[1].role, "user");
  EXPECT_TRUE(request.input.messages[1].json.empty());
  EXPECT_TRUE(request.input.add_generation_prompt);
  EXPECT_EQ(request.options.max_tokens, std::nullopt);
  EXPECT_FALSE(request.logprobs);
}

TEST(ChatRequest, ReadsItsFields) {
  const ChatRequest request = chat(chat_body(R"(
      "max_completion_tokens": 9, "max_tokens": 9, "logprobs": true, "top_logprobs": 20,
      "chat_template_kwargs": {"enable_thinking": false}, "documents": [{"title": "t"}],
      "add_generation_prompt": false, "n": 2, "temperature": 0, "response_format": {"type": "text"},
      "verbosity": "low", "parallel_tool_calls": true, "modalities": ["text"], "seed": 1)"));
  EXPECT_EQ(request.options.max_tokens, 9);
  EXPECT_TRUE(request.logprobs);
  EXPECT_EQ(request.top_logprobs, 20);
  EXPECT_EQ(request.input.kwargs_json, R"({"enable_thinking":false})");
  EXPECT_EQ(request.input.documents_json, R"([{"title":"t"}])");
  EXPECT_FALSE(request.input.add_generation_prompt);
  EXPECT_EQ(request.generation.n, 2);
  EXPECT_EQ(request.options.temperature, 0.0f);
  EXPECT_EQ(chat(chat_body(R"("max_tokens": 3)")).options.max_tokens, 3);
}

TEST(ChatRequest, PartsOfTextAreOneContent) {
  EXPECT_EQ(message(R"({"role": "user", "content": [{"type": "text", "text": "a"},
                        {"type": "text", "text": "b"}]})")
                .content,
            "a\nb");
  EXPECT_EQ(message(R"({"role": "user", "content": []})").content, "");
}

TEST(ChatRequest, CallsAndTheirAnswersAreAsTemplatesExpect) {
  EXPECT_EQ(message(R"({"role": "assistant", "content": null, "tool_calls": [{"id": "c1",
                "type": "function", "function": {"name": "f", "arguments": "{\"x\": [1, 2.0]}"}}]})")
                .json,
            R"({"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function",)"
            R"("function":{"name":"f","arguments":{"x":[1,2.0]}}}]})");
  EXPECT_EQ(message(R"({"role": "tool", "tool_call_id": "c1", "content": "5"})").json,
            R"({"role":"tool","content":"5","tool_call_id":"c1"})");
  EXPECT_EQ(message(R"({"role": "user", "content": "x", "name": "Ann"})").json,
            R"({"role":"user","content":"x","name":"Ann"})");
  EXPECT_EQ(message(R"({"role": "assistant", "content": "x", "reasoning_content": "hm"})").json,
            R"({"role":"assistant","content":"x","reasoning_content":"hm"})");
  EXPECT_EQ(message(R"({"role": "assistant", "content": "x", "tool_calls": [], "refusal": null})")
                .content,
            "x");
}

// openai's message.model_dump() has every field of its class, most of them null.
TEST(ChatRequest, MessagesOfClientsComeBack) {
  const char* dumped = R"({"content": "x", "refusal": null, "role": "assistant",
      "annotations": null, "audio": null, "function_call": null, "tool_calls": null,
      "reasoning_content": null, "reasoning": null, "some_later_field": null})";
  EXPECT_EQ(message(dumped).content, "x");
  EXPECT_EQ(message(R"({"role": "assistant", "content": "x", "annotations": [],
                        "refusal": "y"})")
                .content,
            "x");
  EXPECT_EQ(message(R"({"role": "assistant", "content": null, "refusal": "no"})").content, "no");
  EXPECT_EQ(message(R"({"role": "assistant", "content": "x", "reasoning": "hm"})").json,
            R"({"role":"assistant","content":"x","reasoning_content":"hm"})");
  for (const char* const cut : {R"({\"x\": [1)", "5", "text"}) {
    EXPECT_EQ(message(R"({"role": "assistant", "tool_calls": [{"function": {"name": "f",
                          "arguments": ")" +
                      std::string(cut) + "\"}}]}")
                  .json,
              R"({"role":"assistant","content":"","tool_calls":[{"id":"","type":"function",)"
              R"("function":{"name":"f","arguments":")" +
                  std::string(cut) + "\"}}]}");
  }
  EXPECT_EQ(message(R"({"role": "assistant", "content": null,
                        "function_call": {"name": "f", "arguments": "{\"a\": 1}"}})")
                .json,
            R"({"role":"assistant","content":"","tool_calls":[{"id":"","type":"function",)"
            R"("function":{"name":"f","arguments":{"a":1}}}]})");
  EXPECT_EQ(message(R"({"content": "x", "refusal": null, "role": "assistant", "annotations": [],
                        "audio": null, "function_call": null, "tool_calls": null,
                        "reasoning_content": null})")
                .json,
            "")
      << "what says nothing is not shown to the template";
  EXPECT_NO_THROW(message(R"({"role": "assistant", "content": null, "tool_calls": [{"index": 0,
      "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]})"));
}

TEST(ChatRequest, ANullIsAbsentWhateverItsName) {
  EXPECT_NO_THROW(chat(chat_body(R"("some_later_field": null, "audio": null)")));
  EXPECT_NO_THROW(chat(chat_body(R"("modalities": ["text"], "audio": null)")));
  EXPECT_NO_THROW(chat(chat_body(R"("modalities": null, "function_call": null)")));
}

TEST(ChatRequest, ParallelToolCallsMayBeEither) {
  EXPECT_NO_THROW(chat(chat_body(R"("parallel_tool_calls": false)")));
  EXPECT_NO_THROW(chat(chat_body(R"("parallel_tool_calls": true)")));
}

TEST(ChatRequest, AWrongMessageIsNamed) {
  const struct {
    const char* message;
    const char* param;
    const char* text;
  } kCases[] = {
      {"5", "messages[1]", "found 5, expected an object"},
      {R"({"content": "x"})", "messages[1].role", "missing"},
      {R"({"role": "usr", "content": "x"})", "messages[1].role", "found \"usr\", expected one of"},
      {R"({"role": "user"})", "messages[1].content", "missing"},
      {R"({"role": "user", "content": null})", "messages[1].content", "missing"},
      {R"({"role": "user", "content": 5})", "messages[1].content", "a string or an array of parts"},
      {R"({"role": "user", "content": ["x"]})", "messages[1].content[0]", "expected an object"},
      {R"({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]})",
       "messages[1].content[0].type", "only \"text\" is supported"},
      {R"({"role": "user", "content": [{"type": "thinking", "text": "x"}]})",
       "messages[1].content[0].type", "found \"thinking\", only one of"},
      {R"({"role": "user", "content": [{"type": "text"}]})", "messages[1].content[0].text",
       "missing"},
      {R"({"role": "user", "content": [{"text": "x"}]})", "messages[1].content[0].type", "missing"},
      {R"({"role": "user", "content": "x", "nam": "y"})", "messages[1].nam",
       "unknown field messages[1].nam; did you mean name?"},
      {R"({"role": "tool", "content": "x"})", "messages[1].tool_call_id", "missing"},
      {R"({"role": "user", "content": "x", "tool_call_id": "y"})", "messages[1].tool_call_id",
       "not allowed"},
      {R"({"role": "user", "content": "x", "reasoning_content": "y"})",
       "messages[1].reasoning_content", "not allowed"},
      {R"({"role": "user", "content": "x", "tool_calls": [{"function": {"name": "f"}}]})",
       "messages[1].tool_calls", "only the assistant"},
      {R"({"role": "assistant", "tool_calls": [{"id": "x"}]})",
       "messages[1].tool_calls[0].function", "missing"},
      {R"({"role": "assistant", "tool_calls": [{"type": "custom"}]})",
       "messages[1].tool_calls[0].type", "only \"function\""},
      {R"({"role": "assistant", "content": "x", "audio": {"id": "y"}})", "messages[1].audio",
       "not supported"},
      {R"({"role": "assistant", "content": "x", "function_call": {}})",
       "messages[1].function_call.name", "missing"},
      {R"({"role": "assistant", "refusal": 5})", "messages[1].refusal", "expected a string"},
      {R"({"role": "assistant", "content": "x", "annotations": 5})", "messages[1].annotations",
       "expected an array"},
  };
  for (const auto& [text, param, part] : kCases) {
    const ApiError error = refusal(chat, message_body(text));
    EXPECT_EQ(error.field, param) << text;
    EXPECT_THAT(error.message, HasSubstr(part));
  }
}

TEST(ChatRequest, ThereMustBeMessagesAsManyAsTheBodyHolds) {
  EXPECT_EQ(code_of(refusal(chat, "{}")), "missing_required_parameter");
  EXPECT_EQ(refusal(chat, R"({"messages": []})").message,
            "messages: an empty array, expected at least one item");
  constexpr size_t kMany = 20'000;
  std::string many = R"({"messages": [)";
  for (size_t i = 1; i < kMany; ++i) many += R"({"role": "user", "content": ""}, )";
  EXPECT_EQ(chat(many + R"({"role": "user", "content": ""}]})").input.messages.size(), kMany);
}

TEST(ChatRequest, ARefusalInPartsIsWhatTheAssistantSaid) {
  EXPECT_EQ(message(R"({"role": "assistant", "content":
                        [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}]})")
                .content,
            "a\nno");
  EXPECT_EQ(refusal(chat, message_body(R"({"role": "assistant", "content":
                                           [{"type": "refusal", "text": "no"}]})"))
                .field,
            "messages[1].content[0].refusal");
  EXPECT_EQ(refusal(chat, message_body(R"({"role": "user", "content":
                                           [{"type": "refusal", "refusal": "no"}]})"))
                .field,
            "messages[1].content[0].type");
}

TEST(ChatRequest, ANoteStandsForWhatIsNoTextInAToolsResult) {
  const ChatRequest request = chat(message_body(R"({"role": "tool", "tool_call_id": "1", "content":
          [{"type": "text", "text": "seen:"},
           {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]})"));
  EXPECT_THAT(request.input.messages[1].json,
              HasSubstr(R"("seen:\n[image omitted: the model reads text only]")"));
  EXPECT_THAT(
      request.warnings,
      testing::ElementsAre("messages[1].content[1]: image left out, the model reads text only"));
}

TEST(ChatRequest, FieldsThatNeedOneAnother) {
  EXPECT_EQ(refusal(chat, chat_body(R"("top_logprobs": 2)")).field, "top_logprobs");
  EXPECT_NO_THROW(chat(chat_body(R"("top_logprobs": 0)")));
  EXPECT_EQ(refusal(chat, chat_body(R"("max_tokens": 1, "max_completion_tokens": 2)")).field,
            "max_tokens");
}

TEST(ChatRequest, ToolsAreCheckedAndGoToTheTemplate) {
  constexpr std::string_view kTool =
      R"([{"type": "function", "function": {"name": "get_weather", "description": "d",)"
      R"( "parameters": {"type": "object", "properties": {}}}}])";
  const auto with = [&](std::string_view rest) {
    return chat(chat_body("\"tools\": " + std::string(kTool) + std::string(rest)));
  };
  EXPECT_EQ(with("").input.tools_json,
            R"([{"type":"function","function":{"name":"get_weather","description":"d",)"
            R"("parameters":{"type":"object","properties":{}}}}])");
  EXPECT_FALSE(with(R"(, "tool_choice": "auto")").input.tools_json.empty());
  EXPECT_TRUE(with(R"(, "tool_choice": "none")").input.tools_json.empty());
  const TurnRequest turn =
      with(R"(, "parallel_tool_calls": false, "reasoning_effort": "low", "tool_choice":
              {"type": "function", "function": {"name": "get_weather"}})")
          .turn;
  EXPECT_EQ(turn.tool_choice, ToolChoice::named);
  EXPECT_EQ(turn.tool_name, "get_weather");
  EXPECT_FALSE(turn.parallel_tool_calls);
  EXPECT_EQ(turn.reasoning_effort, "low");
  ASSERT_EQ(turn.tools.size(), 1u);
  EXPECT_EQ(turn.tools[0].parameters, R"({"type":"object","properties":{}})");
  EXPECT_FALSE(turn.tools[0].is_strict);
  EXPECT_TRUE(chat(chat_body(R"("tools": [{"type": "function",
                                 "function": {"name": "f", "strict": true}}])"))
                  .turn.tools[0]
                  .is_strict);
  EXPECT_EQ(with(R"(, "tool_choice": "required")").turn.tool_choice, ToolChoice::required);
  EXPECT_TRUE(chat(chat_body(R"("tools": [])")).input.tools_json.empty());
  const struct {
    const char* members;
    const char* param;
    const char* code;
  } kCases[] = {
      {R"("tools": [{"type": "function"}])", "tools[0].function", "missing_required_parameter"},
      {R"("tools": [{"type": "function", "function": {}}])", "tools[0].function.name",
       "missing_required_parameter"},
      {R"("tools": [{"function": {"name": "f"}}])", "tools[0].type", "missing_required_parameter"},
      {R"("tools": [{"type": "web_search", "function": {"name": "f"}}])", "tools[0].type",
       "unsupported_parameter"},
      {R"("tools": [{"type": "function", "function": {"name": "a b"}}])", "tools[0].function.name",
       "invalid_value"},
      {R"("tools": [{"type": "function", "function": {"name": "f", "parameters": 5}}])",
       "tools[0].function.parameters", "invalid_value"},
      {R"("tool_choice": "required")", "tool_choice", "invalid_value"},
      {R"("tool_choice": {"type": "function", "function": {"name": "f"}})", "tool_choice",
       "invalid_value"},
      {R"("tool_choice": {"type": "function"})", "tool_choice.function",
       "missing_required_parameter"},
      {R"("tool_choice": "sometimes")", "tool_choice", "invalid_value"},
      {R"("parallel_tool_calls": 5)", "parallel_tool_calls", "invalid_value"},
  };
  for (const auto& [members, param, code] : kCases) {
    const ApiError error = refusal(chat, chat_body(members));
    EXPECT_EQ(error.field, param) << members;
    EXPECT_EQ(code_of(error), code) << members;
  }
}

TEST(ChatRequest, ToolsHaveASizeLimit) {
  const auto body_with = [](size_t description_bytes) {
    return chat_body(
        R"("tools": [{"type": "function", "function": {"name": "f", "description": ")" +
        std::string(description_bytes, 'x') + "\"}}]");
  };
  const size_t other_bytes = chat(body_with(1)).input.tools_json.size() - 1;
  const size_t longest = kMaxToolBytes - other_bytes;
  EXPECT_EQ(chat(body_with(longest)).input.tools_json.size(), kMaxToolBytes);
  const ApiError error = refusal(chat, body_with(longest + 1));
  EXPECT_EQ(error.field, "tools");
  EXPECT_THAT(error.message, HasSubstr("expected at most 262144"));
}

TEST(ChatRequest, TheLastMessageCanBeContinued) {
  const ChatRequest request =
      chat(chat_body(R"("continue_final_message": true, "add_generation_prompt": false)"));
  EXPECT_TRUE(request.input.continue_final_message);
  EXPECT_FALSE(request.input.add_generation_prompt);
  EXPECT_EQ(refusal(chat, chat_body(R"("continue_final_message": true)")).field,
            "continue_final_message");
}

TEST(ChatRequest, AlternativesAreCountedOrNamed) {
  EXPECT_EQ(chat(chat_body(R"("n_probs": 3)")).num_alternatives(), 3);
  EXPECT_EQ(chat(chat_body(R"("n_probs": 0)")).num_alternatives(), std::nullopt);
  const ChatRequest named =
      chat(chat_body(R"("logprobs": true, "top_logprobs": 5, "logprob_token_ids": [7, 8])"));
  EXPECT_EQ(named.num_alternatives(), 2);
  EXPECT_EQ(refusal(chat, chat_body(R"("logprob_token_ids": [7])")).field, "logprob_token_ids");
}

TEST(ChatRequest, TheTemplateIsNotTheCallers) {
  for (const char* name : {"messages", "tools", "tokenize", "chat_template", "documents"}) {
    const ApiError error =
        refusal(chat, chat_body("\"chat_template_kwargs\": {\"" + std::string(name) + "\": true}"));
    EXPECT_EQ(error.field, "chat_template_kwargs." + std::string(name));
  }
  EXPECT_EQ(code_of(refusal(chat, chat_body(R"("chat_template": "{{ x }}")"))),
            "unsupported_parameter");
}

TEST(ChatRequest, APredictionIsTextOrPartsOfText) {
  EXPECT_EQ(chat(chat_body(R"("seed": 1)")).options.prediction, "");
  EXPECT_EQ(
      chat(chat_body(R"("prediction": {"type": "content", "content": "a b"})")).options.prediction,
      "a b");
  EXPECT_EQ(chat(chat_body(R"("prediction": {"type": "content", "content": [
                {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})"))
                .options.prediction,
            "a\nb");
  EXPECT_EQ(chat(chat_body(R"("prediction": null)")).options.prediction, "");
}

TEST(ChatRequest, AnotherPredictionIsRefusedByItsPath) {
  for (const auto& [members, param] : std::vector<std::pair<std::string, std::string>>{
           {R"("prediction": "text")", "prediction"},
           {R"("prediction": {"content": "x"})", "prediction.type"},
           {R"("prediction": {"type": "tokens", "content": "x"})", "prediction.type"},
           {R"("prediction": {"type": "content"})", "prediction.content"},
           {R"("prediction": {"type": "content", "content": 5})", "prediction.content"},
           {R"("prediction": {"type": "content", "content": "x", "n": 1})", "prediction.n"}}) {
    EXPECT_EQ(refusal(chat, chat_body(members)).field, param) << members;
  }
}

}  // namespace
}  // namespace paceline
