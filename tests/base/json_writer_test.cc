#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

#include "base/json.h"
#include "base/utf8.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

template <class T>
std::string number_text(T value) {
  std::string out;
  JsonWriter(out).number(value);
  return out;
}

TEST(JsonWriter, PutsCommasBetweenValuesOnly) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object()
      .member("a", 1)
      .key("b")
      .begin_array()
      .integer(-1)
      .begin_object()
      .end_object()
      .begin_array()
      .end_array()
      .null()
      .boolean(true)
      .string("x")
      .raw("[0]")
      .end_array()
      .member("c", false)
      .end_object();
  EXPECT_EQ(out, R"({"a":1,"b":[-1,{},[],null,true,"x",[0]],"c":false})");
}

TEST(JsonWriter, AppendsToWhatIsThere) {
  std::string out = "data: ";
  JsonWriter(out).begin_array().end_array();
  EXPECT_EQ(out, "data: []");
}

TEST(JsonWriter, MembersTakeTheKindOfTheirType) {
  std::string out;
  JsonWriter(out)
      .begin_object()
      .member("i", std::numeric_limits<int64_t>::min())
      .member("u", std::numeric_limits<uint64_t>::max())
      .member("f", 0.1f)
      .member("d", 0.1)
      .member("b", true)
      .member("s", std::string("x"))
      .member("v", std::string_view("y"))
      .member("l", "z")
      .end_object();
  EXPECT_EQ(out, R"({"i":-9223372036854775808,"u":18446744073709551615,"f":0.1,"d":0.1,"b":true,)"
                 R"("s":"x","v":"y","l":"z"})");
}

TEST(JsonWriter, EscapesWhatMustBeEscaped) {
  EXPECT_EQ(json_quote("a\"b\\c/d"), R"("a\"b\\c/d")");
  EXPECT_EQ(json_quote("\b\f\n\r\t"), R"("\b\f\n\r\t")");
  EXPECT_EQ(json_quote(std::string_view("\0\x01\x1f\x7f", 4)), R"("\u0000\u0001\u001f\u007f")");
  EXPECT_EQ(json_quote("\u00e9\u20ac\U0001F600"), "\"\u00e9\u20ac\U0001F600\"");
  std::string out;
  JsonWriter(out).begin_object().member("a\"\n", 1).end_object();
  EXPECT_EQ(out, R"({"a\"\n":1})");
}

TEST(JsonWriter, IllFormedUtf8IsReplaced) {
  EXPECT_EQ(json_quote("a\xFFz"), "\"a\uFFFDz\"");
  EXPECT_EQ(json_quote("\xE2\x82"), "\"\uFFFD\"");
}

TEST(JsonWriter, AnyBytesBecomeAStringThatReadsBack) {
  std::mt19937 random(5);
  const int num_rounds = scaled(5000, 500'000);
  for (int round = 0; round < num_rounds; ++round) {
    std::string text;
    for (size_t length = random() % 20; text.size() < length;) {
      text += static_cast<char>(random() % (random() % 2 == 0 ? 256 : 0x30));
    }
    ASSERT_EQ(parse_json(json_quote(text), "t").as_string("t"), replace_invalid_utf8(text));
  }
}

TEST(JsonWriter, DoublesReadBackToTheSameBits) {
  std::mt19937_64 random(6);
  const int num_rounds = scaled(20'000, 2'000'000);
  for (int round = 0; round < num_rounds; ++round) {
    const auto value = std::bit_cast<double>(random());
    const std::string text = number_text(value);
    if (!std::isfinite(value)) {
      ASSERT_EQ(text, "null");
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint64_t>(std::strtod(text.c_str(), nullptr)),
              std::bit_cast<uint64_t>(value));
    ASSERT_EQ(parse_json(text, "t").as_double("t"), value) << text;
  }
}

TEST(JsonWriter, FloatsReadBackToTheSameBits) {
  std::mt19937 random(7);
  const int num_rounds = scaled(20'000, 2'000'000);
  for (int round = 0; round < num_rounds; ++round) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    const std::string text = number_text(value);
    if (!std::isfinite(value)) {
      ASSERT_EQ(text, "null");
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(std::strtof(text.c_str(), nullptr)),
              std::bit_cast<uint32_t>(value));
    ASSERT_LE(text.size(), 16u);  // as short as a float's digits, not a double's
  }
}

TEST(JsonWriter, NumbersWithoutAValueAreNull) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(number_text(kInfinity), "null");
  EXPECT_EQ(number_text(-kInfinity), "null");
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(number_text(std::numeric_limits<float>::infinity()), "null");
  EXPECT_EQ(number_text(0.0), "0");
  EXPECT_EQ(number_text(1e300), "1e+300");
}

// Writes a random tree and returns it, too.
Json write_random(std::mt19937& random, JsonWriter& writer, int depth) {
  const auto kind = random() % (depth > 0 ? 7 : 5);
  const auto word = static_cast<int64_t>(random());
  switch (kind) {
    case 0:
      writer.null();
      return Json();
    case 1:
      writer.boolean(word % 2 == 0);
      return Json(word % 2 == 0);
    case 2:
      writer.integer(-word);
      return Json(-word);
    case 3: {
      const double value = std::ldexp(static_cast<double>(word), -40) + 0.1;
      writer.number(value);
      return Json(value);
    }
    case 4:
      writer.string(std::to_string(word));
      return Json(std::to_string(word));
    case 5: {
      Json::Array array;
      writer.begin_array();
      for (int64_t i = 0; i < word % 4; ++i)
        array.push_back(write_random(random, writer, depth - 1));
      writer.end_array();
      return Json(std::move(array));
    }
    default: {
      Json::Object object;
      writer.begin_object();
      for (int64_t i = 0; i < word % 4; ++i) {
        const std::string key = "k" + std::to_string(i);
        writer.key(key);
        object.emplace_back(key, write_random(random, writer, depth - 1));
      }
      writer.end_object();
      return Json(std::move(object));
    }
  }
}

void expect_equal(const Json& actual, const Json& expected) {
  ASSERT_EQ(actual.kind(), expected.kind());
  if (actual.is_bool()) {
    ASSERT_EQ(actual.as_bool("t"), expected.as_bool("t"));
  }
  if (actual.is_integer()) {
    ASSERT_EQ(actual.as_int("t"), expected.as_int("t"));
  }
  if (actual.is_number()) {
    ASSERT_EQ(actual.as_double("t"), expected.as_double("t"));
  }
  if (actual.is_string()) {
    ASSERT_EQ(actual.as_string("t"), expected.as_string("t"));
  }
  if (actual.is_array()) {
    ASSERT_EQ(actual.as_array("t").size(), expected.as_array("t").size());
    for (size_t i = 0; i < actual.as_array("t").size(); ++i) {
      expect_equal(actual.as_array("t")[i], expected.as_array("t")[i]);
    }
  }
  if (actual.is_object()) {
    ASSERT_EQ(actual.as_object("t").size(), expected.as_object("t").size());
    for (size_t i = 0; i < actual.as_object("t").size(); ++i) {
      ASSERT_EQ(actual.as_object("t")[i].first, expected.as_object("t")[i].first);
      expect_equal(actual.as_object("t")[i].second, expected.as_object("t")[i].second);
    }
  }
}

TEST(JsonWriter, RandomTreesReadBack) {
  std::mt19937 random(8);
  const int num_rounds = scaled(2000, 200'000);
  for (int round = 0; round < num_rounds; ++round) {
    std::string text;
    JsonWriter writer(text);
    const Json written = write_random(random, writer, 6);
    expect_equal(parse_json(text, "t"), written);
  }
}

TEST(JsonWriter, ATreeReadsBackAsItself) {
  for (const std::string_view text :
       {R"({"a":[1,-2,2.0,-0.0,1e-08,1.5e+300,18446744073709551615,-9223372036854775808],"b":{}})",
        R"([])", R"("\u0000\"é")", R"([null,true,false,[[]],{"x":{"y":"z"}}])", "3.0", "-7"}) {
    const std::string written = to_json(parse_json(text, "test"));
    EXPECT_EQ(to_json(parse_json(written, "again")), written);
    EXPECT_EQ(written, text);
  }
}

}  // namespace
}  // namespace paceline
