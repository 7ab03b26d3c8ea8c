#include "base/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/error.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

template <class Body>
std::string refusal(Body&& body) {
  return error_message(ErrorCode::invalid, body);
}

std::string parse_refusal(std::string_view text) {
  std::string message = refusal([&] { parse_json(text, "config.json"); });
  EXPECT_TRUE(message.starts_with("config.json: ")) << message << " for " << text;
  return message;
}

std::string nested_arrays(size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(Json, ParsesEveryKind) {
  const Json json = parse_json(
      R"( {"a": [1, -2, 3.5, true, false, null], "b": {"c": "x"}, "e": {}, "z": []} )", "test");
  ASSERT_TRUE(json.is_object());
  const Json::Array& array = json.find("a")->as_array("a");
  ASSERT_EQ(array.size(), 6u);
  EXPECT_EQ(array[0].as_int("a"), 1);
  EXPECT_EQ(array[1].as_int("a"), -2);
  EXPECT_EQ(array[2].as_double("a"), 3.5);
  EXPECT_TRUE(array[3].as_bool("a"));
  EXPECT_FALSE(array[4].as_bool("a"));
  EXPECT_TRUE(array[5].is_null());
  EXPECT_EQ(json.find("b")->find("c")->as_string("b.c"), "x");
  EXPECT_TRUE(json.find("e")->as_object("e").empty());
  EXPECT_TRUE(json.find("z")->as_array("z").empty());
  EXPECT_TRUE(parse_json("null", "test").is_null());
  EXPECT_EQ(parse_json(" \t\r\n7\n", "test").as_int("test"), 7);
}

TEST(Json, ObjectsKeepTheirOrder) {
  const Json json = parse_json(R"({"z":1,"a":2,"m":3})", "test");
  const Json::Object& object = json.as_object("test");
  ASSERT_EQ(object.size(), 3u);
  EXPECT_EQ(object[0].first, "z");
  EXPECT_EQ(object[1].first, "a");
  EXPECT_EQ(object[2].first, "m");
}

TEST(Json, StringsAreUnescaped) {
  EXPECT_EQ(parse_json(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00")", "t").as_string("t"),
            "\"\\/\b\f\n\r\tA\u00e9\u20ac\U0001F600");
  EXPECT_EQ(parse_json(R"("a\u0000b")", "t").as_string("t"), std::string("a\0b", 3));
}

TEST(Json, Numbers) {
  EXPECT_EQ(parse_json("9223372036854775807", "t").as_int("t"),
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_json("-9223372036854775808", "t").as_int("t"),
            std::numeric_limits<int64_t>::min());
  const Json unsigned_limit = parse_json("18446744073709551615", "t");
  EXPECT_TRUE(unsigned_limit.is_integer());
  EXPECT_EQ(unsigned_limit.as_double("t"), 18446744073709551615.0);
  EXPECT_EQ(parse_json("1e-400", "t").as_double("t"), 0.0);
  EXPECT_EQ(parse_json("0.1", "t").as_double("t"), 0.1);
  EXPECT_EQ(parse_json("4096.0", "t").as_int("t"), 4096);
  EXPECT_EQ(parse_json("1e6", "t").as_int("t"), 1'000'000);
  EXPECT_FALSE(parse_json("1e6", "t").is_integer());
  EXPECT_EQ(parse_json("-0.0", "t").as_int("t"), 0);
}

// Python writes int(1e30) in full, for example in tokenizer configurations.
TEST(Json, IntegersBeyond64BitsAreDoubles) {
  const Json json = parse_json(
      R"({"1":"18446744073709551616 \"99999999999999999999","a":18446744073709551616,)"
      R"("b":[-9223372036854775809,1000000000000000019884624838656],"c":18446744073709551615,)"
      R"("d":-9223372036854775808,"e":0.12345678901234567890123,"f":1e2,"g":"\\"})",
      "t");
  EXPECT_EQ(json.find("1")->as_string("t"), "18446744073709551616 \"99999999999999999999");
  EXPECT_EQ(json.find("a")->as_double("t"), 0x1p64);
  EXPECT_FALSE(json.find("a")->is_integer());
  EXPECT_EQ(json.find("b")->as_array("t")[0].as_double("t"), -0x1p63);
  EXPECT_EQ(json.find("b")->as_array("t")[1].as_double("t"), 1e30);
  EXPECT_TRUE(json.find("c")->is_integer());
  EXPECT_EQ(json.find("d")->as_int("t"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(json.find("e")->as_double("t"), 0.12345678901234568);
  EXPECT_EQ(json.find("f")->as_double("t"), 100.0);
  EXPECT_EQ(json.find("g")->as_string("t"), "\\");
  refusal([&] { json.find("a")->as_int("w"); });
  parse_refusal("018446744073709551616");
  parse_refusal("[18446744073709551616,1e999]");
  parse_refusal("[18446744073709551616");
  parse_refusal(std::string(400, '9'));
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "}",
                           "[1,]",
                           "[1 2]",
                           "{\"a\":1,}",
                           "{\"a\" 1}",
                           "{a:1}",
                           "{'a':1}",
                           "tru",
                           "nul",
                           "NaN",
                           "Infinity",
                           "-",
                           "+1",
                           "01",
                           "1.",
                           ".5",
                           "1e",
                           "0x10",
                           "\"a",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\t\"",
                           "[1]]",
                           "1 2",
                           "{} []",
                           "// c\n1",
                           "[1, // c\n2]",
                           "\xEF\xBB\xBF[",
                           "1e999",
                           "-1e999"}) {
    parse_refusal(text);
  }
}

TEST(Json, RefusesIllFormedUtf8AnywhereInTheText) {
  for (const char* text : {"\"\x80\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"",
                           "\"\xE2\x82\"", "{\"\xFF\":1}", "[1]\xFF"}) {
    parse_refusal(text);
  }
}

TEST(Json, RefusesEmbeddedZeros) {
  parse_refusal(std::string_view("[1]\0", 4));
  parse_refusal(std::string_view("[\0]", 3));
}

TEST(Json, DuplicateKeysAreNamed) {
  EXPECT_NE(parse_refusal(R"({"a":1,"b":2,"a":3})").find("\"a\""), std::string::npos);
  EXPECT_NE(parse_refusal(R"({"outer":[{"x":1,"x":1}]})").find("\"x\""), std::string::npos);
  // Also if it is written with an escape.
  EXPECT_NE(parse_refusal(R"({"a":1,"\u0061":2})").find("\"a\""), std::string::npos);
  // Large objects use another search.
  std::string large = "{";
  for (int i = 0; i < 100; ++i) large += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_EQ(parse_json(large + "\"k\":0}", "t").as_object("t").size(), 101u);
  EXPECT_NE(parse_refusal(large + "\"k57\":0}").find("\"k57\""), std::string::npos);
  // The same key in different objects is fine.
  parse_json(R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]})", "t");
}

TEST(Json, DepthIsBounded) {
  EXPECT_TRUE(parse_json(nested_arrays(64), "t").is_array());
  parse_refusal(nested_arrays(65));
  parse_refusal(nested_arrays(100'000));
  std::string objects;
  for (int i = 0; i < 5000; ++i) objects += "{\"a\":";
  parse_refusal(objects + "1" + std::string(5000, '}'));
}

TEST(Json, EveryTruncationIsRefused) {
  const std::string text = R"({"a":[1,2.5,"x\u00e9"],"b":{"c":null,"d":true}})";
  parse_json(text, "t");
  for (size_t length = 0; length < text.size(); ++length) parse_refusal(text.substr(0, length));
}

TEST(Json, AccessorsSayWhereAndWhat) {
  const Json json = parse_json(
      R"({"s":"x","i":1,"d":1.5,"b":true,"n":null,"a":[],"o":{},"u":18446744073709551615})", "t");
  const auto at = [&](const char* key) -> const Json& { return *json.find(key); };
  const auto expect = [](const std::string& message, const char* expected) {
    EXPECT_EQ(message, expected);
  };
  expect(refusal([&] { at("s").as_int("rope.factor"); }),
         "rope.factor: found \"x\", expected an integer");
  expect(refusal([&] { at("d").as_int("w"); }), "w: found 1.5, expected an integer");
  expect(refusal([&] { at("i").as_bool("w"); }), "w: found 1, expected true or false");
  expect(refusal([&] { at("b").as_double("w"); }), "w: found true, expected a number");
  expect(refusal([&] { at("n").as_string("w"); }), "w: found null, expected a string");
  expect(refusal([&] { at("o").as_array("w"); }), "w: found an object, expected an array");
  expect(refusal([&] { at("a").as_object("w"); }), "w: found an array, expected an object");
  expect(refusal([&] { at("u").as_int("w"); }),
         "w: found 18446744073709551615, expected an integer below 2^63");
  EXPECT_EQ(at("i").as_double("w"), 1.0);
}

TEST(Json, IntegersFromDoublesMustBeExact) {
  EXPECT_EQ(Json(9007199254740992.0).as_int("w"), int64_t{1} << 53);
  for (double value : {9007199254740994.0, 1e300, 0.5, std::numeric_limits<double>::infinity(),
                       std::numeric_limits<double>::quiet_NaN()}) {
    refusal([&] { Json(value).as_int("w"); });
  }
}

TEST(Json, FindAndFindValue) {
  const Json json = parse_json(R"({"a":1,"n":null,"":2})", "t");
  EXPECT_EQ(json.find("missing"), nullptr);
  ASSERT_NE(json.find("n"), nullptr);
  EXPECT_EQ(json.find_value("n"), nullptr);
  ASSERT_NE(json.find_value("a"), nullptr);
  EXPECT_EQ(json.find("")->as_int("t"), 2);
  EXPECT_EQ(Json(int64_t{3}).find("a"), nullptr);
  EXPECT_EQ(Json().find_value("a"), nullptr);
}

}  // namespace
}  // namespace paceline
