#include "protocol/token_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

using testing::ElementsAre;

constexpr const char* kNamesModel = PACELINE_SOURCE_DIR "/models/paceline-10m";

TEST(TokenNames, SayWhatTokensStandFor) {
  const Tokenizer tokenizer = Tokenizer::load(kNamesModel);
  const TokenNames names(&tokenizer);
  const int32_t sea = tokenizer.encode(" sea").at(0);
  EXPECT_EQ(names.named(sea).bytes, " sea");
  EXPECT_EQ(names.bytes_in_response(sea, SpecialTokens::hidden), 4u);
  const auto special = static_cast<int32_t>(*tokenizer.token_id("<|im_end|>"));
  EXPECT_EQ(names.named(special).bytes, "<|im_end|>");
  EXPECT_EQ(names.bytes_in_response(special, SpecialTokens::hidden), 0u);
  EXPECT_EQ(names.bytes_in_response(special, SpecialTokens::shown), 10u);
  const auto beyond = static_cast<int32_t>(tokenizer.vocab_size());
  EXPECT_EQ(names.named(beyond).bytes, std::nullopt);
  EXPECT_EQ(names.bytes_in_response(beyond, SpecialTokens::hidden), 0u);
}

TEST(TokenNames, TheTokensOfAPromptShareItsBytes) {
  const Tokenizer tokenizer = Tokenizer::load(kNamesModel);
  const TokenNames names(&tokenizer);
  const std::string text = "The sea \U0001F600<|im_end|> x";  // one character of several tokens
  const auto sizes = names.bytes_in_prompt(text, true);
  EXPECT_EQ(sizes.size(), tokenizer.encode(text, {.add_special = true}).size());
  size_t total = 0;
  for (const size_t size : sizes) total += size;
  EXPECT_EQ(total, text.size());
  EXPECT_THAT(names.bytes_in_prompt("The sea", false), ElementsAre(3, 4));
}

TEST(TokenNames, WithoutATokenizerThereAreIdsOnly) {
  const TokenNames names(nullptr);
  EXPECT_EQ(names.named(5).id, 5);
  EXPECT_EQ(names.named(5).bytes, std::nullopt);
  EXPECT_EQ(names.bytes_in_response(5, SpecialTokens::hidden), 0u);
  EXPECT_TRUE(names.bytes_in_prompt("x", true).empty());
}

}  // namespace
}  // namespace paceline
