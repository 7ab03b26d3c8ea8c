#include "tokenizer/piece_merges.h"

#include <gtest/gtest.h>

#include <string>

namespace paceline {
namespace {

using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

TEST(PieceMerges, TheBestScoreComesFirstThenTheLongestLeftPart) {
  const std::vector<ScoredPiece> pieces = {{"a", -9},  {"b", -9},   {"ab", -2},
                                           {"ba", -1}, {"aba", -3}, {"\u00e9", -9}};
  EXPECT_EQ(merges_of_pieces(pieces), (Pairs{{"b", "a"}, {"a", "b"}, {"ab", "a"}, {"a", "ba"}}));
}

TEST(PieceMerges, PiecesAreCutBetweenCodePoints) {
  const std::vector<ScoredPiece> pieces = {{"\u00e9", 0}, {"\u00e9\u00e9", 0}, {"\xc3", 0}};
  EXPECT_EQ(merges_of_pieces(pieces), (Pairs{{"\u00e9", "\u00e9"}}));
}

TEST(PieceMerges, OfEqualTextsTheFirstCountsAndLongOnesAreNoPieces) {
  const std::string longest(kMaxPieceBytes + 1, 'a');
  const std::string shorter = longest.substr(1);
  const std::vector<ScoredPiece> pieces = {
      {"a", 0}, {"aa", -5}, {"aa", 9}, {longest, 0}, {shorter, 0}};
  EXPECT_EQ(merges_of_pieces(pieces), (Pairs{{"a", "a"}}));
  EXPECT_TRUE(merges_of_pieces({}).empty());
}

}  // namespace
}  // namespace paceline
