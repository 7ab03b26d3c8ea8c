#include "text/infill_prompt.h"

#include <gmock/gmock.h>

namespace paceline {
namespace {

using testing::ElementsAre;

// Characters "a", "b" and "\n" are 0 to 2; the tokens of `names` follow.
Tokenizer tokenizer_with(const std::vector<std::string>& names) {
  std::string added;
  int id = 3;
  for (const std::string& name : names) {
    if (!added.empty()) added += ",";
    added += R"({"id":)" + std::to_string(id++) + R"(,"content":")" + name +
             R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)" +
             R"("special":true})";
  }
  return Tokenizer::from_json(
      R"({"version":"1.0","added_tokens":[)" + added +
          R"(],"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,)"
          R"("trim_offsets":true,"use_regex":true},"post_processor":null,)"
          R"("decoder":{"type":"ByteLevel"},"model":{"type":"BPE",)"
          R"("vocab":{"a":0,"b":1,"Ċ":2},"merges":[]}})",
      "test");
}

TEST(InfillPrompt, PutsEachPartBehindItsToken) {
  const Tokenizer tokenizer =
      tokenizer_with({"<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>"});
  const auto tokens = find_infill_tokens(tokenizer);
  ASSERT_TRUE(tokens);
  EXPECT_FALSE(tokens->repository);
  EXPECT_THAT(tokens->ends, ElementsAre(6));
  const InfillPrompt prompt{.prefix = "ab", .suffix = "b", .beginning = "a", .files = {}};
  EXPECT_THAT(encode_infill(tokenizer, *tokens, prompt), ElementsAre(3, 0, 1, 5, 1, 4, 0));
}

TEST(InfillPrompt, PutsFilesFirst) {
  const Tokenizer plain = tokenizer_with({"<fim_prefix>", "<fim_middle>", "<fim_suffix>"});
  InfillPrompt prompt{.prefix = "a", .suffix = "", .beginning = "", .files = {{"b", "ab"}}};
  EXPECT_THAT(encode_infill(plain, *find_infill_tokens(plain), prompt),
              ElementsAre(0, 1, 3, 0, 5, 4));
  const Tokenizer named = tokenizer_with(
      {"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|repo_name|>", "<|file_sep|>"});
  const auto tokens = find_infill_tokens(named);
  EXPECT_THAT(tokens->ends, ElementsAre(6, 7));
  const std::vector<TokenId> ids = encode_infill(named, *tokens, prompt);
  EXPECT_EQ(ids.front(), 6);
  // This vocabulary has only the line's end and an "a" of "myproject" and "filename".
  std::vector<TokenId> specials;
  for (const TokenId id : ids) {
    if (id > 2) specials.push_back(id);
  }
  EXPECT_THAT(specials, ElementsAre(6, 7, 7, 3, 5, 4));
}

TEST(InfillPrompt, LeavesSpecialTokensInTheTextsAsText) {
  const Tokenizer tokenizer = tokenizer_with({"<fim_prefix>", "<fim_middle>", "<fim_suffix>"});
  const InfillPrompt prompt{
      .prefix = "a<fim_middle>", .suffix = "<fim_prefix>b", .beginning = "", .files = {}};
  const std::vector<TokenId> ids = encode_infill(tokenizer, *find_infill_tokens(tokenizer), prompt);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 3), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 4), 1);
}

TEST(InfillPrompt, NeedsAllThreeTokens) {
  EXPECT_FALSE(find_infill_tokens(tokenizer_with({"<fim_prefix>", "<fim_suffix>"})));
  EXPECT_FALSE(
      find_infill_tokens(tokenizer_with({"<fim_prefix>", "<|fim_suffix|>", "<fim_middle>"})));
}

}  // namespace
}  // namespace paceline
