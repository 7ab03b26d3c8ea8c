// Lines of text, and plain text files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/dataset/training_files.h"
#include "tests/expect_error.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace paceline {
namespace {

using testing::ElementsAre;

class TextTest : public DatasetTest {
 protected:
  std::vector<TokenId> with_end(std::string_view text) const {
    std::vector<TokenId> ids = tokenizer().encode(text);
    ids.push_back(*model().eos);
    return ids;
  }
};

TEST_F(TextTest, EndsEachLineOfTextOnce) {
  const std::vector<Example> examples =
      read_lines("{\"text\": \"A cat.\", \"source\": 1}\n\n{\"text\": \"Two cats.<|im_end|>\"}\n");
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].tokens, with_end("A cat."));
  EXPECT_EQ(examples[1].tokens, with_end("Two cats."));
  for (const Example& example : examples) {
    EXPECT_EQ(example.counts[0], 0);
    EXPECT_EQ(example.num_counted(), example.num_tokens() - 1);
  }
}

TEST_F(TextTest, BeginsAsThePostProcessorSays) {
  const Tokenizer small = Tokenizer::from_json(kSmallTokenizer, "t.json");
  const DatasetModel begins{small, nullptr, small.token_id("<x>")};
  const Dataset dataset = read("train.jsonl", R"({"text": "abc ab"})", {}, begins);
  // "<s>" "abc" "Ġ" "ab" "<x>"
  EXPECT_THAT(dataset.examples.at(0).tokens, ElementsAre(8, 5, 3, 4, 9));
  EXPECT_THAT(dataset.examples.at(0).counts, ElementsAre(0, 1, 1, 1, 1));
  const DatasetModel without_end{small, nullptr, std::nullopt};
  EXPECT_THAT(read("train.jsonl", R"({"text": "abc"})", {}, without_end).examples.at(0).tokens,
              ElementsAre(8, 5));
}

TEST_F(TextTest, MasksThePromptBehindABeginningToken) {
  const Tokenizer small = Tokenizer::from_json(kSmallTokenizer, "t.json");
  const DatasetModel begins{small, nullptr, small.token_id("<x>")};
  const Dataset dataset = read("train.jsonl", R"({"prompt": "abc", "completion": " ab"})",
                               {.loss_tokens = LossTokens::completion}, begins);
  EXPECT_THAT(dataset.examples.at(0).tokens, ElementsAre(8, 5, 3, 4, 9));
  EXPECT_THAT(dataset.examples.at(0).counts, ElementsAre(0, 0, 1, 1, 1));
}

TEST_F(TextTest, RefusesWhatHasNothingToLearn) {
  expect_error(ErrorCode::invalid, {R"(train.jsonl:1: text: found "", expected a text to learn)"},
               [&] { read_lines(R"({"text": ""})"); });
  expect_error(ErrorCode::invalid, {"train.jsonl:1: text: found 1, expected a string"},
               [&] { read_lines(R"({"text": 1})"); });
  expect_error(ErrorCode::invalid, {"train.jsonl:1: found no token to learn among 1"}, [&] {
    read("train.jsonl", R"({"text": "a"})", {}, {tokenizer(), &chat_template(), std::nullopt});
  });
}

TEST_F(TextTest, HasNoPromptToMask) {
  for (const LossTokens loss : {LossTokens::completion, LossTokens::assistant_turns}) {
    expect_error(ErrorCode::unsupported, {"train.jsonl:1: text: a text has no prompt"},
                 [&] { read_lines(R"({"text": "a"})", {.loss_tokens = loss}); });
    expect_error(ErrorCode::unsupported, {"train.txt: a plain text has no prompt"},
                 [&] { read("train.txt", "a", {.loss_tokens = loss}); });
  }
}

TEST_F(TextTest, CutsAPlainTextSoThatEachTokenIsPredictedOnce) {
  const std::string text = "The cat sat on the mat. The dog sat on the log.\n\nThe end of it.\n";
  const std::vector<TokenId> stream = with_end(text);
  for (int64_t length = 2; length <= static_cast<int64_t>(stream.size()) + 1; ++length) {
    SCOPED_TRACE(length);
    const Dataset dataset = read("train.txt", text, {.max_seq_length = length});
    std::vector<TokenId> predicted = {stream[0]};
    for (const Example& example : dataset.examples) {
      ASSERT_LE(example.num_tokens(), length);
      EXPECT_EQ(example.tokens[0], predicted.back());
      EXPECT_EQ(example.counts[0], 0);
      EXPECT_EQ(example.num_counted(), example.num_tokens() - 1);
      predicted.insert(predicted.end(), example.tokens.begin() + 1, example.tokens.end());
      const bool is_last = &example == &dataset.examples.back();
      EXPECT_TRUE(is_last || example.num_tokens() == length);
    }
    EXPECT_EQ(predicted, stream);
    EXPECT_EQ(dataset.report.num_truncated, 0);
    EXPECT_EQ(dataset.report.format, "plain text");
  }
}

TEST_F(TextTest, ExamplesOfAPlainTextMayBeginWithOneToken) {
  const std::string text = "The cat sat on the mat. The dog sat on the log.\n\nThe end of it.\n";
  const std::vector<TokenId> stream = with_end(text);
  for (int64_t length = 2; length <= static_cast<int64_t>(stream.size()) + 2; ++length) {
    SCOPED_TRACE(length);
    const Dataset dataset =
        read("train.txt", text, {.max_seq_length = length, .first_token = TokenId{3}});
    std::vector<TokenId> predicted;
    for (const Example& example : dataset.examples) {
      EXPECT_EQ(example.tokens[0], 3);
      EXPECT_EQ(example.num_counted(), example.num_tokens() - 1);
      predicted.insert(predicted.end(), example.tokens.begin() + 1, example.tokens.end());
    }
    EXPECT_EQ(predicted, stream);
  }
}

TEST_F(TextTest, ReadsAPlainTextWithoutItsMarkAndCarriageReturns) {
  const Dataset dataset = read("notes", "\xEF\xBB\xBFOne.\r\nTwo\r.\r\n");
  EXPECT_EQ(dataset.examples.at(0).tokens, with_end("One.\nTwo\r.\n"));
}

TEST_F(TextTest, NamesWhatIsWrongWithAPlainText) {
  expect_error(ErrorCode::invalid, {"a.txt: found no text"}, [&] { read("a.txt", ""); });
  expect_error(ErrorCode::invalid, {"a.txt: found no text"},
               [&] { read("a.txt", "\xEF\xBB\xBF"); });
  expect_error(ErrorCode::invalid, {"a.txt: found byte 0xFF at line 2, byte 3, expected UTF-8"},
               [&] { read("a.txt", "x\nab\xFF"); });
  expect_error(ErrorCode::invalid, {"found byte 0xFF at line 1, byte 1", "UTF-16"},
               [&] { read("a.txt", std::string_view("\xFF\xFEx\0", 4)); });
  expect_error(ErrorCode::invalid, {"a.txt", "10"},
               [&] { read("a.txt", "12345678901", {.max_text_bytes = 10}); });
  expect_error(ErrorCode::not_found, {"nothing.txt"},
               [&] { read_dataset(files_.directory() / "nothing.txt", model(), {}); });
}

}  // namespace
}  // namespace paceline
