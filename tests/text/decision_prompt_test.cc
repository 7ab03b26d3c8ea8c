// The text of questions and the labels of their answers; what models see is tested in tests/llm.
#include "text/decision_prompt.h"

#include <gtest/gtest.h>

#include <set>

namespace paceline {
namespace {

DecisionQuestion choice(std::vector<QuestionOption> options) {
  return {
      .kind = QuestionKind::choice, .instructions = "Which team?", .options = std::move(options)};
}

TEST(QuestionText, PredicatesAreAnsweredWithYesOrNo) {
  EXPECT_EQ(question_text({.instructions = "Is it urgent?"}), "Is it urgent?\nAnswer Yes or No.");
  EXPECT_EQ(question_text({.instructions = "Is it urgent?",
                           .options = {{.value = true, .description = "today"}, {.value = false}}}),
            "Is it urgent?\nYes: today\nAnswer Yes or No.");
  EXPECT_EQ(question_text({.options = {{.value = true, .description = "It is urgent."},
                                       {.value = false, .description = "It can wait."}}}),
            "Yes: It is urgent.\nNo: It can wait.\nAnswer Yes or No.");
  EXPECT_EQ(option_labels({}), (std::vector<std::string>{"Yes", "No"}));
}

TEST(QuestionText, ChoicesHaveLetters) {
  const DecisionQuestion question =
      choice({{.value = "billing", .description = "invoices"}, {.value = "sales"}});
  EXPECT_EQ(question_text(question),
            "Which team?\nA: billing (invoices)\nB: sales\nAnswer with the letter.");
  EXPECT_EQ(option_labels(question), (std::vector<std::string>{"A", "B"}));
}

TEST(QuestionText, TextsBesideBooleansAreQuoted) {
  EXPECT_EQ(question_text(choice({{.value = "true"}, {.value = true}, {.value = false}})),
            "Which team?\nA: \"true\"\nB: true\nC: false\nAnswer with the letter.");
}

TEST(QuestionText, MoreChoicesThanLettersHaveNumbers) {
  for (const size_t count : {27u, 99u, 100u, 255u}) {
    DecisionQuestion question = choice({});
    for (size_t i = 0; i < count; ++i) question.options.push_back({.value = std::to_string(i)});
    const auto labels = option_labels(question);
    EXPECT_EQ(std::set<std::string>(labels.begin(), labels.end()).size(), count);
    EXPECT_EQ(labels.front(), count < 100 ? "01" : "001");
    EXPECT_EQ(labels.back(), std::to_string(count));
    const std::string text = question_text(question);
    EXPECT_NE(text.find("\n" + labels[1] + ": 1\n"), std::string::npos);
    EXPECT_TRUE(text.ends_with("\nAnswer with the number."));
  }
}

TEST(QuestionText, ScoresCountFromZero) {
  const DecisionQuestion question{
      .kind = QuestionKind::score,
      .options = {{.value = "calm"}, {.value = "angry", .description = "shouts"}}};
  EXPECT_EQ(question_text(question),
            "Which level fits best?\n0: calm\n1: angry (shouts)\nAnswer with the number.");
  EXPECT_EQ(option_labels(question), (std::vector<std::string>{"0", "1"}));
}

}  // namespace
}  // namespace paceline
