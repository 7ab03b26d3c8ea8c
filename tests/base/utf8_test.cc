#include "base/utf8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "tests/test_scale.h"

namespace paceline {
namespace {

// The bytes of a code point by the bit patterns of RFC 3629, section 3.
std::string encode_oracle(uint32_t code_point) {
  std::string bits;
  for (int i = 20; i >= 0; --i) bits += (code_point >> i) & 1 ? '1' : '0';
  static constexpr const char* kPatterns[] = {"0xxxxxxx", "110xxxxx10xxxxxx",
                                              "1110xxxx10xxxxxx10xxxxxx",
                                              "11110xxx10xxxxxx10xxxxxx10xxxxxx"};
  const size_t length = code_point < 0x80      ? 1
                        : code_point < 0x800   ? 2
                        : code_point < 0x10000 ? 3
                                               : 4;
  std::string pattern = kPatterns[length - 1];
  size_t next = bits.size();
  for (size_t i = pattern.size(); i-- > 0;) {
    if (pattern[i] == 'x') pattern[i] = bits[--next];
  }
  std::string bytes;
  for (size_t i = 0; i < pattern.size(); i += 8) {
    bytes += static_cast<char>(std::stoi(pattern.substr(i, 8), nullptr, 2));
  }
  return bytes;
}

bool is_scalar_value(uint32_t code_point) {
  return code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
}

uint8_t byte_at(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

// The code point whose encoding is exactly `bytes`: decoded loosely, then encoded again.
std::optional<uint32_t> exact_code_point(std::string_view bytes) {
  if (bytes.empty() || bytes.size() > 4) return std::nullopt;
  uint32_t code_point = byte_at(bytes, 0);
  if (bytes.size() > 1) {
    code_point &= (1u << (7 - bytes.size())) - 1;
    for (size_t i = 1; i < bytes.size(); ++i)
      code_point = (code_point << 6) | (byte_at(bytes, i) & 0x3F);
  }
  if (!is_scalar_value(code_point) || encode_oracle(code_point) != bytes) return std::nullopt;
  return code_point;
}

// Every string that begins, but doesn't complete, the encoding of some code point.
const std::set<std::string, std::less<>>& proper_prefixes() {
  static const auto prefixes = [] {
    std::set<std::string, std::less<>> all;
    for (uint32_t code_point = 0x80; code_point <= 0x10FFFF; ++code_point) {
      // The last byte of an encoding takes all 64 values, so one of them is enough.
      if (code_point % 64 != 0 || !is_scalar_value(code_point)) continue;
      const std::string bytes = encode_oracle(code_point);
      for (size_t length = 1; length < bytes.size(); ++length) all.insert(bytes.substr(0, length));
    }
    return all;
  }();
  return prefixes;
}

bool is_proper_prefix(std::string_view bytes) { return proper_prefixes().contains(bytes); }

// Unicode 15, section 3.9, D93b: the longest prefix that begins a well-formed sequence, else one
// byte.
DecodedCodePoint decode_oracle(std::string_view text) {
  for (size_t size = 1; size <= 4 && size <= text.size(); ++size) {
    if (const auto found = exact_code_point(text.substr(0, size))) {
      return {*found, static_cast<uint8_t>(size), true};
    }
  }
  size_t matched = 1;
  for (size_t size = 1; size <= 3 && size <= text.size(); ++size) {
    if (is_proper_prefix(text.substr(0, size))) matched = size;
  }
  return {kReplacementCharacter, static_cast<uint8_t>(matched), false};
}

// Random bytes that are often almost well formed.
std::string random_bytes(std::mt19937& random) {
  static constexpr uint8_t kEdges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                       0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE,
                                       0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFF};
  std::string text;
  const size_t length = 1 + random() % 12;
  while (text.size() < length) {
    switch (random() % 4) {
      case 0:
        text += static_cast<char>(random() % 256);
        break;
      case 1:
        text += static_cast<char>(kEdges[random() % std::size(kEdges)]);
        break;
      case 2:
        text += static_cast<char>(0x80 + random() % 0x40);
        break;
      default: {
        const uint32_t code_point = static_cast<uint32_t>(random() % 0x110000) >> (random() % 20);
        if (is_scalar_value(code_point)) text += encode_oracle(code_point);
      }
    }
    if (random() % 8 == 0 && !text.empty()) text.pop_back();
  }
  return text;
}

void expect_same(const DecodedCodePoint& actual, const DecodedCodePoint& expected) {
  ASSERT_EQ(actual.code_point, expected.code_point);
  ASSERT_EQ(actual.size, expected.size);
  ASSERT_EQ(actual.valid, expected.valid);
}

TEST(Utf8, EveryScalarValueRoundTrips) {
  for (uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (!is_scalar_value(code_point)) continue;
    std::string bytes;
    append_utf8(bytes, code_point);
    if (code_point % 17 == 0 || code_point < 0x900) {
      ASSERT_EQ(bytes, encode_oracle(code_point));
    }
    const DecodedCodePoint decoded = decode_utf8(bytes);
    ASSERT_TRUE(decoded.valid && decoded.code_point == code_point && decoded.size == bytes.size())
        << code_point;
  }
}

TEST(Utf8, DecodesTwoBytesAsTheOracle) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      expect_same(decode_utf8(text), decode_oracle(text));
    }
  }
}

TEST(Utf8, DecodesRandomBytesAsTheOracle) {
  std::mt19937 random(11);
  int num_valid = 0;
  const int num_rounds = scaled(20'000, 2'000'000);
  for (int round = 0; round < num_rounds; ++round) {
    const std::string text = random_bytes(random);
    std::string replaced;
    bool valid = true;
    for (std::string_view rest = text; !rest.empty();) {
      const DecodedCodePoint expected = decode_oracle(rest);
      expect_same(decode_utf8(rest), expected);
      replaced += encode_oracle(expected.code_point);
      valid = valid && expected.valid;
      rest.remove_prefix(expected.size);
    }
    ASSERT_EQ(is_valid_utf8(text), valid);
    ASSERT_EQ(replace_invalid_utf8(text), replaced);
    ASSERT_TRUE(is_valid_utf8(replaced));
    num_valid += valid ? 1 : 0;
  }
  EXPECT_GT(num_valid, num_rounds / 40);
}

TEST(Utf8, IncompleteSuffixAsTheOracle) {
  std::mt19937 random(12);
  int num_incomplete = 0;
  const int num_rounds = scaled(30'000, 3'000'000);
  for (int round = 0; round < num_rounds; ++round) {
    const std::string text = random_bytes(random);
    size_t expected = 0;
    for (size_t length = 1; length <= 3 && length <= text.size(); ++length) {
      if (is_proper_prefix(std::string_view(text).substr(text.size() - length))) expected = length;
    }
    ASSERT_EQ(incomplete_utf8_suffix(text), expected);
    num_incomplete += expected > 0 ? 1 : 0;
  }
  EXPECT_GT(num_incomplete, num_rounds / 30);
}

// A streaming reader that holds back the suffix gets the same text as one that reads all at once.
TEST(Utf8, HoldingBackTheSuffixLosesNothing) {
  std::mt19937 random(13);
  const int num_rounds = scaled(2000, 200'000);
  for (int round = 0; round < num_rounds; ++round) {
    std::string text;
    while (text.size() < 30) text += random_bytes(random);
    std::string out, held;
    for (size_t i = 0; i < text.size();) {
      const size_t take = std::min<size_t>(1 + random() % 5, text.size() - i);
      held += text.substr(i, take);
      i += take;
      const size_t keep = incomplete_utf8_suffix(held);
      out += replace_invalid_utf8(std::string_view(held).substr(0, held.size() - keep));
      held.erase(0, held.size() - keep);
    }
    out += replace_invalid_utf8(held);
    ASSERT_EQ(out, replace_invalid_utf8(text));
  }
}

TEST(Utf8, KnownReplacements) {
  EXPECT_EQ(replace_invalid_utf8(""), "");
  EXPECT_EQ(replace_invalid_utf8("a\xC0\x80z"), "a\uFFFD\uFFFDz");                  // overlong
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");            // surrogate
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98x"), "\uFFFDx");                      // truncated
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // beyond 10FFFF
  EXPECT_EQ(incomplete_utf8_suffix(""), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("abc"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xF0\x9F\x98"), 3u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xF0\x9F\x98\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xED\xA0"), 0u);  // no continuation makes it valid
}

}  // namespace
}  // namespace paceline
