#include "base/siphash.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline {
namespace {

// The authors' vectors for key 00 01 .. 0f: the empty input and the input 00 01 .. 07.
TEST(SipHash128, the_vectors_of_the_paper_s_authors) {
  const SipKey key{.low = 0x0706050403020100, .high = 0x0f0e0d0c0b0a0908};
  const Hash128 empty = siphash128(key, {});
  EXPECT_EQ(empty.low, 0xe6a825ba047f81a3u);
  EXPECT_EQ(empty.high, 0x930255c71472f66du);
  const std::vector<uint64_t> words = {0x0706050403020100};
  const Hash128 eight = siphash128(key, words);
  EXPECT_EQ(eight.low, 0x61f55862baa9623bu);
  EXPECT_EQ(eight.high, 0xb49714f364e2830fu);
}

TEST(SipHash128, every_word_and_the_key_matter) {
  const SipKey key{.low = 1, .high = 2};
  const std::vector<uint64_t> words = {1, 2, 3};
  const Hash128 hash = siphash128(key, words);
  for (size_t i = 0; i < words.size(); ++i) {
    std::vector<uint64_t> changed = words;
    changed[i] ^= uint64_t{1} << 63;
    EXPECT_NE(siphash128(key, changed), hash);
  }
  EXPECT_NE(siphash128({.low = 1, .high = 3}, words), hash);
  EXPECT_NE(siphash128(key, std::vector<uint64_t>{1, 2, 3, 0}), hash);
}

}  // namespace
}  // namespace paceline
