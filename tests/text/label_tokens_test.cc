#include "text/label_tokens.h"

#include <gtest/gtest.h>

#include "tests/source_path.h"

namespace paceline {
namespace {

TEST(RunsIntoPrompt, WordsBehindWordsDo) {
  EXPECT_TRUE(runs_into_prompt("It was", "good"));
  EXPECT_TRUE(runs_into_prompt("He said:", "no"));
  EXPECT_TRUE(runs_into_prompt("(1 + 1) =", "2"));
  EXPECT_TRUE(runs_into_prompt("caf\u00e9", "\u00e9t\u00e9"));
}

TEST(RunsIntoPrompt, OtherLabelsAndPromptsDoNot) {
  EXPECT_FALSE(runs_into_prompt("It was", " good"));
  EXPECT_FALSE(runs_into_prompt("It was", "."));
  EXPECT_FALSE(runs_into_prompt("It was ", "good"));
  EXPECT_FALSE(runs_into_prompt("Answer:\n", "A"));
  EXPECT_FALSE(runs_into_prompt("It was (", "good"));
  EXPECT_FALSE(runs_into_prompt("a \"", "good"));
  EXPECT_FALSE(runs_into_prompt("", "good"));
  EXPECT_FALSE(runs_into_prompt("It was", ""));
}

// A tokenizer of bytes and a few words, whose ids show a label's spelling.
class LabelTokensTest : public testing::Test {
 protected:
  std::vector<TokenId> joint(const std::string& prompt, const std::string& text) {
    std::vector<TokenId> whole = bundled_.encode(prompt + text);
    const std::vector<TokenId> before = bundled_.encode(prompt);
    whole.erase(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(before.size()));
    return whole;
  }

  Tokenizer bundled_ = Tokenizer::load(source_path("models/paceline-10m"));
};

TEST_F(LabelTokensTest, AWordIsTheNextWord) {
  for (const std::string prompt : {"The film was a bore. It was", "What a lovely morning", "So:"}) {
    for (const std::string label : {"good", "bad", "night"}) {
      EXPECT_EQ(label_tokens(bundled_, prompt, label), joint(prompt, " " + label)) << prompt;
      EXPECT_EQ(label_tokens(bundled_, prompt, " " + label), joint(prompt, " " + label)) << prompt;
    }
  }
}

TEST_F(LabelTokensTest, OtherLabelsAreAsWritten) {
  EXPECT_EQ(label_tokens(bundled_, "It was (", "good"), bundled_.encode("good"));
  EXPECT_EQ(label_tokens(bundled_, "It was ", "good"), bundled_.encode("good"));
  EXPECT_EQ(label_tokens(bundled_, "", "good"), bundled_.encode("good"));
  EXPECT_EQ(label_tokens(bundled_, "It was good", "."), bundled_.encode("."));
  EXPECT_TRUE(label_tokens(bundled_, "It was", "").empty());
}

// Where words aren't separated, a space would be a token of its own.
TEST_F(LabelTokensTest, ASpaceThatCostsATokenIsLeftOut) {
  const std::string prompt = "\u8fd9\u90e8\u7535\u5f71", label = "\u597d";
  ASSERT_GT(bundled_.encode(" " + label).size(), bundled_.encode(label).size());
  EXPECT_EQ(label_tokens(bundled_, prompt, label), bundled_.encode(label));
}

// A long last word doesn't cause a whole prompt to be encoded again.
TEST_F(LabelTokensTest, ALongWordIsLeftAside) {
  const std::string prompt(100'000, 'x');
  EXPECT_EQ(label_tokens(bundled_, prompt, "good"), bundled_.encode(" good"));
}

// SentencePiece tokenizers begin every text with a space, which a label after a word must not get.
TEST(LabelTokens, ASpaceInFrontOfEveryTextIsNotDoubled) {
  constexpr std::string_view kJson = R"({"version": "1.0", "added_tokens": [],
      "normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
      "pre_tokenizer": null, "decoder": null, "post_processor": null,
      "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": false, "merges": ["▁ a"],
                "vocab": {"<unk>": 0, "▁": 1, "a": 2, "b": 3, "(": 4, "▁a": 5}}})";
  const Tokenizer tokenizer = Tokenizer::from_json(kJson, "tokenizer.json");
  EXPECT_EQ(label_tokens(tokenizer, "b", "a"), (std::vector<TokenId>{5}));
  EXPECT_EQ(label_tokens(tokenizer, "b", " a"), (std::vector<TokenId>{5}));
  EXPECT_EQ(label_tokens(tokenizer, "(", "a"), (std::vector<TokenId>{2}));
}

}  // namespace
}  // namespace paceline
