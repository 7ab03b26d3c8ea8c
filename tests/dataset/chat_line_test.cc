// Chats: what is rendered, and which tokens are learnt.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/dataset/training_files.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

using testing::ElementsAre;

constexpr std::string_view kTwoTurns =
    R"({"messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"},)"
    R"( {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Bye"},)"
    R"( {"role": "assistant", "content": "See you"}], "id": 7})";

const std::string kPrompt =
    "<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
    "<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
    "<|im_start|>assistant\n";

class ChatLineTest : public DatasetTest {
 protected:
  Example read_one(std::string_view line, LossTokens loss) const {
    const std::vector<Example> examples = read_lines(line, {.loss_tokens = loss});
    EXPECT_EQ(examples.size(), 1u);
    return examples.at(0);
  }

  void expect_fault(std::string_view line, const std::vector<std::string>& parts,
                    LossTokens loss = LossTokens::all) const {
    SCOPED_TRACE(line);
    std::vector<std::string> all = parts;
    all.push_back("train.jsonl:1: ");
    expect_error(ErrorCode::invalid, all, [&] { read_lines(line, {.loss_tokens = loss}); });
  }
};

// The ids of texts tokenised one after the other; this template's borders are special tokens and
// line feeds that no token crosses.
std::vector<int32_t> ids_of(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  std::vector<int32_t> ids;
  for (const std::string& text : texts) {
    const std::vector<TokenId> more = tokenizer.encode(text);
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return ids;
}

TEST_F(ChatLineTest, LearnsAllTokensButTheFirst) {
  const Example example = read_one(kTwoTurns, LossTokens::all);
  EXPECT_EQ(example.tokens, ids_of(tokenizer(), {kPrompt + "See you<|im_end|>\n"}));
  std::vector<uint8_t> counts(example.tokens.size(), 1);
  counts[0] = 0;
  EXPECT_EQ(example.counts, counts);
}

TEST_F(ChatLineTest, LearnsTheLastTurnBehindItsPrompt) {
  const Example example = read_one(kTwoTurns, LossTokens::completion);
  const size_t prompt = tokenizer().encode(kPrompt).size();
  EXPECT_EQ(example.tokens, ids_of(tokenizer(), {kPrompt, "See you<|im_end|>\n"}));
  for (size_t i = 0; i < example.tokens.size(); ++i) {
    EXPECT_EQ(example.counts[i], i >= prompt ? 1 : 0) << i;
  }
  EXPECT_EQ(learnt_text(example), "See you<|im_end|>\n");
}

TEST_F(ChatLineTest, LearnsAllTurnsOfTheAssistant) {
  const Example example = read_one(kTwoTurns, LossTokens::assistant_turns);
  EXPECT_EQ(learnt_text(example), "Hello<|im_end|>\n|See you<|im_end|>\n");
}

TEST_F(ChatLineTest, LeavesOutTurnsOfWeightZero) {
  const Example example = read_one(
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "no",)"
      R"( "weight": 0}, {"role": "user", "content": "b"}, {"role": "assistant", "content": "yes",)"
      R"( "weight": 1}]})",
      LossTokens::assistant_turns);
  EXPECT_EQ(learnt_text(example), "yes<|im_end|>\n");
  expect_fault(R"({"messages": [{"role": "assistant", "content": "x", "weight": 0.5}]})",
               {"messages[0].weight: found 0.5, expected 0 or 1"});
}

TEST_F(ChatLineTest, ReadsMessagesAsTheServerDoes) {
  const Example example =
      read_one(R"({"messages": [{"role": "developer", "content": [{"type": "text", "text": "a"},)"
               R"( {"type": "text", "text": "b"}]}, {"role": "assistant", "content": null,)"
               R"( "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f",)"
               R"( "arguments": "{}"}}]}]})",
               LossTokens::all);
  EXPECT_EQ(example.tokens,
            ids_of(tokenizer(), {"<|im_start|>system\na\nb<|im_end|>\n<|im_start|>assistant\n",
                                 "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"
                                 "<|im_end|>\n"}));
}

constexpr std::string_view kCall =
    R"({"messages": [{"role": "user", "content": "Oslo?"}, {"role": "assistant", "content": null,)"
    R"( "tool_calls": [{"id": "1", "type": "function", "function": {"name": "weather",)"
    R"( "arguments": "{\"city\": \"Oslo\"}"}}]}], "tools": [{"type": "function", "function":)"
    R"( {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type":)"
    R"( "string"}}}}}]})";

// The bundled template writes neither tools nor calls: they stand in the prompt, as in a request.
TEST_F(ChatLineTest, LearnsACallWithoutAContent) {
  const std::string_view call =
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\":\"Oslo\"}}\n</tool_call>"
      "<|im_end|>\n";
  for (const LossTokens loss : {LossTokens::completion, LossTokens::assistant_turns}) {
    const std::string four = fmt::format("{0}\n{0}\n{0}\n{0}\n", kCall);
    const Dataset dataset = read("train.jsonl", four, {.loss_tokens = loss});
    ASSERT_EQ(dataset.examples.size(), 4u);
    for (const Example& example : dataset.examples) {
      EXPECT_EQ(learnt_text(example), call);
      const std::string text = tokenizer().decode(example.tokens);
      EXPECT_THAT(text, testing::StartsWith("<|im_start|>system\n# Tools\n\nThese functions"));
      EXPECT_THAT(text, testing::HasSubstr(R"({"name":"weather","parameters":{"type":"object")"));
      EXPECT_EQ(example.num_counted(), static_cast<int64_t>(tokenizer().encode(call).size()));
      EXPECT_GT(example.num_tokens(), 200);
    }
  }
}

TEST_F(ChatLineTest, ReadsToolsInTheFormsOfDatasets) {
  const Example expected = read_one(kCall, LossTokens::all);
  const std::string_view messages =
      R"("messages": [{"role": "user", "content": "Oslo?"}, {"role": "assistant", "content": null,)"
      R"( "function_call": {"name": "weather", "arguments": "{\"city\": \"Oslo\"}"}}])";
  const std::string_view bare =
      R"({"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type":)"
      R"( "string"}}}})";
  const std::string_view as_text =
      R"("[{\"name\": \"weather\", \"parameters\": {\"type\": \"object\", \"properties\":)"
      R"( {\"city\": {\"type\": \"string\"}}}}]")";
  for (const std::string& tools :
       {fmt::format(R"("tools": [{}])", bare), fmt::format(R"("functions": [{}])", bare),
        fmt::format(R"("tools": {})", as_text)}) {
    EXPECT_EQ(read_one(fmt::format("{{{}, {}}}", messages, tools), LossTokens::all).tokens,
              expected.tokens)
        << tools;
  }
  const std::string none = fmt::format(R"({{{}, "tools": ""}})", messages);
  EXPECT_EQ(read_one(none, LossTokens::all).tokens,
            read_one(fmt::format(R"({{{}}})", messages), LossTokens::all).tokens);
  expect_fault(fmt::format(R"({{{}, "tools": "x"}})", messages), {"tools: "});
  expect_fault(fmt::format(R"({{{}, "tools": [], "functions": []}})", messages),
               {"found both tools and functions"});
}

TEST_F(ChatLineTest, PutsASystemPromptInFront) {
  const std::string_view hi =
      R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content":)"
      R"( "Hello"}])";
  const Example example = read_one(fmt::format(R"({{"system": "Be short.", "messages": {}}})", hi),
                                   LossTokens::completion);
  EXPECT_EQ(tokenizer().decode(example.tokens),
            "<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\nHello<|im_end|>\n");
  EXPECT_EQ(learnt_text(example), "Hello<|im_end|>\n");
  expect_fault(R"({"system": "a", "messages": [{"role": "system", "content": "b"}]})",
               {"system: found a system prompt beside a system message"});
}

TEST_F(ChatLineTest, CountsReasoningThatTheTemplateLeavesOut) {
  const Dataset dataset =
      read("train.jsonl", R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant",)"
                          R"( "content": "b", "reasoning_content": "They say a."}]})");
  EXPECT_EQ(dataset.report.num_silent_thoughts, 1);
  EXPECT_THAT(dataset_warnings(dataset.report),
              ElementsAre(testing::HasSubstr("leaves out the reasoning of 1 turns")));
}

TEST_F(ChatLineTest, GivesCallsToolsAndReasoningToTheTemplate) {
  const ChatTemplate shows = ChatTemplate::parse(
      "{% for m in messages %}[{{ m.role }} {{ m.name }} {{ m.reasoning_content }} {{ m.content }}"
      "{% for c in m.tool_calls %}<call>{{ c.function.name }} {{ c.function.arguments | tojson }}"
      "</call>{% endfor %}]{% endfor %}{% for t in tools or [] %}{{ t.function.name }}{% endfor %}"
      "{{ style }}",
      "shows");
  const DatasetModel with_shows{tokenizer(), &shows, end_of_text(tokenizer())};
  const Dataset dataset = read(
      "train.jsonl",
      R"({"messages": [{"role": "user", "content": "q", "name": "ann"}, {"role": "assistant",)"
      R"( "content": "", "reasoning_content": "hm", "tool_calls": [{"function": {"name": "f",)"
      R"( "arguments": "{\"x\": 5}"}}]}, {"role": "tool", "content": "r", "tool_call_id": "1"}],)"
      R"( "tools": [{"type": "function", "function": {"name": "f"}}]})",
      {.template_variables = R"({"style": "!"})"}, with_shows);
  EXPECT_EQ(tokenizer().decode(dataset.examples.at(0).tokens),
            "[user ann  q][assistant  hm <call>f {\"x\": 5}</call>][tool   r]f!");
}

TEST_F(ChatLineTest, NamesTheFieldAtFault) {
  expect_fault(R"({"messages": 3})", {"messages: found 3, expected an array"});
  expect_fault(R"({"messages": []})", {"messages: found no message, expected at least one"});
  expect_fault(R"({"messages": [1]})", {"messages[0]: found 1, expected an object"});
  expect_fault(R"({"messages": [{"content": "a"}]})", {"messages[0].role: missing"});
  expect_fault(
      R"({"messages": [{"role": "asistant", "content": "a"}]})",
      {R"(messages[0].role: found "asistant", expected one of system)", "did you mean assistant?"});
  expect_fault(R"({"messages": [{"role": "user"}]})",
               {"messages[0]: no content; only a message with tool_calls may omit it"});
  expect_fault(R"({"messages": [{"role": "user", "content": null}]})", {"messages[0]: no content"});
  expect_fault(R"({"messages": [{"role": "user", "content": 1}]})",
               {"messages[0].content: found 1, expected a string, null or an array of parts"});
  expect_fault(R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
               {R"(messages[0].content[0].type: found "image_url", expected "text")"});
  expect_fault(R"({"messages": [{"role": "user", "content": "a", "name": 1}]})",
               {"messages[0].name: found 1, expected a string"});
  expect_fault(R"({"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]})",
               {"messages[0].tool_calls[0].function.name: missing"});
  expect_fault(
      R"({"messages": [{"role": "assistant", "tool_calls": [{"name": "f", "arguments": "{"}]}]})",
      {"messages[0].tool_calls[0].arguments"});
  expect_fault(
      R"({"messages": [{"role": "assistant", "tool_calls": [{"name": "f", "arguments": "3"}]}]})",
      {R"(messages[0].tool_calls[0].arguments: found "3", expected the JSON of an object)"});
  expect_fault(R"({"messages": [{"role": "user", "content": "a"}], "tools": {}})",
               {"tools: found an object, expected an array"});
  expect_fault(R"({"messages": [{"role": "user", "content": "a"}], "tools": ["f"]})",
               {R"(tools[0]: found "f", expected an object)"});
}

TEST_F(ChatLineTest, WantsATurnOfTheAssistantToLearn) {
  const std::string_view no_answer = R"({"messages": [{"role": "user", "content": "a"}]})";
  expect_fault(no_answer, {R"(messages[0].role: found "user", expected "assistant")"},
               LossTokens::completion);
  expect_fault(no_answer, {"messages: found no message of the assistant to learn"},
               LossTokens::assistant_turns);
}

TEST_F(ChatLineTest, NamesWhatATemplateRaises) {
  const ChatTemplate raises =
      ChatTemplate::parse("{{ raise_exception('roles must alternate') }}", "chat_template.jinja");
  const DatasetModel with_raises{tokenizer(), &raises, end_of_text(tokenizer())};
  expect_error(ErrorCode::invalid,
               {"train.jsonl:1: messages: the chat template fails on the first 5 of 5 messages",
                "roles must alternate"},
               [&] { read("train.jsonl", kTwoTurns, {}, with_raises); });
}

// As those of models that think: the generation prompt opens thoughts that the turns haven't.
constexpr std::string_view kOpensThoughts =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\nSee <|endoftext|>{% endif %}";

TEST_F(ChatLineTest, BeginsATurnWithTheTokenThatDiffersFromThePrompt) {
  const ChatTemplate opens = ChatTemplate::parse(kOpensThoughts, "opens");
  const DatasetModel with_opens{tokenizer(), &opens, end_of_text(tokenizer())};
  const auto learnt = [&](LossTokens loss) {
    const Dataset dataset = read("train.jsonl", kTwoTurns, {.loss_tokens = loss}, with_opens);
    EXPECT_EQ(dataset_warnings(dataset.report).size(), 1u);
    EXPECT_EQ(dataset.report.num_other_prompts, loss == LossTokens::completion ? 1 : 2);
    EXPECT_EQ(dataset.report.num_straddling, 0);
    return learnt_text(dataset.examples.at(0));
  };
  // The "See" of the content isn't taken for that of the prompt.
  EXPECT_EQ(learnt(LossTokens::completion), "See you<|im_end|>");
  EXPECT_EQ(learnt(LossTokens::assistant_turns), "Hello<|im_end|>|See you<|im_end|>");
}

TEST_F(ChatLineTest, NamesAMessageWhosePastIsWrittenOtherwise) {
  const ChatTemplate counts = ChatTemplate::parse(
      "{{ messages | length }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}",
      "counts");
  const DatasetModel with_counts{tokenizer(), &counts, end_of_text(tokenizer())};
  expect_error(ErrorCode::invalid,
               {"messages[4]: the chat template writes the messages before this one otherwise",
                R"(at byte 0 found "5<system>)", R"(expected "4<system>)"},
               [&] {
                 read("train.jsonl", kTwoTurns, {.loss_tokens = LossTokens::completion},
                      with_counts);
               });
}

// As Qwen3's: only the last turn shows that nothing was thought.
constexpr std::string_view kForgetsThoughts =
    "{% for m in messages %}<{{ m.role }}>"
    "{% if m.role == 'assistant' and loop.last %}(thought){% endif %}"
    "{{ m.content }}</s>\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

TEST_F(ChatLineTest, FindsEndsOfTurnsThatAreWrittenOtherwiseWhenTheyAreLast) {
  const ChatTemplate forgets = ChatTemplate::parse(kForgetsThoughts, "forgets");
  const DatasetModel with_forgets{tokenizer(), &forgets, end_of_text(tokenizer())};
  const Dataset dataset =
      read("train.jsonl", kTwoTurns, {.loss_tokens = LossTokens::assistant_turns}, with_forgets);
  EXPECT_EQ(learnt_text(dataset.examples.at(0)), "Hello</s>\n|(thought)See you</s>\n");
}

TEST_F(ChatLineTest, NamesATurnWhoseEndIsNotFound) {
  const ChatTemplate counts = ChatTemplate::parse(
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
      "{% if m.role == 'assistant' %}{{ messages | length }}{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}",
      "counts");
  const DatasetModel with_counts{tokenizer(), &counts, end_of_text(tokenizer())};
  expect_error(ErrorCode::invalid, {"messages[2]: the end of this turn can't be found"}, [&] {
    read("train.jsonl", kTwoTurns, {.loss_tokens = LossTokens::assistant_turns}, with_counts);
  });
}

TEST_F(ChatLineTest, NeedsAChatTemplate) {
  expect_error(ErrorCode::unsupported,
               {"train.jsonl:1: messages: the model has no chat template, and chats need one"},
               [&] { read("train.jsonl", kTwoTurns, {}, model_without_template()); });
}

TEST_F(ChatLineTest, KeepsTheClockOfTheTemplate) {
  const ChatTemplate dated = ChatTemplate::parse(
      "{{ strftime_now('%Y-%m-%d') }}{% for m in messages %}{{ m.content }}{% endfor %}", "dated");
  const DatasetModel with_dated{tokenizer(), &dated, end_of_text(tokenizer())};
  const Dataset dataset =
      read("train.jsonl", kTwoTurns, {.now = "2026-03-07T12:00:00"}, with_dated);
  EXPECT_THAT(tokenizer().decode(dataset.examples.at(0).tokens), testing::StartsWith("2026-03-07"));
  EXPECT_EQ(dataset.report.now, "2026-03-07T12:00:00");
  const Dataset today = read("train.jsonl", kTwoTurns, {}, with_dated);
  EXPECT_THAT(tokenizer().decode(today.examples.at(0).tokens),
              testing::StartsWith(today.report.now.substr(0, 10)));
}

}  // namespace
}  // namespace paceline
