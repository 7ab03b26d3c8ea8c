#include "grammar/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "grammar/decimal.h"
#include "paceline/error.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

void expect_numbers(RegexSet& regexes, RegexId regex, const std::vector<std::string>& matching,
                    const std::vector<std::string>& others) {
  for (const std::string& text : matching) EXPECT_TRUE(regexes.matches(regex, text)) << text;
  for (const std::string& text : others) EXPECT_FALSE(regexes.matches(regex, text)) << text;
}

TEST(JsonText, NumbersHaveTheirSyntax) {
  RegexSet regexes;
  expect_numbers(regexes, json_integer(regexes), {"0", "-0", "12", "1.0", "-1.0", "1.00"},
                 {"", "-", "01", "1.5", "1.", ".0", "1e2", "+1"});
  expect_numbers(regexes, json_digits(regexes), {"0", "-0", "12"}, {"", "01", "1.0", "1e2", "+1"});
  expect_numbers(regexes, json_decimal(regexes), {"0", "-0.50", "12.034"},
                 {"", "00", "1.", ".5", "1e2", "-"});
  expect_numbers(regexes, json_number(regexes), {"0", "-0.50", "1e2", "1.5E-07", "0e+0"},
                 {"", "1e", "1e+", "01e2", "e2", "1e2.5"});
}

TEST(JsonText, StringsAreWellFormed) {
  RegexSet regexes;
  expect_numbers(regexes, json_string(regexes),
                 {R"("")", R"("a\/\u0041\"\\\b")", "\"\xc3\xa9\x7f\"", R"("\ud83d\uDE00")",
                  R"("\uD7FF\ue000")"},
                 {"\"", R"("a)", R"("\x")", "\"\n\"", "\"\xc3\"", "\"\xed\xa0\x80\"", R"("\ud83d")",
                  R"("\ude00")", R"("\ud83d\u0041")", R"("\ud83d\ud83d")", R"("\u12")", R"("""")"});
}

// A number in thousandths. `text` is in json_decimal, with at most three digits of a fraction.
int64_t thousandths(const std::string& text) {
  const size_t point = std::min(text.find('.'), text.size());
  std::string digits = text.substr(0, point);
  std::string fraction = point < text.size() ? text.substr(point + 1) : "";
  fraction.resize(3, '0');
  return std::stoll(digits + fraction);
}

std::vector<std::string> small_decimals() {
  std::vector<std::string> texts;
  for (const char* sign : {"", "-"}) {
    for (const char* whole : {"0", "1", "2", "9", "10", "11", "19", "20", "99", "100", "101"}) {
      for (const char* fraction : {"", ".0", ".1", ".5", ".50", ".09", ".9", ".99", ".001"}) {
        texts.push_back(std::string(sign) + whole + fraction);
      }
    }
  }
  return texts;
}

TEST(JsonText, RangesAreThoseOfTheValues) {
  const std::vector<std::string> texts = small_decimals();
  const std::vector<std::string> bounds{"0",     "-0",    "1",   "-1",   "9.99", "10",
                                        "-10.1", "0.001", "100", "-0.5", "19.5"};
  for (const std::string& min : bounds) {
    for (const std::string& max : bounds) {
      for (int excluded = 0; excluded < 4; ++excluded) {
        RegexSet regexes;
        const bool no_min = (excluded & 1) != 0;
        const bool no_max = (excluded & 2) != 0;
        const RegexId regex = json_decimals_between(
            regexes, {.min = min, .max = max, .excludes_min = no_min, .excludes_max = no_max});
        for (const std::string& text : texts) {
          const int64_t value = thousandths(text);
          const bool is_in = thousandths(min) + (no_min ? 1 : 0) <= value &&
                             value <= thousandths(max) - (no_max ? 1 : 0);
          ASSERT_EQ(regexes.matches(regex, text), is_in)
              << text << " in " << min << ", " << max << ", excluded " << excluded;
        }
        EXPECT_FALSE(regexes.matches(regex, "01"));
        EXPECT_FALSE(regexes.matches(regex, "1."));
        EXPECT_TRUE(regexes.contains(json_decimal(regexes), regex));
      }
    }
  }
}

TEST(JsonText, BoundsMayHaveExponentsAndManyDigits) {
  RegexSet regexes;
  expect_numbers(regexes, json_decimals_between(regexes, {.min = "1e2", .max = "25E1"}),
                 {"100", "250.000"}, {"99.999", "250.0001"});
  expect_numbers(regexes, json_decimals_between(regexes, {.min = "-1.7976931348623157e308"}),
                 {"-17" + std::string(307, '0'), "0"}, {"-18" + std::string(307, '0')});
  expect_numbers(regexes, json_decimals_between(regexes, {.max = "1e-3", .excludes_max = true}),
                 {"0.00099", "-7"}, {"0.001"});
}

TEST(JsonText, MultiplesAreExact) {
  RegexSet regexes;
  expect_numbers(regexes, json_multiples_of(regexes, "0.01"), {"0", "-19.99", "1.230"},
                 {"0.001", "01", "1."});
  expect_numbers(regexes, json_multiples_of(regexes, "1"), {"7", "-7.0"}, {"7.5"});
  expect_numbers(regexes, json_multiples_of(regexes, "1e2"), {"0", "300", "-1200.0"},
                 {"30", "100.5", "00"});
  expect_numbers(regexes, json_multiples_of(regexes, "1.5"), {"0", "-0", "4.50", "-3"},
                 {"4", "4.55", "0.5", "03"});
  expect_numbers(regexes, json_multiples_of(regexes, "7"),
                 {"14", "-21.0", "7000000000000000000000"}, {"1", "14.7", "7.0.0"});
}

TEST(JsonText, EqualNumbersHaveAllTheirForms) {
  RegexSet regexes;
  expect_numbers(regexes, json_number_equal_to(regexes, "1.50"), {"1.5", "1.5000"},
                 {"1.51", "01.5", "-1.5", "1"});
  expect_numbers(regexes, json_number_equal_to(regexes, "-0.0"), {"0", "-0", "0.00", "-0.0"},
                 {"", "00", "0.1"});
  expect_numbers(regexes, json_number_equal_to(regexes, "-12e1"), {"-120", "-120.0"},
                 {"120", "-12"});
}

TEST(JsonText, RefusesOtherNumbers) {
  RegexSet regexes;
  for (const char* text : {"", "-", "01", "1.", "1e", "+1", " 1", "1 ", "NaN"}) {
    expect_error(ErrorCode::invalid, {"number"}, [&] { json_number_equal_to(regexes, text); });
  }
  for (const char* text : {"1e401", "1e-500", "1e99999999999999999999"}) {
    expect_error(ErrorCode::exhausted, {"400 digits"},
                 [&] { json_number_equal_to(regexes, text); });
  }
  expect_error(ErrorCode::invalid, {"above 0"}, [&] { json_multiples_of(regexes, "0"); });
  expect_error(ErrorCode::unsupported, {"2^31"}, [&] { json_multiples_of(regexes, "2147483649"); });
  expect_error(ErrorCode::unsupported, {"18 digits"}, [&] { json_multiples_of(regexes, "3e-19"); });
}

}  // namespace
}  // namespace paceline
