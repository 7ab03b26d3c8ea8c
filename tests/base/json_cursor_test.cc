#include "base/json_cursor.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/json_document.h"

namespace paceline {
namespace {

constexpr std::string_view kBothForms = R"({"name": "x", "size": 4, "share": 0.5, "whole": 4096.0,
    "flag": true, "none": null, "huge": 18446744073709551615, "list": [1, [2, -3], "y"],
    "maps": {"model.norm": {"bits": 4}, "plain_key": 1, "the \"quoted\"": 2}})";

// What reading throws, as "CODE: MESSAGE".
std::string thrown_by(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    return std::string(error_code_name(error.code())) + ": " + error.what();
  }
  return "read";
}

// The same for a tree and for a document.
template <class Check>
void with_both(const Check& check) {
  const Json tree = parse_json(kBothForms, "t.json");
  check(JsonCursor(tree, "t.json", ErrorCode::corrupt));
  const JsonDocument document(std::string(kBothForms), "t.json", ErrorCode::corrupt);
  check(document.root());
}

TEST(JsonCursor, ReadsBothForms) {
  with_both([](const auto& root) {
    EXPECT_EQ(root.at("name").string(), "x");
    EXPECT_EQ(root.at("size").integer(), 4);
    EXPECT_EQ(root.at("size").number(), 4.0);
    EXPECT_EQ(root.at("share").number({.min = 0, .max = 1}), 0.5);
    EXPECT_EQ(root.at("huge").unsigned_integer(), ~uint64_t{0});
    EXPECT_TRUE(root.boolean_or("flag", false));
    EXPECT_TRUE(root.boolean_or("none", true));
    EXPECT_FALSE(root.find("none"));
    EXPECT_FALSE(root.find("absent"));
    EXPECT_TRUE(root.contains("none"));
    EXPECT_EQ(root.at("list").num_items(), 3u);
    EXPECT_EQ(root.at("list").item(1).items()[1].integer(), -3);
    EXPECT_EQ(root.at("maps").members()[0].key, "model.norm");
  });
}

TEST(JsonCursor, ErrorsSayWhereWhatWasFoundAndWhatWasExpected) {
  const auto expect = [](const std::string& expected, const auto& read) {
    with_both([&](const auto& root) {
      EXPECT_EQ(thrown_by([&] { read(root); }), "corrupt: t.json: " + expected);
    });
  };
  expect("size: found 4, expected a string", [](auto root) { root.at("size").string(); });
  expect("name: found \"x\", expected an integer", [](auto root) { root.at("name").integer(); });
  expect("share: found 0.5, expected an integer", [](auto root) { root.at("share").integer(); });
  expect("flag: found true, expected a number", [](auto root) { root.at("flag").number(); });
  expect("none: found null, expected true or false", [](auto root) { root.at("none").boolean(); });
  expect("list: found an array, expected an object", [](auto root) { root.at("list").object(); });
  expect("maps: found an object, expected an array", [](auto root) { root.at("maps").items(); });
  expect("huge: found 18446744073709551615, expected an integer below 2^63",
         [](auto root) { root.at("huge").integer(); });
  expect("size: found 4, expected an integer from 5 to 9",
         [](auto root) { root.at("size").integer({.min = 5, .max = 9}); });
  expect("share: found 0.5, expected a number above 0.5 and at most 1",
         [](auto root) { root.at("share").number({.min = 0.5, .max = 1, .above_min = true}); });
  expect("absent: missing", [](auto root) { root.at("absent"); });
  expect("list[1][1]: found -3, expected an integer from 0 on",
         [](auto root) { root.at("list").item(1).item(1).unsigned_integer(); });
  expect("list: 3 items, expected more than 3", [](auto root) { root.at("list").item(3); });
  expect("maps[\"model.norm\"].bits: found 4, expected an array",
         [](auto root) { root.at("maps").at("model.norm").at("bits").array(); });
  expect("maps[\"the \\\"quoted\\\"\"]: found 2, expected a string",
         [](auto root) { root.at("maps").at("the \"quoted\"").string(); });
  expect("maps: unknown field plain_key; did you mean plain_keys?", [](auto root) {
    const std::string_view known[] = {"model.norm", "plain_keys"};
    root.at("maps").expect_keys(known);
  });
}

TEST(JsonCursor, LongStringsAreCutInMessages) {
  const Json text(std::string(59, 'a') + "\u00e9\u00e9");
  EXPECT_EQ(thrown_by([&] { JsonCursor(text, "t").integer(); }),
            "invalid: t: found \"" + std::string(59, 'a') + "\"..., expected an integer");
}

TEST(JsonCursor, AWholeDoubleIsAnIntegerOfATreeOnly) {
  const Json tree = parse_json(kBothForms, "t.json");
  EXPECT_EQ(JsonCursor(tree, "t.json").at("whole").integer(), 4096);
  const JsonDocument document(std::string(kBothForms), "t.json");
  EXPECT_EQ(thrown_by([&] { document.root().at("whole").integer(); }),
            "invalid: t.json: whole: found 4096.0, expected an integer");
}

TEST(JsonDocument, DuplicateKeysAreRefusedAtAnyDepth) {
  const auto refusal = [](const std::string& text) {
    return thrown_by([&] { JsonDocument(text, "t.json"); });
  };
  EXPECT_EQ(refusal(R"({"a": 1, "b": 2, "a": 3})"), "invalid: t.json: the key \"a\" occurs twice");
  EXPECT_EQ(refusal(R"({"b": {"c": 1, "\u0063": 2}})"),
            "invalid: t.json: b: the key \"c\" occurs twice");
  EXPECT_EQ(refusal(R"({"x": [1, {"y": {}}, {"y": {"z": 1, "z": 1}}]})"),
            "invalid: t.json: x[2].y: the key \"z\" occurs twice");
  for (const int size : {15, 16, 17, 18, 1000}) {
    std::string members;
    for (int i = 0; i < size; ++i) members += "\"" + std::to_string(i) + "\": 0, ";
    EXPECT_EQ(refusal("{" + members + "\"x\": 0}"), "read") << size;
    for (const int twice : {0, 15, size - 1}) {
      if (twice >= size) continue;
      const std::string key = "\"" + std::to_string(twice) + "\"";
      EXPECT_EQ(refusal("{" + members + key + ": 0}"),
                "invalid: t.json: the key " + key + " occurs twice");
    }
  }
}

TEST(JsonDocument, HugeIntegersAreDoublesOrRefusedByName) {
  const auto refusal = [](const std::string& text) {
    return thrown_by([&] { JsonDocument(text, "t", ErrorCode::corrupt, HugeIntegers::refused); });
  };
  const JsonDocument huge("[1000000000000000019884624838656]", "t");
  EXPECT_EQ(huge.root().item(0).number(), 1e30);
  EXPECT_EQ(refusal("[18446744073709551615, -9223372036854775808, 1e30, 18446744073709551616.0]"),
            "read");
  EXPECT_EQ(refusal("[18446744073709551616]"),
            "corrupt: t: [0]: found 18446744073709551616, expected an integer of at most 64 bits");
  EXPECT_EQ(refusal(R"({"a\"1": [1, -2.5e3, "3 \\", "\"4"], "b": {"c.d": -9223372036854775809}})"),
            "corrupt: t: b[\"c.d\"]: found -9223372036854775809, expected an integer of at most "
            "64 bits");
  EXPECT_EQ(
      refusal(R"([1, [2], {"x": true, "y": [3, 99999999999999999999]}, 88888888888888888888])"),
      "corrupt: t: [2].y[1]: found 99999999999999999999, expected an integer of at most "
      "64 bits");
  EXPECT_TRUE(refusal("[99999999999999999999").starts_with("corrupt: t: not valid JSON: "));
}

TEST(JsonDocument, RefusesWhatATreeRefuses) {
  for (const std::string text : {"", "{", "[1,]", "{} x", "\"\xff\"", "01"}) {
    EXPECT_EQ(thrown_by([&] { JsonDocument(text, "t", ErrorCode::corrupt); }),
              thrown_by([&] { parse_json(text, "t", ErrorCode::corrupt); }));
    EXPECT_NE(thrown_by([&] { JsonDocument(text, "t"); }), "read") << text;
  }
  const std::string deep = std::string(65, '[') + std::string(65, ']');
  EXPECT_EQ(thrown_by([&] { JsonDocument(deep, "t"); }),
            "invalid: t: not valid JSON: line 1, column 65: nested deeper than 64");
}

}  // namespace
}  // namespace paceline
