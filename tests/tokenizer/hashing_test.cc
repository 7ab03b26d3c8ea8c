#include "tokenizer/hashing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/test_scale.h"

namespace paceline {
namespace {

constexpr uint32_t kNumLefts = 256;
constexpr uint32_t kNumRights = 64;
constexpr size_t kNumSlots = 2 * kNumLefts * kNumRights;

// The longest probe sequence in a table with linear probing that is filled with these hashes.
size_t longest_search(const std::vector<uint64_t>& hashes) {
  std::vector<bool> taken(kNumSlots);
  size_t longest = 0;
  for (const uint64_t hash : hashes) {
    size_t at = hash % kNumSlots;
    size_t steps = 1;
    for (; taken[at]; at = (at + 1) % kNumSlots) ++steps;
    taken[at] = true;
    longest = std::max(longest, steps);
  }
  return longest;
}

// A bad key would slow down all later lookups. The pairs resemble merges: few ids, near each other.
TEST(HashInteger, NoKeyIsABadOne) {
  std::mt19937_64 random(1);
  const int num_keys = scaled(400, 40'000);
  for (int round = 0; round < num_keys; ++round) {
    const uint64_t key = random();
    std::vector<uint64_t> hashes;
    for (uint64_t left = 0; left < kNumLefts; ++left) {
      for (uint64_t right = 0; right < kNumRights; ++right) {
        hashes.push_back(hash_integer((left << 32) | right, key));
      }
    }
    ASSERT_LT(longest_search(hashes), 200u) << "key " << key;
  }
}

TEST(HashBytes, NoKeyIsABadOne) {
  std::mt19937_64 random(1);
  const int num_keys = scaled(100, 10'000);
  for (int round = 0; round < num_keys; ++round) {
    const uint64_t key = round == 0 ? 0 : random();
    std::vector<uint64_t> hashes;
    for (uint32_t i = 0; i < kNumLefts * kNumRights; ++i) {
      hashes.push_back(hash_bytes("word" + std::to_string(i), key));
    }
    ASSERT_LT(longest_search(hashes), 200u) << "key " << key;
  }
}

TEST(HashBytes, EveryByteAndTheSizeCount) {
  for (size_t size = 0; size <= 40; ++size) {
    const std::string text(size, '\0');
    EXPECT_NE(hash_bytes(text, 1), hash_bytes(text + '\0', 1)) << size;
    for (size_t at = 0; at < size; ++at) {
      std::string other = text;
      other[at] = 1;
      EXPECT_NE(hash_bytes(text, 1), hash_bytes(other, 1)) << size << ' ' << at;
    }
  }
}

TEST(LoadShortWord, IsTheTextFollowedByZeros) {
  const std::string text = "\x01\x82\x03\xF4\x05\x86\x07";
  for (size_t size = 1; size <= text.size(); ++size) {
    std::string padded = text.substr(0, size);
    padded.resize(8, '\0');
    EXPECT_EQ(load_short_word(std::string_view(text).substr(0, size)), load_word(padded.data()));
  }
}

}  // namespace
}  // namespace paceline
