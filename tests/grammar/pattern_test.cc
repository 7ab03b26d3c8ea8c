#include "grammar/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "grammar/unicode_property.h"
#include "paceline/error.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

struct PatternCase {
  std::string pattern;
  std::vector<std::string> matching;
  std::vector<std::string> others;
};

void expect_pattern(const PatternCase& one, PatternMatch match, TextForm form = TextForm::utf8) {
  SCOPED_TRACE(one.pattern);
  RegexSet regexes;
  const RegexId regex = parse_pattern(regexes, one.pattern, form, match);
  for (const std::string& text : one.matching) EXPECT_TRUE(regexes.matches(regex, text)) << text;
  for (const std::string& text : one.others) EXPECT_FALSE(regexes.matches(regex, text)) << text;
}

TEST(Pattern, MatchesWholeTexts) {
  const std::vector<PatternCase> cases{
      {"", {""}, {"a"}},
      {"a|b|", {"a", "b", ""}, {"ab"}},
      {"[a-c]+?x{2}", {"axx", "abcxx"}, {"xx", "axxx"}},
      {"(?:ab){1,3}", {"ab", "ababab"}, {"", "abababab"}},
      {"(?<year>\\d{4})(?P<rest>-)", {"1999-"}, {"199-"}},
      {".", {"a", "\xc3\xa9", "\xf0\x9f\x98\x80"}, {"\n", "\r", "\xe2\x80\xa8", "\xff"}},
      {"[^]", {"\n", "a"}, {""}},
      {"[]", {}, {"", "a"}},
      {"a{|b{,2}|]}", {"a{", "b{,2}", "]}"}, {"a", "b"}},
      {R"(\w\W\d\D\s\S)", {"a-1a b", "_\n0-\xef\xbb\xbf\xc3\xa9"}, {"\xc3\xa9-1a b"}},
      {R"([\w-]\-\_\/\@)", {"--_/@", "z-_/@"}, {".-_/@"}},
      {R"(\x41\u0042\u{43}\cJ\0[\b])", {std::string("ABC\n\0\b", 6)}, {"ABC"}},
      {R"(\uD83D\uDE00|[\u{1F601}-\u{1F603}])",
       {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x82"},
       {"\xf0\x9f\x98\x84"}},
      {R"(\uD800)", {}, {"\xed\xa0\x80"}},
      {R"(\p{Lu}\P{L}\p{Letter}[\p{Nd}_])", {"A1\xc3\xa9_", "\xc3\x89-b7"}, {"a1b_", "ABC_"}},
      {"(?i)k[^a]\xc3\xa9", {"Kb\xc3\xa9", "kB\xc3\xa9"}, {"KA\xc3\xa9", "kb\xc3\x89"}},
      {"(?s).", {"\n"}, {}},
  };
  for (const PatternCase& one : cases) expect_pattern(one, PatternMatch::whole);
}

TEST(Pattern, MatchesAnywhereUnlessAnchored) {
  const std::vector<PatternCase> cases{
      {"b", {"b", "abc"}, {"", "ac"}},
      {"^b", {"b", "bc"}, {"ab"}},
      {"a{2,5}", {"aa", "aaaaaaa", "xaay"}, {"a", "aba"}},
      {"x?(ab+)+", {"ab", "xabb"}, {"xa", "ba"}},
      {"(a?b){2}c*", {"bb", "xabbc"}, {"b", "bac"}},
      {"a*|b+c", {"", "zz"}, {}},
      {"b+c|d{1,9}", {"bbc", "xdx"}, {"", "bb"}},
      {"b$", {"b", "ab"}, {"bc", "b\n"}},
      {"^b|c$", {"bx", "xc"}, {"xbx", "cx"}},
      {"(^|-)a(-|$)", {"a", "x-a", "a-x", "x-a-y"}, {"xa", "ax"}},
      {"a*^b", {"b", "bx"}, {"ab"}},
      {"(^a|b)+c", {"ac", "abbc", "xbc"}, {"xac"}},
      {"^(a$|b)*$", {"", "a", "bba"}, {"ab"}},
      {"(?:^x|y){2}", {"xy", "yy", "zyy"}, {"yx", "zxy"}},
      {"a^b|b$c", {}, {"ab", "bc"}},
  };
  for (const PatternCase& one : cases) expect_pattern(one, PatternMatch::anywhere);
}

TEST(Pattern, LooksAhead) {
  const std::vector<PatternCase> cases{
      {"^(?!x).*$", {"", "yx"}, {"x", "xy"}},
      {"^(?=.{3}$)a*", {"aaa", "abc"}, {"aa"}},
      {"a(?=b)", {"ab"}, {"a", "ac"}},
      {"^(?!^lucene\\.|mongodb\\.)", {"x", ""}, {"lucene.x", "mongodb."}},
      {"^((?!mode)(?!Mode).)*$", {"", "mod"}, {"amode", "Modes"}},
      {"^((?!ab).)*c$", {"c", "axc", "bac"}, {"abc", "ac "}},
      {"^(?:(?!.*--)[a-z-]*[a-z])?$", {"", "a-b"}, {"a--b"}},
      {"(?!a)+b", {"b"}, {"a"}},
      {"^(?=(?!a).$)", {"b"}, {"a", "bb"}},
  };
  for (const PatternCase& one : cases) expect_pattern(one, PatternMatch::anywhere);
}

TEST(Pattern, MatchesTheFormsOfJson) {
  expect_pattern({R"(^"\\\n\u00e9\u{1F600}/$)",
                  {R"(\"\\\n)"
                   "\xc3\xa9\xf0\x9f\x98\x80/",
                   R"(\"\\\u000a\u00E9\ud83D\uDe00/)"},
                  {R"(\u0022\\\n)"
                   "\xc3\xa9\xf0\x9f\x98\x80/",
                   R"(\"\\\n\u00e9\ud83d)"}},
                 PatternMatch::anywhere, TextForm::json);
  expect_pattern({"^[^a]$",
                  {"b", R"(\")", R"(\u00e9)", R"(\ud800\udc00)"},
                  {"a", "\"", R"(\a)", R"(\ud800)", "\n"}},
                 PatternMatch::anywhere, TextForm::json);
}

TEST(Pattern, PlainOnesHaveNoIntersections) {
  for (const TextForm form : {TextForm::utf8, TextForm::json}) {
    RegexSet regexes;
    const RegexId letters = one_of_characters(regexes, {{'a', 'z'}}, form);
    const RegexId all = regexes.star(any_character(regexes, form));
    const auto parsed = [&](std::string_view pattern) {
      return parse_pattern(regexes, pattern, form, PatternMatch::anywhere);
    };
    EXPECT_EQ(parsed("^[a-z]+$"), regexes.plus(letters));
    EXPECT_EQ(parsed("[a-z]"), regexes.concat(std::array{all, letters, all}));
    EXPECT_EQ(parsed("^[a-z]{2,5000}"), regexes.concat(regexes.repeat(letters, 2, 5000), all));
    EXPECT_EQ(parsed("[a-z]*"), all);
  }
}

TEST(Pattern, RefusesWhatIsMalformedOrBeyondIt) {
  const auto refuse = [](std::string_view pattern, ErrorCode code, std::string_view part) {
    SCOPED_TRACE(pattern.substr(0, 80));
    RegexSet regexes;
    expect_error(code, {std::string(part)},
                 [&] { parse_pattern(regexes, pattern, TextForm::utf8, PatternMatch::anywhere); });
  };
  for (const char* pattern :
       {"(",    ")",      "a)",     "[a",   "*",     "a**",   "^+",          "^{2}",
        "{2}",  "a{2,1}", "[b-a]",  "\\",   "\\A",   "\\u12", "\\u{110000}", "\\x1",
        "\\c1", "\\01",   "(?<>a)", "(?<a", "(?#a)", "\xff"}) {
    refuse(pattern, ErrorCode::invalid, "");
  }
  refuse("a\\bb", ErrorCode::unsupported, "character 2: a word boundary");
  refuse("\xc3\xa9(a)\\1", ErrorCode::unsupported, "character 5: a back-reference");
  refuse("(?<n>a)\\k<n>", ErrorCode::unsupported, "back-reference");
  refuse("(?<!a)", ErrorCode::unsupported, "look-behind");
  refuse("((?!a)b|c)*", ErrorCode::unsupported, "look-ahead inside of a repetition");
  refuse("(^a|b){20}", ErrorCode::unsupported, "anchor inside of a repetition");
  refuse("\\p{Foo}", ErrorCode::unsupported, "'Foo'");
  refuse("a(?i)b", ErrorCode::unsupported, "flags");
  refuse("a{1000001}", ErrorCode::exhausted, "1000000");
  refuse(std::string(60'000, '('), ErrorCode::exhausted, "64 deep");
  refuse(std::string(30'000, 'a'), ErrorCode::exhausted, "20000 terms");
  refuse(std::string(100'000, 'a'), ErrorCode::exhausted, "65536 bytes");
}

TEST(Pattern, LargeOnesAreCheap) {
  const auto begin = std::chrono::steady_clock::now();
  std::string nested_anchors;
  for (int i = 0; i < 60; ++i) nested_anchors += "(^";
  for (int i = 0; i < 60; ++i) nested_anchors += "a)*";
  std::string optionals;
  for (int i = 0; i < 20'000; ++i) optionals += "a?";
  for (const std::string& pattern : {nested_anchors, optionals, std::string("(a{1000}){1000}"),
                                     std::string("((a?){999}){999}")}) {
    RegexSet regexes;
    try {
      parse_pattern(regexes, pattern, TextForm::json, PatternMatch::anywhere);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::exhausted);
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

// Each character alone against the set of its code points.
TEST(Pattern, WritesEverySetOfCharactersExactly) {
  std::mt19937 random(7);
  const char32_t borders[] = {0,     9,      0x1F,   0x22,   0x5C,    0x7F,    0x80,    0x7FF,
                              0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x103FF, 0x10FFFF};
  for (int round = 0; round < 200; ++round) {
    CodePointRanges ranges;
    for (int i = 0; i < 3; ++i) {
      const char32_t first = borders[random() % std::size(borders)] + random() % 3;
      ranges.emplace_back(first, std::min<char32_t>(first + random() % 5000, kLastCodePoint));
    }
    std::erase_if(ranges, [](const auto& range) { return range.first > range.second; });
    ranges = sorted_ranges(std::move(ranges));
    RegexSet regexes;
    const RegexId part = one_of_characters(regexes, ranges, TextForm::json);
    const RegexId others = one_of_characters(regexes, all_code_points_but(ranges), TextForm::json);
    EXPECT_FALSE(regexes.overlap(part, others));
    EXPECT_TRUE(regexes.contains(regexes.alternation(part, others),
                                 any_character(regexes, TextForm::json)));
    for (int i = 0; i < 20; ++i) {
      const char32_t c = borders[random() % std::size(borders)] + random() % 3;
      if (c > kLastCodePoint || (c >= 0xD800 && c <= 0xDFFF)) continue;
      const RegexId text = one_of_characters(regexes, {{c, c}}, TextForm::json);
      const bool is_in = !clipped_ranges(ranges, c, c).empty();
      EXPECT_EQ(regexes.contains(part, text), is_in) << static_cast<uint32_t>(c);
    }
  }
}

}  // namespace
}  // namespace paceline
