// Labels of several tokens: the tree, sums over its rows, and labels that can't be told apart.
#include "text/label_trie.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace paceline {
namespace {

using Labels = std::vector<std::vector<TokenId>>;

TEST(LabelTrie, LabelsOfOneTokenAreOneRow) {
  const LabelTrie trie(Labels{{7}, {3}, {9}});
  ASSERT_EQ(trie.nodes().size(), 1u);
  EXPECT_TRUE(trie.nodes()[0].path.empty());
  EXPECT_EQ(trie.nodes()[0].next, (std::vector<TokenId>{7, 3, 9}));
  const LabelRow row{.logprobs = {-1, -2, -3}, .likeliest = 3};
  EXPECT_EQ(trie.logprobs(std::span(&row, 1)), (std::vector<float>{-1, -2, -3}));
  EXPECT_TRUE(trie.likeliest_is_label(std::span(&row, 1)));
  const LabelRow other{.logprobs = {-1, -2, -3}, .likeliest = 4};
  EXPECT_FALSE(trie.likeliest_is_label(std::span(&other, 1)));
}

TEST(LabelTrie, SharedBeginningsAreOneNode) {
  const LabelTrie trie(Labels{{1, 5}, {1, 6, 8}, {2}, {1, 6, 9}});
  ASSERT_EQ(trie.nodes().size(), 3u);
  EXPECT_EQ(trie.nodes()[0].next, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(trie.nodes()[1].path, (std::vector<TokenId>{1}));
  EXPECT_EQ(trie.nodes()[1].next, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ(trie.nodes()[2].path, (std::vector<TokenId>{1, 6}));
  EXPECT_EQ(trie.nodes()[2].next, (std::vector<TokenId>{8, 9}));
  std::vector<LabelRow> rows = {{.logprobs = {-1, -2}, .likeliest = 1},
                                {.logprobs = {-4, -8}, .likeliest = 6},
                                {.logprobs = {-16, -32}, .likeliest = 8}};
  EXPECT_EQ(trie.logprobs(rows), (std::vector<float>{-5, -25, -2, -41}));
  EXPECT_TRUE(trie.likeliest_is_label(rows));
  rows[2].likeliest = 7;
  EXPECT_FALSE(trie.likeliest_is_label(rows));
  rows[0].likeliest = 2;
  EXPECT_TRUE(trie.likeliest_is_label(rows));
}

TEST(LabelTrie, LabelsThatBeginWithOthersAreRefused) {
  for (const Labels& labels : {Labels{{1, 2}, {3}, {1}}, Labels{{3}, {1, 2}, {1, 2}}}) {
    expect_error(ErrorCode::unsupported, {"labels", "and", "tell"},
                 [&] { LabelTrie trie(labels); });
  }
  expect_error(ErrorCode::unsupported, {"no token for label 1"}, [] {
    LabelTrie trie(Labels{{1}, {}});
  });
}

}  // namespace
}  // namespace paceline
