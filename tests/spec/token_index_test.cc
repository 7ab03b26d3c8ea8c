// Compares TokenIndex with a search through the whole text, and bounds its work and memory.
#include "spec/token_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

using Text = std::vector<int32_t>;

int64_t common_suffix(std::span<const int32_t> text, int64_t a, int64_t b, int64_t most) {
  int64_t length = 0;
  while (length < std::min({a, b, most}) &&
         text[static_cast<size_t>(a - 1 - length)] == text[static_cast<size_t>(b - 1 - length)]) {
    ++length;
  }
  return length;
}

TokenMatch naive_find(std::span<const int32_t> text, int64_t min, int64_t max) {
  TokenMatch best;
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t end = size - 1; end > 0; --end) {
    const int64_t length = common_suffix(text, end, size, max);
    if (length >= min && length > best.length) best = {.length = length, .end = end};
  }
  return best;
}

Text random_text(std::mt19937& random, size_t size, uint32_t alphabet) {
  Text text;
  while (text.size() < size) {
    const bool repeats = text.size() > 4 && random() % 8 == 0;
    if (!repeats) {
      text.push_back(static_cast<int32_t>(random() % alphabet));
      continue;
    }
    size_t from = random() % text.size();
    for (size_t n = 1 + random() % 12; n > 0 && text.size() < size; --n)
      text.push_back(text[from++]);
  }
  return text;
}

TEST(TokenIndexProperty, EveryPrefixHasTheMatchOfANaiveSearch) {
  const int num_rounds = scaled(400, 40'000);
  int64_t num_found = 0;
  for (int round = 0; round < num_rounds; ++round) {
    std::mt19937 random(static_cast<uint32_t>(round));
    const int64_t min = 1 + random() % 4;
    const int64_t max = min + random() % 5;
    const Text text = random_text(random, 1 + random() % 150, 1 + random() % 6);
    TokenIndex index(min, max);
    for (size_t size = 0; size <= text.size(); ++size) {
      const std::span<const int32_t> prefix = std::span(text).first(size);
      index.extend(prefix);
      const TokenMatch found = index.find(prefix);
      const TokenMatch expected = naive_find(prefix, min, max);
      ASSERT_EQ(found.length, expected.length) << "round " << round << ", size " << size;
      ASSERT_EQ(found.end, expected.end) << "round " << round << ", size " << size;
      num_found += found.length > 0;
    }
  }
  EXPECT_GT(num_found, 10 * num_rounds);
}

TEST(TokenIndexProperty, GrowthInRandomBatchesChangesNothing) {
  const int num_rounds = scaled(300, 30'000);
  for (int round = 0; round < num_rounds; ++round) {
    std::mt19937 random(static_cast<uint32_t>(round));
    const Text text = random_text(random, 400, 2 + random() % 20);
    TokenIndex index(2, 5);
    for (size_t size = 0; size < text.size();) {
      size = std::min(text.size(), size + 1 + random() % 60);
      const Text moved(text.begin(), text.begin() + static_cast<int64_t>(size));
      index.extend(moved);
      const TokenMatch expected = naive_find(moved, 2, 5);
      ASSERT_EQ(index.find(moved).length, expected.length) << "round " << round;
      ASSERT_EQ(index.find(moved).end, expected.end) << "round " << round;
    }
  }
}

TEST(TokenIndex, AMatchNeedsATokenAfterIt) {
  const Text text = {7, 8, 7, 8};
  TokenIndex index(2, 5);
  index.extend(std::span(text).first(2));
  EXPECT_EQ(index.find(std::span(text).first(2)).length, 0);
  index.extend(text);
  EXPECT_EQ(index.find(text).length, 2);
  EXPECT_EQ(index.find(text).end, 2);
}

TEST(TokenIndex, AnyIdCanBeFound) {
  const Text text = {INT32_MAX, -1, 5, INT32_MIN, -1, 6, INT32_MAX, -1};
  TokenIndex index(2, 2);
  index.extend(text);
  EXPECT_EQ(index.find(text).end, 2);
}

enum class Kind { random, words, periodic, constant };

// Words: pairs of tokens recur often, as in prose.
Text text_of(Kind kind, size_t size) {
  std::mt19937 random(5);
  Text text;
  while (text.size() < size) {
    const auto n = static_cast<int32_t>(text.size());
    switch (kind) {
      case Kind::random:
        text.push_back(static_cast<int32_t>(random() % 150'000));
        break;
      case Kind::words:
        text.push_back(static_cast<int32_t>(50'000.0 / (1.0 + (random() % 50'000))));
        break;
      case Kind::periodic:
        text.push_back(n % 3);
        break;
      case Kind::constant:
        text.push_back(1);
        break;
    }
  }
  return text;
}

// Counts, not times: operations of extend() and find() after each token. The most of a token that
// doubles no table is that of its longest probe.
TEST(TokenIndex, WorkAndMemoryPerTokenStayConstantUpToAHundredThousandTokens) {
  for (const Kind kind : {Kind::random, Kind::words, Kind::periodic, Kind::constant}) {
    for (const size_t size : {100, 1'000, 10'000, 100'000}) {
      const Text text = text_of(kind, size);
      TokenIndex index(2, 5);
      int64_t most = 0;
      for (size_t n = 1; n <= size; ++n) {
        const std::span<const int32_t> prefix = std::span(text).first(n);
        const int64_t bytes = index.bytes();
        const int64_t before = index.num_operations();
        index.extend(prefix);
        index.find(prefix);
        if (index.bytes() == bytes) most = std::max(most, index.num_operations() - before);
      }
      const auto tokens = static_cast<double>(size);
      const double operations = static_cast<double>(index.num_operations()) / tokens;
      const double bytes = static_cast<double>(index.bytes()) / tokens;
      EXPECT_LT(operations, 120) << "kind " << static_cast<int>(kind) << ", " << size << " tokens";
      EXPECT_LT(most, 4'000) << "kind " << static_cast<int>(kind) << ", " << size << " tokens";
      if (size >= 1000) {
        EXPECT_GT(bytes, kind == Kind::random ? 4 : 0) << "a slot for every new pair of tokens";
        EXPECT_LT(bytes, 12) << "kind " << static_cast<int>(kind) << ", " << size << " tokens";
      }
    }
  }
}

}  // namespace
}  // namespace paceline::testing
