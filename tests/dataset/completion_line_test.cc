// Prompts and completions, as strings and as lists of messages.
#include <gtest/gtest.h>

#include "tests/dataset/training_files.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

constexpr std::string_view kTexts = R"({"prompt": "One and one is", "completion": " two."})";
constexpr std::string_view kMessages =
    R"({"prompt": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"},)"
    R"( {"role": "user", "content": "Bye"}], "completion": [{"role": "assistant", "content":)"
    R"( "See you"}, {"role": "user", "content": "Now?"}, {"role": "assistant", "content": "Yes"}]})";

class CompletionLineTest : public DatasetTest {
 protected:
  Example read_one(std::string_view line, LossTokens loss,
                   const DatasetModel& model = DatasetTest::model()) const {
    return read("train.jsonl", line, {.loss_tokens = loss}, model).examples.at(0);
  }
  std::string text_of(const Example& example) const { return tokenizer().decode(example.tokens); }

  void expect_fault(std::string_view line, const std::string& part,
                    LossTokens loss = LossTokens::all) const {
    SCOPED_TRACE(line);
    expect_error(ErrorCode::invalid, {"train.jsonl:1: ", part},
                 [&] { read_lines(line, {.loss_tokens = loss}); });
  }
};

TEST_F(CompletionLineTest, RendersStringsAsTwoTurns) {
  const std::string whole =
      "<|im_start|>user\nOne and one is<|im_end|>\n<|im_start|>assistant\n two.<|im_end|>\n";
  const Example all = read_one(kTexts, LossTokens::all);
  EXPECT_EQ(all.tokens, tokenizer().encode(whole));
  EXPECT_EQ(all.num_counted(), all.num_tokens() - 1);
  for (const LossTokens loss : {LossTokens::completion, LossTokens::assistant_turns}) {
    const Example masked = read_one(kTexts, loss);
    EXPECT_EQ(masked.tokens, all.tokens);
    EXPECT_EQ(learnt_text(masked), " two.<|im_end|>\n");
  }
}

TEST_F(CompletionLineTest, ConcatenatesStringsWithoutATemplate) {
  const DatasetModel plain = model_without_template();
  const Example all = read_one(kTexts, LossTokens::all, plain);
  std::vector<TokenId> ids = tokenizer().encode("One and one is two.");
  ids.push_back(*plain.eos);
  EXPECT_EQ(all.tokens, ids);
  EXPECT_EQ(all.num_counted(), all.num_tokens() - 1);
  const Example masked = read_one(kTexts, LossTokens::completion, plain);
  EXPECT_EQ(masked.tokens, ids);
  EXPECT_EQ(learnt_text(masked), " two.<|im_end|>");
}

TEST_F(CompletionLineTest, DoesNotLearnATokenAcrossTheBorder) {
  const std::string_view split_word = R"({"prompt": "One and one is t", "completion": "wo."})";
  const std::vector<TokenId> ids = tokenizer().encode("One and one is two.");
  ASSERT_EQ(tokenizer().token_bytes(ids.at(4)), " two");
  const Dataset dataset = read("train.jsonl", split_word, {.loss_tokens = LossTokens::completion},
                               model_without_template());
  EXPECT_EQ(learnt_text(dataset.examples.at(0)), ".<|im_end|>");
  EXPECT_EQ(dataset.report.num_straddling, 1);
  EXPECT_EQ(dataset_warnings(dataset.report).size(), 1u);
}

TEST_F(CompletionLineTest, RendersListsAsOneChat) {
  const Example all = read_one(kMessages, LossTokens::all);
  EXPECT_EQ(text_of(all),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n"
            "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\nSee you<|im_end|>\n"
            "<|im_start|>user\nNow?<|im_end|>\n<|im_start|>assistant\nYes<|im_end|>\n");
  EXPECT_EQ(learnt_text(read_one(kMessages, LossTokens::completion)),
            "See you<|im_end|>\n<|im_start|>user\nNow?<|im_end|>\n<|im_start|>assistant\n"
            "Yes<|im_end|>\n");
  EXPECT_EQ(learnt_text(read_one(kMessages, LossTokens::assistant_turns)),
            "See you<|im_end|>\n|Yes<|im_end|>\n");
}

TEST_F(CompletionLineTest, NamesTheFieldAtFault) {
  expect_fault(R"({"prompt": 1, "completion": "a"})",
               "prompt: found 1, expected a string or a list of messages");
  expect_fault(R"({"prompt": "a", "completion": null})",
               "completion: found null, expected a string, as the prompt is");
  expect_fault(R"({"prompt": "a", "completion": []})",
               "completion: found an array, expected a string, as the prompt is");
  expect_fault(R"({"prompt": [], "completion": "a"})",
               R"(completion: found "a", expected a list of messages, as the prompt is)");
  expect_fault(R"({"prompt": "a", "completion": ""})",
               R"(completion: found "", expected a text to learn)");
  expect_fault(R"({"prompt": [{"role": "user", "content": "a"}], "completion": []})",
               "completion: found no message, expected at least one");
  expect_fault(R"({"prompt": [{"role": "user"}], "completion": []})", "prompt[0]: no content");
  expect_fault(R"({"prompt": [], "completion": [{"role": "user", "content": "a"}]})",
               R"(completion[0].role: found "user", expected "assistant")", LossTokens::completion);
}

TEST_F(CompletionLineTest, NeedsAChatTemplateForLists) {
  expect_error(ErrorCode::unsupported, {"train.jsonl:1: ", "no chat template"},
               [&] { read_one(kMessages, LossTokens::all, model_without_template()); });
}

}  // namespace
}  // namespace paceline
