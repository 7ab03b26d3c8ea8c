#include "tokenizer/added_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/test_scale.h"
#include "tests/tokenizer/random_text.h"
#include "tokenizer/unicode_normalizer.h"

namespace paceline {
namespace {

using Stage = AddedTokens::Stage;

const AddedTokens::Recognises kAll = [](std::string_view) { return true; };

// "plain|<7>" for a plain stretch and token 7.
std::string cut(const AddedTokens& tokens, std::string_view text, EncodeOptions options = {},
                Stage stage = Stage::raw) {
  std::string result;
  const auto recognises = [&](std::string_view) { return !options.specials_as_text; };
  for (const auto& segment : tokens.split(text, stage, recognises)) {
    if (!result.empty()) result += '|';
    result +=
        segment.token >= 0 ? "<" + std::to_string(segment.token) + ">" : std::string(segment.text);
  }
  return result;
}

TEST(AddedTokens, TheLeftmostThenTheLongestIsTaken) {
  const AddedTokens tokens(
      {{.id = 1, .content = "<a"}, {.id = 2, .content = "<ab>"}, {.id = 3, .content = "b>c"}},
      nullptr);
  EXPECT_EQ(cut(tokens, "x<ab>c<a<"), "x|<2>|c|<1>|<");
  EXPECT_EQ(cut(tokens, "b>c<ab"), "<3>|<1>|b");
  EXPECT_EQ(cut(tokens, ""), "");
  EXPECT_EQ(cut(tokens, "none"), "none");
}

TEST(AddedTokens, Flags) {
  const AddedTokens tokens({{.id = 1, .content = "<l>", .lstrip = true},
                            {.id = 2, .content = "<r>", .rstrip = true},
                            {.id = 3, .content = "word", .single_word = true},
                            {.id = 4, .content = "<s>", .special = true}},
                           nullptr);
  EXPECT_EQ(cut(tokens, "a \u3000<l> b"), "a|<1>| b");
  EXPECT_EQ(cut(tokens, "<r>\n <l>x"), "<2>|<1>|x");  // white space is taken once
  EXPECT_EQ(cut(tokens, "<r>  "), "<2>");
  EXPECT_EQ(cut(tokens, "word words éword _word word"), "<3>| words éword _word |<3>");
  EXPECT_EQ(cut(tokens, "a<s>b", {.specials_as_text = true}), "a<s>b");
  EXPECT_EQ(cut(tokens, "<s><l>", {.specials_as_text = true}), "<s>|<1>");
}

TEST(AddedTokens, NormalizedOnesAreLookedForInNormalizedText) {
  const UnicodeNormalizer nfc(UnicodeForm::nfc);
  const AddedTokens tokens(
      {{.id = 1, .content = "e\u0301", .normalized = true}, {.id = 2, .content = "raw"}}, &nfc);
  EXPECT_EQ(cut(tokens, "raw é"), "<2>| é");
  EXPECT_EQ(cut(tokens, "raw é", {}, Stage::normalized), "raw |<1>");
  EXPECT_EQ(tokens.find("e\u0301")->id, 1);
  EXPECT_EQ(tokens.find(TokenId{2})->content, "raw");
  EXPECT_EQ(tokens.find(TokenId{3}), nullptr);
}

// Tokens with lstrip and rstrip beside long white space: stripped text isn't scanned again.
TEST(AddedTokens, WhiteSpaceIsLinear) {
  const std::string text(1'000'000, ' ');
  const AddedTokens right({{.id = 1, .content = " ", .rstrip = true}}, nullptr);
  EXPECT_EQ(right.split(text, Stage::raw, kAll).size(), text.size());
  const AddedTokens left({{.id = 1, .content = " ", .lstrip = true}}, nullptr);
  EXPECT_EQ(left.split(text, Stage::raw, kAll).size(), text.size());
  const AddedTokens both({{.id = 1, .content = " ", .lstrip = true, .rstrip = true}}, nullptr);
  EXPECT_EQ(both.split(text, Stage::raw, kAll).size(), 1u);  // nothing is left for the others
}

std::optional<StringMatcher::Match> naive_find(const std::vector<std::string_view>& strings,
                                               std::string_view text, size_t from) {
  for (size_t begin = from; begin < text.size(); ++begin) {
    std::optional<StringMatcher::Match> best;
    for (size_t i = 0; i < strings.size(); ++i) {
      const bool here = text.substr(begin).starts_with(strings[i]);
      const size_t end = begin + strings[i].size();
      if (here && (!best || end > best->end)) best = StringMatcher::Match{begin, end, i};
    }
    if (best) return best;
  }
  return std::nullopt;
}

TEST(StringMatcher, EqualsTheDefinition) {
  RandomText random(5);
  size_t num_matches = 0;
  const int num_rounds = scaled(2000, 200'000);
  for (int round = 0; round < num_rounds; ++round) {
    std::vector<std::string> owned(random.below(8));
    for (auto& string : owned) {
      string.resize(1 + random.below(6));
      for (char& c : string) c = static_cast<char>('a' + random.below(3));
    }
    const std::vector<std::string_view> strings(owned.begin(), owned.end());
    const StringMatcher matcher(strings);
    std::string text(random.below(60), '\0');
    for (char& c : text) c = static_cast<char>('a' + random.below(3));
    for (size_t from = 0; from <= text.size(); ++from) {
      const auto expected = naive_find(strings, text, from);
      const auto found = matcher.find(text, from);
      ASSERT_EQ(found.has_value(), expected.has_value());
      if (!found) continue;
      ASSERT_EQ(found->begin, expected->begin) << text;
      ASSERT_EQ(found->end, expected->end) << text;
      ASSERT_EQ(found->index, expected->index) << text;
      ++num_matches;
    }
  }
  EXPECT_GT(num_matches, 10 * static_cast<size_t>(num_rounds));
}

}  // namespace
}  // namespace paceline
