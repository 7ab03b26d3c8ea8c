#include "tokenizer/word_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/test_scale.h"
#include "tests/tokenizer/random_text.h"
#include "tokenizer/word_cache_pool.h"

namespace paceline {
namespace {

using Ids = std::vector<TokenId>;

TEST(WordCache, HoldsWhatWasPutLast) {
  RandomText random(5);
  WordCache cache;
  std::map<std::string, Ids> expected;
  size_t hits = 0;
  size_t misses = 0;
  const int num_steps = scaled(200'000, 20'000'000);
  for (int step = 0; step < num_steps; ++step) {
    // More words than there is room for, many of them alike up to zeros at the end.
    std::string word = std::to_string(random.below(WordCache::kNumEntries / 4));
    word.append(random.below(3), '\0');
    word.resize(std::min(word.size() + 8 * random.below(4), WordCache::kMaxWordBytes), 'x');
    const WordCache::Key key = WordCache::key_of(word);
    Ids found = {-7};
    if (cache.append(key, found)) {
      Ids tokens = expected.at(word);
      tokens.insert(tokens.begin(), -7);
      ASSERT_EQ(found, tokens);
      ++hits;
    } else {
      ASSERT_EQ(found, Ids{-7});
      Ids tokens(1 + random.below(WordCache::kMaxTokens));
      for (TokenId& token : tokens) token = static_cast<TokenId>(random.below(1000));
      cache.put(key, tokens);
      Ids again;
      ASSERT_TRUE(cache.append(key, again));
      ASSERT_EQ(again, tokens);
      expected[word] = tokens;
      ++misses;
    }
  }
  EXPECT_GT(hits, static_cast<size_t>(num_steps) / 10);
  EXPECT_GT(misses, static_cast<size_t>(num_steps) / 10);
}

TEST(WordCache, LeavesOutWhatIsTooLong) {
  WordCache cache;
  const WordCache::Key key = WordCache::key_of("word");
  cache.put(key, Ids(WordCache::kMaxTokens + 1));
  Ids out;
  EXPECT_FALSE(cache.append(key, out));
}

TEST(WordCachePool, KeepsACacheFromOneCallToTheNext) {
  WordCachePool pool;
  const WordCache::Key key = WordCache::key_of("word");
  {
    WordCachePool::Lease first(pool);
    WordCachePool::Lease second(pool);
    first->put(key, Ids{1});
    Ids out;
    EXPECT_FALSE(second->append(key, out));  // a cache of its own
  }
  WordCachePool::Lease lease(pool);
  Ids out;
  EXPECT_TRUE(lease->append(key, out));
  EXPECT_EQ(out, Ids{1});
}

}  // namespace
}  // namespace paceline
