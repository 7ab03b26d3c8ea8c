#include "base/block_sum.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "base/random.h"

namespace paceline {
namespace {

std::vector<std::byte> numbered_bytes(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 37 + i / 256);
  return bytes;
}

TEST(BlockSum, FindsEveryChangedBit) {
  auto bytes = numbered_bytes(300);
  const uint64_t sum = block_sum(bytes, 7);
  EXPECT_EQ(block_sum(bytes, 7), sum);
  for (std::byte& byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      byte ^= std::byte{1} << bit;
      EXPECT_NE(block_sum(bytes, 7), sum);
      byte ^= std::byte{1} << bit;
    }
  }
}

// Changes the signs of floats: the highest bits, which products alone wouldn't mix with others.
TEST(BlockSum, FindsPairsOfChangedHighBits) {
  auto bytes = numbered_bytes(512);
  std::set<uint64_t> sums = {block_sum(bytes, 0)};
  for (size_t first = 7; first < bytes.size(); first += 8) {
    for (size_t second = first + 8; second < bytes.size(); second += 8) {
      bytes[first] ^= std::byte{0x80};
      bytes[second] ^= std::byte{0x80};
      EXPECT_TRUE(sums.insert(block_sum(bytes, 0)).second) << first << " " << second;
      bytes[first] ^= std::byte{0x80};
      bytes[second] ^= std::byte{0x80};
    }
  }
}

TEST(BlockSum, DependsOnOrderLengthAndSeed) {
  const auto bytes = numbered_bytes(256);
  std::set<uint64_t> sums;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_TRUE(sums.insert(block_sum(bytes, seed)).second);
    EXPECT_TRUE(sums.insert(block_sum(std::vector<std::byte>(256), seed)).second);
  }
  auto swapped = bytes;
  std::swap_ranges(swapped.begin(), swapped.begin() + 64, swapped.begin() + 64);
  EXPECT_TRUE(sums.insert(block_sum(swapped, 0)).second);
  swapped = bytes;
  std::swap_ranges(swapped.begin(), swapped.begin() + 8, swapped.begin() + 8);
  EXPECT_TRUE(sums.insert(block_sum(swapped, 0)).second);
  for (size_t lines = 0; lines < 4; ++lines) {
    EXPECT_TRUE(sums.insert(block_sum(std::vector<std::byte>(lines * 64), 0)).second);
  }
}

TEST(BlockSum, ALastLineCountsAsFilledUpWithZeros) {
  for (const size_t size : {1u, 63u, 64u, 65u, 127u, 200u}) {
    auto bytes = numbered_bytes(size);
    const uint64_t sum = block_sum(bytes, 3);
    bytes.resize((size + 63) / 64 * 64);
    EXPECT_EQ(block_sum(bytes, 3), sum) << size;
  }
}

// Pinned: with other sums all existing files would count as damaged.
TEST(BlockSum, HasTheValuesThatFilesHold) {
  EXPECT_EQ(block_sum({}, 0), 0x8813fa1cbc461847u);
  EXPECT_EQ(block_sum(numbered_bytes(1000), 1), 0xd539b778468c013au);
}

}  // namespace
}  // namespace paceline
