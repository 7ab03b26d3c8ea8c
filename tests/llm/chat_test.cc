// Chats of the facade: a rendered template, then a generation.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "paceline/llm.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"

namespace paceline {
namespace {

LoadOptions chat_model() {
  return {.model = source_path("models/paceline-10m"), .max_num_seqs = 2, .num_threads = 2};
}

GenerateOptions greedy_chat(int64_t max_tokens) {
  return {.max_tokens = max_tokens, .temperature = 0.0f};
}

ChatInput hello() { return {.messages = {{"system", "Be brief."}, {"user", "The old house"}}}; }

TEST(Chat, IsTheRenderedPromptContinuedBitForBit) {
  LLM llm = LLM::load(chat_model());
  const std::string prompt = llm.render(hello());
  EXPECT_EQ(prompt,
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nThe old house<|im_end|>\n"
            "<|im_start|>assistant\n");
  GenerateOptions options = greedy_chat(24);
  options.logprobs = 3;
  options.add_special_tokens = false;
  const Completion expected = llm.generate(prompt, options).completion();
  const Completion answer = llm.chat(hello(), options).completion();
  EXPECT_EQ(answer.token_ids, expected.token_ids);
  EXPECT_EQ(answer.text, expected.text);
  EXPECT_EQ(answer.usage.prompt_tokens, expected.usage.prompt_tokens);
  ASSERT_EQ(answer.logprobs.size(), expected.logprobs.size());
  for (size_t i = 0; i < answer.logprobs.size(); ++i) {
    EXPECT_EQ(answer.logprobs[i].logprob, expected.logprobs[i].logprob) << i;
  }
}

TEST(Chat, AMessageAsJsonIsTheSameMessage) {
  LLM llm = LLM::load(chat_model());
  ChatInput as_json = hello();
  for (ChatMessage& message : as_json.messages) {
    message = {
        .role = {},
        .content = {},
        .json = "{\"role\": \"" + message.role + "\", \"content\": \"" + message.content + "\"}"};
  }
  EXPECT_EQ(llm.render(as_json), llm.render(hello()));
}

TEST(Chat, AnAnswerEndsWithTheTurnOrTheContext) {
  LoadOptions options = chat_model();
  options.max_model_len = 96;
  LLM llm = LLM::load(options);
  GenerateOptions endless{.temperature = 0.0f, .ignore_eos = true};
  const Completion answer = llm.chat(hello(), endless).completion();
  EXPECT_EQ(answer.finish_reason, "length");
  EXPECT_EQ(answer.usage.prompt_tokens + answer.usage.completion_tokens, 96);
  ChatInput longer = hello();
  longer.messages[1].content = std::string(2000, 'x');
  expect_error(ErrorCode::invalid, {"messages", "96"}, [&] { llm.chat(longer, greedy_chat(1)); });
}

TEST(Chat, TheTemplateCanBeChosen) {
  LoadOptions options = chat_model();
  options.chat_template = "llama3";
  EXPECT_NE(LLM::load(options).render(hello()).find("<|start_header_id|>user<|end_header_id|>"),
            std::string::npos);
  EXPECT_FALSE(LLM::load(options).model_info().notes.empty());  // its markers aren't tokens here
  options.chat_template = "nothing";
  expect_error(ErrorCode::invalid, {"nothing", "chatml"}, [&] { LLM::load(options); });
}

constexpr const char* kTools =
    R"([{"type": "function", "function": {"name": "wait", "parameters": {"type": "object",
         "properties": {"long": {"type": "boolean"}}, "required": ["long"],
         "additionalProperties": false}}}])";

LoadOptions calling_model() {
  LoadOptions options = chat_model();
  options.chat_template = source_path("tests/contract/tool_template.jinja");
  return options;
}

TEST(Chat, ATurnIsTakenApartAndCallsObeyTheirSchemas) {
  LLM llm = LLM::load(calling_model());
  ChatInput input = hello();
  input.tools_json = kTools;
  const ChatOptions one_call{.tool_choice = ToolChoice::required,
                             .parallel_tool_calls = false,
                             .reasoning_effort = "none"};
  GenerateOptions options = greedy_chat(200);
  // The bundled model knows no JSON and would write blanks as long as it may.
  for (const int32_t id : llm.tokenize("\n", false)) options.logit_bias.emplace_back(id, -100.0f);
  options.frequency_penalty = 1;
  const Completion answer = llm.chat(input, options, one_call).completion();
  ASSERT_TRUE(answer.turn.has_value());
  EXPECT_EQ(answer.turn->content, "");
  ASSERT_EQ(answer.turn->tool_calls.size(), 1u);
  const ToolCall& call = answer.turn->tool_calls[0];
  EXPECT_EQ(call.name, "wait");
  EXPECT_EQ(call.id, "call_0");
  EXPECT_TRUE(std::regex_match(call.arguments, std::regex(R"(\{ *"long" *: *(true|false) *\})")))
      << call.arguments;
  EXPECT_NE(answer.text->find("wait"), std::string::npos);
}

TEST(Chat, AConstraintIsOfTheContentBehindTheReasoning) {
  LLM llm = LLM::load(calling_model());
  GenerateOptions options = greedy_chat(400);
  options.constraint = ConstraintSpec{.kind = ConstraintSpec::Kind::regex, .text = "(yes|no)"};
  const Completion plain = llm.chat(hello(), options, {.reasoning_effort = "none"}).completion();
  EXPECT_TRUE(*plain.text == "yes" || *plain.text == "no") << *plain.text;
}

TEST(Chat, AToolChoiceThatCantBeMetIsAnError) {
  LLM llm = LLM::load(calling_model());
  expect_error(ErrorCode::invalid, {"tool_choice", "no tools"},
               [&] { llm.chat(hello(), {}, {.tool_choice = ToolChoice::required}); });
  ChatInput input = hello();
  input.tools_json = kTools;
  expect_error(ErrorCode::invalid, {"tool_choice", "\"sing\"", "one of the tools"}, [&] {
    llm.chat(input, {}, {.tool_choice = ToolChoice::named, .tool_name = "sing"});
  });
  input.tools_json = R"([{"parameters": {}}])";
  expect_error(ErrorCode::invalid, {"tools[0]", "name"}, [&] { llm.chat(input); });
}

TEST(Chat, ATemplateWithoutCallsIsToldHowToMakeThem) {
  LLM plain = LLM::load(chat_model());
  ChatInput input = hello();
  EXPECT_EQ(plain.render(input).find("<tool_call>"), std::string::npos);
  input.tools_json = kTools;
  EXPECT_NE(plain.render(input).find("<tool_call>"), std::string::npos);
}

TEST(Chat, TheBundledModelHasNothingOdd) {
  const LLM llm = LLM::load(chat_model());
  EXPECT_EQ(llm.model_info().notes, std::vector<std::string>());
  EXPECT_EQ(llm.model_info().chat_template, "chat_template.jinja");
}

TEST(Chat, AModelWithoutATokenizerSaysSo) {
  LLM llm =
      LLM::load({.model = source_path("tests/goldens/models/llama_plain"), .max_num_seqs = 2});
  expect_error(ErrorCode::not_found, {"tokenizer.json"}, [&] { llm.render(hello()); });
  expect_error(ErrorCode::not_found, {"tokenizer.json"}, [&] { llm.chat(hello()); });
}

}  // namespace
}  // namespace paceline
