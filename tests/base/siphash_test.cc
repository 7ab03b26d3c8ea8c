#include "base/siphash.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline {
namespace {

// The authors' vectors for key 00 01 .. 0f: the empty input and the input 00 01 .. 07.
TEST(SipHash128, TheVectorsOfThePapersAuthors) {
  const SipKey key{.low = 0x0706050403020100, .high = 0x0f0e0d0c0b0a0908};
  const Hash128 empty = siphash128(key, {});
  EXPECT_EQ(empty.low, 0xe6a825ba047f81a3u);
  EXPECT_EQ(empty.high, 0x930255c71472f66du);
  const std::vector<uint64_t> words = {0x0706050403020100};
  const Hash128 eight = siphash128(key, words);
  EXPECT_EQ(eight.low, 0x61f55862baa9623bu);
  EXPECT_EQ(eight.high, 0xb49714f364e2830fu);
}

// The authors' vectors again: the inputs 00 and 00 01 .. 0e.
TEST(SipHash128, BytesThatFillNoWord) {
  const SipKey key{.low = 0x0706050403020100, .high = 0x0f0e0d0c0b0a0908};
  std::vector<std::byte> bytes;
  for (int i = 0; i < 15; ++i) bytes.push_back(std::byte(i));
  const Hash128 one = siphash128_bytes(key, std::span(bytes).first(1));
  EXPECT_EQ(one.low, 0x44af996bd8c187dau);
  EXPECT_EQ(one.high, 0x45fc229b11597634u);
  const Hash128 fifteen = siphash128_bytes(key, bytes);
  EXPECT_EQ(fifteen.low, 0x11a8b03399e99354u);
  EXPECT_EQ(fifteen.high, 0xd9c3cf970fec087eu);
}

TEST(SipHash128, WordsAreTheirBytes) {
  const std::vector<uint64_t> words = {3, 1, 4, 1, 5};
  EXPECT_EQ(siphash128_bytes({.low = 9, .high = 2}, std::as_bytes(std::span(words))),
            siphash128({.low = 9, .high = 2}, words));
}

TEST(SipHash128, EveryWordAndTheKeyMatter) {
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
