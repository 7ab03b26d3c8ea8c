// ShareGPT's conversations and Alpaca's instructions are read as the chats that they are.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/dataset/training_files.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

class OtherRowsTest : public DatasetTest {
 protected:
  Example read_one(std::string_view line, LossTokens loss = LossTokens::all,
                   const DatasetModel& model = DatasetTest::model()) const {
    return read("train.jsonl", line, {.loss_tokens = loss}, model).examples.at(0);
  }
  // `line` is the chat that `messages` are.
  void expect_same(std::string_view line, std::string_view messages) const {
    SCOPED_TRACE(line);
    const std::string chat = fmt::format(R"({{"messages": {}}})", messages);
    for (const LossTokens loss :
         {LossTokens::all, LossTokens::completion, LossTokens::assistant_turns}) {
      const Example read = read_one(line, loss), expected = read_one(chat, loss);
      EXPECT_EQ(read.tokens, expected.tokens);
      EXPECT_EQ(read.counts, expected.counts);
    }
  }
  void expect_fault(std::string_view line, const std::string& part) const {
    SCOPED_TRACE(line);
    expect_error(ErrorCode::invalid, {"train.jsonl:1: ", part},
                 [&] { read_one(line, LossTokens::completion); });
  }
};

TEST_F(OtherRowsTest, ReadShareGptsTurns) {
  expect_same(
      R"({"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"},)"
      R"( {"from": "human", "value": "Bye"}, {"from": "gpt", "value": "See you"}], "id": "x_0"})",
      R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}, {"role":)"
      R"( "user", "content": "Bye"}, {"role": "assistant", "content": "See you"}])");
  const std::string_view with_system =
      R"([{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"}, {"role":)"
      R"( "assistant", "content": "Hello"}])";
  expect_same(R"({"conversations": [{"from": "system", "value": "Be short."}, {"from": "user",)"
              R"( "value": "Hi"}, {"from": "assistant", "value": "Hello"}]})",
              with_system);
  expect_same(R"({"system": "Be short.", "conversations": [{"from": "human", "value": "Hi"},)"
              R"( {"from": "chatgpt", "value": "Hello"}], "tools": ""})",
              with_system);
  // The key of one, the messages of the other.
  expect_same(R"({"conversations": [{"role": "system", "content": "Be short."}, {"role": "user",)"
              R"( "content": "Hi"}, {"role": "assistant", "content": "Hello"}]})",
              with_system);
  expect_same(
      R"({"messages": [{"from": "system", "value": "Be short."}, {"from": "human", "value":)"
      R"( "Hi"}, {"from": "gpt", "value": "Hello"}]})",
      with_system);
  EXPECT_EQ(read("a.jsonl", R"({"conversations": [{"from": "gpt", "value": "a"}]})").report.format,
            "chats of ShareGPT");
}

TEST_F(OtherRowsTest, ReadShareGptsCalls) {
  const std::string_view tools = R"([{"name": "weather", "parameters": {"type": "object"}}])";
  const std::string_view tools_as_text =
      R"("[{\"name\": \"weather\", \"parameters\": {\"type\": \"object\"}}]")";
  const std::string chat = fmt::format(
      R"({{"messages": [{{"role": "user", "content": "Oslo?"}}, {{"role": "assistant", "tool_calls":)"
      R"( [{{"name": "weather", "arguments": {{"city": "Oslo"}}}}]}}, {{"role": "tool", "content": "7"}},)"
      R"( {{"role": "assistant", "content": "7 degrees."}}], "tools": {}}})",
      tools);
  const auto sharegpt = [&](std::string_view value) {
    return fmt::format(
        R"({{"conversations": [{{"from": "human", "value": "Oslo?"}}, {{"from": "function_call",)"
        R"( "value": "{}"}}, {{"from": "observation", "value": "7"}}, {{"from": "gpt", "value":)"
        R"( "7 degrees."}}], "tools": {}}})",
        value, tools_as_text);
  };
  const Example expected = read_one(chat, LossTokens::assistant_turns);
  for (const std::string_view value :
       {R"({\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}})",
        R"([{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}])"}) {
    const Example read = read_one(sharegpt(value), LossTokens::assistant_turns);
    EXPECT_EQ(read.tokens, expected.tokens);
    EXPECT_EQ(read.counts, expected.counts);
  }
  expect_fault(sharegpt("weather()"), "conversations[1].value: ");
  expect_fault(sharegpt("[]"), "conversations[1].value: found no call");
}

TEST_F(OtherRowsTest, NameTheTurnOfShareGptAtFault) {
  expect_fault(R"({"conversations": [{"from": "humman", "value": "Hi"}]})",
               R"(conversations[0].from: found "humman", expected system, human, gpt)");
  expect_fault(R"({"conversations": [{"from": "human"}]})", "conversations[0].value: missing");
  expect_fault(R"({"conversations": [{"from": "human", "value": 3}]})",
               "conversations[0].value: found 3, expected a string");
  expect_fault(R"({"conversations": [{"from": "gpt", "value": "a"}, {"role": "user"}]})",
               "conversations[1].from: missing");
  expect_fault(R"({"conversations": []})", "conversations: found no message");
  expect_fault(R"({"conversations": "Hi"})", R"(conversations: found "Hi", expected an array)");
  expect_fault(R"({"conversations": [{"from": "human", "value": "Hi"}]})",
               R"(conversations[0].from: found "human", expected gpt: with the prompt masked)");
}

TEST_F(OtherRowsTest, ReadAlpacasInstructions) {
  expect_same(
      R"({"instruction": "Say hi.", "input": "", "output": "Hi"})",
      R"([{"role": "user", "content": "Say hi."}, {"role": "assistant", "content": "Hi"}])");
  expect_same(
      R"({"instruction": "Say hi.", "output": "Hi", "input": null})",
      R"([{"role": "user", "content": "Say hi."}, {"role": "assistant", "content": "Hi"}])");
  expect_same(R"({"instruction": "Translate.", "input": "cat", "output": "Katze"})",
              R"([{"role": "user", "content": "Translate.\n\ncat"}, {"role": "assistant",)"
              R"( "content": "Katze"}])");
  expect_same(
      R"({"instruction": "And now?", "output": "Bye", "system": "Be short.", "history": [["Hi",)"
      R"( "Hello"]]})",
      R"([{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"}, {"role":)"
      R"( "assistant", "content": "Hello"}, {"role": "user", "content": "And now?"}, {"role":)"
      R"( "assistant", "content": "Bye"}])");
  expect_fault(R"({"instruction": "a", "output": ""})", "output: found \"\", expected a text");
  expect_fault(R"({"instruction": 1, "output": "b"})", "instruction: found 1, expected a string");
  expect_fault(R"({"instruction": "a", "output": "b", "history": [["c"]]})",
               "history[0]: found an array, expected a question and its answer");
}

TEST_F(OtherRowsTest, ReadInstructionsWithAlpacasPromptWithoutATemplate) {
  const DatasetModel plain = model_without_template();
  const Example example =
      read_one(R"({"instruction": "Translate.", "input": "cat", "output": "Katze"})",
               LossTokens::completion, plain);
  EXPECT_EQ(tokenizer().decode(example.tokens),
            "Below is an instruction that describes a task, paired with an input that provides "
            "further context. Write a response that appropriately completes the request.\n\n"
            "### Instruction:\nTranslate.\n\n### Input:\ncat\n\n### Response:\nKatze<|im_end|>");
  EXPECT_EQ(learnt_text(example), "Katze<|im_end|>");
  EXPECT_EQ(
      tokenizer().decode(
          read_one(R"({"instruction": "Say hi.", "output": "Hi"})", LossTokens::all, plain).tokens),
      "Below is an instruction that describes a task. Write a response that appropriately "
      "completes the request.\n\n### Instruction:\nSay hi.\n\n### Response:\nHi<|im_end|>");
  expect_error(ErrorCode::unsupported, {"train.jsonl:1: the model has no chat template"}, [&] {
    read_one(R"({"instruction": "a", "output": "b", "system": "c"})", LossTokens::all, plain);
  });
}

}  // namespace
}  // namespace paceline
