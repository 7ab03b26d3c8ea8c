#include "tokenizer/bpe_merge.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/test_scale.h"
#include "tests/tokenizer/random_text.h"
#include "tokenizer/vocabulary.h"

namespace paceline {
namespace {

// A vocabulary over a small alphabet in which several pairs may make the same token, and a later
// merge may have the lower rank.
struct RandomModel {
  explicit RandomModel(RandomText& random) : vocabulary(kMaxTokens), merges(kMaxTokens) {
    const size_t letters = 1 + random.below(3);
    std::vector<std::string> tokens;
    for (size_t i = 0; i < letters; ++i) add(std::string(1, static_cast<char>('a' + i)), tokens);
    std::vector<uint32_t> ranks(20 + random.below(60));
    for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<uint32_t>(i);
    for (size_t i = ranks.size(); i > 1; --i) std::swap(ranks[i - 1], ranks[random.below(i)]);
    for (const uint32_t rank : ranks) {
      const std::string left = tokens[random.below(tokens.size())];
      const std::string right = tokens[random.below(tokens.size())];
      if (left.size() + right.size() > 12) continue;
      add(left + right, tokens);
      const Merge merge{rank, *vocabulary.find(left + right)};
      merges.set(*vocabulary.find(left), *vocabulary.find(right), merge);
    }
    num_letters = letters;
  }

  void add(const std::string& text, std::vector<std::string>& tokens) {
    if (vocabulary.find(text)) return;
    ASSERT_EQ(vocabulary.insert(text, static_cast<TokenId>(tokens.size())),
              Vocabulary::Inserted::yes);
    tokens.push_back(text);
  }

  static constexpr size_t kMaxTokens = 200;
  Vocabulary vocabulary;
  MergeTable merges;
  size_t num_letters = 0;
};

// The definition: repeatedly merges the leftmost pair of the lowest rank.
std::vector<TokenId> naive_merge(const MergeTable& merges, std::vector<TokenId> tokens) {
  for (;;) {
    Merge best;
    size_t best_at = 0;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const Merge merge = merges.find(tokens[i], tokens[i + 1]);
      if (merge.rank < best.rank) {
        best = merge;
        best_at = i;
      }
    }
    if (best.rank == Merge::kNone) return tokens;
    tokens[best_at] = best.token;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

TEST(BpeMerger, BothWaysEqualTheDefinition) {
  RandomText random(1);
  size_t merged = 0;
  const int num_rounds = scaled(300, 30'000);
  for (int round = 0; round < num_rounds; ++round) {
    const RandomModel model(random);
    BpeMerger merger(model.merges);
    for (int piece = 0; piece < 10; ++piece) {
      std::vector<TokenId> symbols(random.below(120));
      for (TokenId& symbol : symbols)
        symbol = static_cast<TokenId>(random.below(model.num_letters));
      const auto expected = naive_merge(model.merges, symbols);
      std::vector<TokenId> by_short, by_long, by_either;
      merger.merge_short(symbols, by_short);
      merger.merge_long(symbols, by_long);
      merger.merge(symbols, by_either);
      ASSERT_EQ(by_short, expected);
      ASSERT_EQ(by_long, expected);
      ASSERT_EQ(by_either, expected);
      merged += symbols.size() - expected.size();
    }
  }
  EXPECT_GT(merged, 10'000u);  // the models do merge
}

TEST(BpeMerger, AppendsToWhatIsThere) {
  MergeTable merges(1);
  merges.set(0, 1, {0, 2});
  BpeMerger merger(merges);
  std::vector<TokenId> out = {7};
  merger.merge(std::vector<TokenId>{0, 1, 0}, out);
  merger.merge({}, out);
  EXPECT_EQ(out, (std::vector<TokenId>{7, 2, 0}));
}

TEST(MergeTable, ALaterMergeOfTheSamePairWins) {
  MergeTable merges(2);
  merges.set(3, 4, {0, 9});
  merges.set(3, 4, {1, 8});
  EXPECT_EQ(merges.find(3, 4).rank, 1u);
  EXPECT_EQ(merges.find(3, 4).token, 8);
  EXPECT_EQ(merges.find(4, 3).rank, Merge::kNone);
}

// Positions are pushed out of order.
TEST(RankQueue, GivesTheLowestRankAndTheLeftmostPosition) {
  RandomText random(2);
  const int num_rounds = scaled(200, 20'000);
  for (int round = 0; round < num_rounds; ++round) {
    RankQueue queue;
    std::multimap<uint64_t, bool> expected;
    for (int step = 0; step < 300; ++step) {
      if (expected.empty() || random.below(5) < 3) {
        const auto rank = static_cast<uint32_t>(random.below(4));
        const auto position = static_cast<uint32_t>(random.below(2) == 0 ? static_cast<size_t>(step)
                                                                         : random.below(1000));
        queue.push(rank, position);
        expected.emplace((uint64_t{rank} << 32) | position, true);
      } else {
        const RankQueue::Item item = queue.pop();
        ASSERT_EQ((uint64_t{item.rank} << 32) | item.position, expected.begin()->first);
        expected.erase(expected.begin());
      }
      ASSERT_EQ(queue.empty(), expected.empty());
    }
  }
}

}  // namespace
}  // namespace paceline
