#include "grammar/constraint_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/expect_error.h"

namespace paceline {
namespace {

ConstraintSpec regex(std::string text) {
  return {.kind = ConstraintSpec::Kind::regex, .text = std::move(text)};
}

ConstraintVocabulary letters() {
  std::vector<std::string> tokens;
  for (char letter = 'a'; letter <= 'z'; ++letter) tokens.emplace_back(1, letter);
  return {.trie = std::make_shared<const TokenTrie>(tokens), .tokenise = {}};
}

TEST(ConstraintCache, EqualConstraintsAreCompiledOnce) {
  int num_vocabularies = 0;
  ConstraintCache cache([&] {
    ++num_vocabularies;
    return letters();
  });
  EXPECT_EQ(num_vocabularies, 0) << "before the first constraint";
  const auto first = cache.get(regex("ab*"));
  EXPECT_EQ(cache.get(regex("ab*")), first);
  EXPECT_NE(cache.get(regex("ab+")), first);
  cache.check(regex("abc"));
  cache.get(regex("abc"));  // was counted
  const ConstraintSpec choice{.kind = ConstraintSpec::Kind::choice, .choices = {"a", "b c"}};
  const ConstraintSpec other{.kind = ConstraintSpec::Kind::choice, .choices = {"a b", "c"}};
  EXPECT_NE(cache.get(choice), cache.get(other));
  EXPECT_EQ(num_vocabularies, 1);
  const ConstraintCounters counters = cache.counters();
  EXPECT_EQ(counters.compiled, 5);
  EXPECT_EQ(counters.hits, 1);
  EXPECT_EQ(counters.kept, 5U);
  EXPECT_GE(counters.kept_bytes, first->memory_bytes());
}

TEST(ConstraintCache, ARefusedConstraintIsRefusedAgain) {
  ConstraintCache cache(letters);
  for (int i = 0; i < 2; ++i) {
    expect_error(ErrorCode::invalid, {"a("}, [&] { cache.get(regex("a(")); });
  }
  expect_error(ErrorCode::unsupported, {}, [&] { cache.get(regex(R"((a)\1)")); });
  EXPECT_EQ(cache.counters().invalid, 1);
  EXPECT_EQ(cache.counters().unsupported, 1);
  EXPECT_EQ(cache.counters().compiled, 0);
}

TEST(ConstraintCache, TheLeastRecentlyUsedOnesGo) {
  ConstraintCache cache(letters, {.max_bytes = size_t{1} << 30, .max_entries = 2});
  const auto a = cache.get(regex("a"));
  cache.get(regex("b"));
  EXPECT_EQ(cache.get(regex("a")), a);
  cache.get(regex("c"));  // "b" goes
  EXPECT_EQ(cache.get(regex("a")), a);
  EXPECT_EQ(cache.counters().compiled, 3);
  cache.get(regex("b"));
  EXPECT_EQ(cache.counters().compiled, 4);

  ConstraintCache small(letters, {.max_bytes = 1, .max_entries = 8});
  for (const char* text : {"a", "b", "c"}) small.get(regex(text));
  EXPECT_EQ(small.counters().kept, 1U);
}

TEST(ConstraintCache, ThreadsWaitForTheOneThatCompiles) {
  ConstraintCache cache(letters);
  std::atomic<int> num_compiled = 0;
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<Constraint>> found(8);
  for (auto& constraint : found) {
    threads.emplace_back([&] {
      constraint = cache.get("key", [&] {
        ++num_compiled;
        return compile_constraint(regex("[a-z]{5}"));
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_compiled, 1);
  for (const auto& constraint : found) EXPECT_EQ(constraint, found[0]);
}

}  // namespace
}  // namespace paceline
