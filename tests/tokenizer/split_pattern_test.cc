#include "tokenizer/split_pattern.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "tests/expect_error.h"
#include "tests/test_scale.h"
#include "tests/tokenizer/random_text.h"
#include "tokenizer/regex_dialect.h"
#include "tokenizer/unicode_class.h"

namespace paceline {
namespace {

using Strings = std::vector<std::string_view>;

constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekWords =
    "[!\"#$%&'()*+,\\-./"
    ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
    " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";

Strings split(const SplitPattern& pattern, std::string_view text) {
  Strings pieces;
  pattern.split(text, pieces);
  return pieces;
}

Strings split(std::string_view pattern, std::string_view text) {
  return split(*make_split_pattern(pattern, "test"), text);
}

// The code points that have the same classes in PCRE2 (an older Unicode, and U+180E a space) and in
// our table.
class SameClasses {
 public:
  bool operator()(char32_t code_point) {
    const auto [known, is_new] = known_.emplace(code_point, true);
    if (!is_new) return known->second;
    std::string text;
    append_utf8(text, code_point);
    const uint16_t classes = UnicodeClassTable::shared().of(code_point);
    for (size_t i = 0; i < patterns_.size(); ++i) {
      const bool theirs = split(*patterns_[i], "\x01" + text + "\x01").size() > 1;
      if (theirs != ((classes >> i & 1) != 0)) known->second = false;
    }
    return known->second;
  }

 private:
  static std::unique_ptr<SplitPattern> pcre(std::string_view pattern) {
    return make_pcre_pattern(pattern, "test");
  }

  // In the order of the bits of UnicodeClass.
  std::vector<std::unique_ptr<SplitPattern>> patterns_ = [] {
    std::vector<std::unique_ptr<SplitPattern>> patterns;
    for (const char* pattern : {"\\p{L}", "\\p{N}", "\\p{M}", "\\p{P}", "\\p{S}", "\\s"}) {
      patterns.push_back(pcre(pattern));
    }
    return patterns;
  }();
  std::map<char32_t, bool> known_;
};

std::string only_same_classes(std::string_view text, SameClasses& same) {
  std::string kept;
  while (!text.empty()) {
    const DecodedCodePoint next = decode_utf8(text);
    if (same(next.code_point)) kept += text.substr(0, next.size);
    text.remove_prefix(next.size);
  }
  return kept;
}

class KnownPattern : public testing::TestWithParam<std::string_view> {};

TEST_P(KnownPattern, ScannerEqualsPcre2) {
  const auto scanner = make_scanner(GetParam());
  ASSERT_NE(scanner, nullptr);
  const auto pcre = make_pcre_pattern(GetParam(), "test");
  SameClasses same;
  RandomText random(3);
  size_t num_pieces = 0;
  const int num_rounds = scaled(20'000, 2'000'000);
  for (int i = 0; i < num_rounds; ++i) {
    const std::string text = only_same_classes(random.text(12), same);
    const Strings pieces = split(*scanner, text);
    ASSERT_EQ(pieces, split(*pcre, text)) << text;
    num_pieces += pieces.size();
  }
  EXPECT_GT(num_pieces, static_cast<size_t>(num_rounds));
}

INSTANTIATE_TEST_SUITE_P(All, KnownPattern,
                         testing::Values(kGpt2Pattern, kQwen2, kLlama3, kDeepSeekWords,
                                         R"(\p{N}{1,3})", "[一-龥\u3040-ゟ゠-ヿ]+"));

TEST(SplitPattern, CutsAsHuggingFaceDoes) {
  EXPECT_EQ(split(kQwen2, "It's  2024,\n\n ok"),
            (Strings{"It", "'s", " ", " ", "2", "0", "2", "4", ",\n\n", " ok"}));
  EXPECT_EQ(split(kLlama3, "12345 x"), (Strings{"123", "45", " x"}));
  EXPECT_EQ(split(kGpt2Pattern, "I'll  go\n"), (Strings{"I", "'ll", " ", " go", "\n"}));
  EXPECT_EQ(split(kGpt2Pattern, "I'LL"), (Strings{"I", "'", "LL"}));
  EXPECT_EQ(split(kQwen2, "'\u017Ft"), (Strings{"'\u017F", "t"}));  // folds to 's
  EXPECT_EQ(split(kQwen2, ""), Strings{});
  // Letters since Unicode 15.1 and 16, which the classes of HF tokenizers know.
  EXPECT_EQ(split(kQwen2, "a\U0002EBF0\u1C89 "), (Strings{"a\U0002EBF0\u1C89", " "}));
}

TEST(SplitPattern, Pcre2KeepsWhatIsBetweenMatches) {
  EXPECT_EQ(split("b+", "abbac"), (Strings{"a", "bb", "ac"}));
  EXPECT_EQ(split("b*", "abé"), (Strings{"a", "b", "é"}));  // an empty match is a cut
  EXPECT_EQ(split("(?<=a)b", "abb"), (Strings{"a", "b", "b"}));
  EXPECT_EQ(split("x", "ab"), (Strings{"ab"}));
}

TEST(SplitPattern, LimitsStopAPatternThatExplodes) {
  const auto pattern = make_pcre_pattern("(?:a+)+b|(?:a|aa)+c", "test");
  expect_error(ErrorCode::exhausted, {"split pattern"},
               [&] { split(*pattern, std::string(5000, 'a')); });
}

TEST(SplitPattern, DeepMatchesGetALargerStackOrTheInterpreter) {
  const std::string text(200'000, 'a');
  EXPECT_EQ(split("(?:a|b(?=x))+", text), (Strings{text}));
}

TEST(RegexDialect, RefusesWhatTheEnginesReadDifferently) {
  for (const char* pattern :
       {R"(\w+)", R"(\bx)",      R"(\h)",   R"(\R)",   R"(\X)",   R"(\K)",  R"(\1)",
        R"(\v)",  "[[:alpha:]]", "[a[bc]]", "[a&&b]",  "[]a]",    "^a",     "a$",
        "a.",     "(?i)a",       "(?m:a)",  "(?<n>a)", "(*UTF)a", "a{,3}",  "a{2}+",
        "a{2}?",  "{",           "a{x}",    "(?i:ss)", "(?i:fi)", "(?i:é)", R"(\p{Han})",
        R"(\pL)", R"(\p{L)",     R"(a\)",   "[a",      R"([\w])", R"(\x4)", R"(\x{110000000})"}) {
    EXPECT_TRUE(dialect_difference(pattern)) << pattern;
    SCOPED_TRACE(pattern);
    expect_error(ErrorCode::unsupported, {"test: "}, [&] { make_split_pattern(pattern, "test"); });
  }
}

TEST(RegexDialect, TakesThePatternsOfModels) {
  for (const std::string_view pattern :
       {kGpt2Pattern, kQwen2, kLlama3, kDeepSeekWords,
        std::string_view(R"(\p{^L}\P{Lu}\x41\x{1F600}\-\[)"),
        std::string_view(R"([^\S\r\n]++|a*?|(?>b)(?<!c)d{2,3}e{4,}f{5}g)")}) {
    EXPECT_EQ(dialect_difference(pattern), std::nullopt) << pattern;
    EXPECT_NE(make_pcre_pattern(pattern, "test"), nullptr);
  }
}

TEST(SplitPattern, ErrorsNameThePlaceAndTheReason) {
  const std::string message = error_message(ErrorCode::unsupported, [] {
    make_split_pattern(R"(\w+)", "tokenizer.json: pre_tokenizer.pattern.Regex");
  });
  EXPECT_EQ(message,
            R"(tokenizer.json: pre_tokenizer.pattern.Regex: a pattern with \w isn't supported)");
  expect_error(ErrorCode::unsupported, {"test: ", "byte 2"},
               [] { make_split_pattern("(a", "test"); });
  expect_error(ErrorCode::unsupported, {"test: "},
               [] { make_split_pattern(std::string(100'000, 'a'), "test"); });
}

}  // namespace
}  // namespace paceline
