#include "grammar/json_schema.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/walker.h"
#include "tests/expect_error.h"
#include "tests/grammar/naive_language.h"

namespace paceline {
namespace {

struct SchemaCase {
  std::string_view schema;
  std::vector<std::string_view> accepted;
  std::vector<std::string_view> rejected;
};

void check_schema_case(const SchemaCase& one) {
  SCOPED_TRACE(one.schema);
  Grammar grammar = compile_json_schema(one.schema);
  for (const std::string_view text : one.accepted) {
    EXPECT_TRUE(naively_accepts(grammar, text)) << text;
  }
  for (const std::string_view text : one.rejected) {
    EXPECT_FALSE(naively_accepts(grammar, text)) << text;
  }
}

TEST(JsonSchema, PropertiesComeInTheirOrderAndOthersLast) {
  check_schema_case(
      {R"({"type": "object", "properties": {"b": {"type": "integer"}, "a": {}}, "required": ["b"]})",
       {R"({"b":1})", R"({"b":1,"a":null})", R"({"b":1,"z":2,"y":[]})", R"({"b":-0.0})"},
       {R"({})", R"({"a":null,"b":1})", R"({"z":2,"b":1})", R"({"b":1.5})", R"({"b":1,"b":2})"}});
  check_schema_case({R"({"allOf": [{"$ref": "#/$defs/x"}, {"properties": {"b": {}}}],
                         "properties": {"c": {}}, "$defs": {"x": {"properties": {"a": {}}}}})",
                     {R"({"a":1,"b":1,"c":1})"},
                     {R"({"b":1,"a":1})", R"({"c":1,"a":1})"}});
  check_schema_case({R"({"additionalProperties": false, "anyOf": [{"properties": {"b": {}}}],
                         "properties": {"a": {}, "b": {}}})",
                     {R"({"a":1,"b":1})"},
                     {R"({"b":1,"a":1})", R"({"c":1})"}});
}

TEST(JsonSchema, ConditionsDontPlaceWhatIsDeclared) {
  check_schema_case(
      {R"({"allOf": [{"if": {"properties": {"k": {"const": 1}}},
                      "then": {"properties": {"v": {"const": 2}, "w": {}}}}],
           "additionalProperties": {"type": "null"}, "properties": {"a": {}, "k": {}, "v": {}}})",
       {R"({"a":1,"k":1,"v":2})", R"({"w":null,"a":1,"k":1,"v":2})", R"({"a":1,"k":2,"v":3})"},
       {R"({"k":1,"a":1})", R"({"a":1,"k":1,"v":3})"}});
  check_schema_case({R"({"dependencies": {"b": {"properties": {"c": {"const": 1}}}},
                         "properties": {"a": {}, "b": {}, "c": {}}})",
                     {R"({"a":1,"b":1,"c":1})", R"({"a":1,"c":2})"},
                     {R"({"b":1,"c":2})", R"({"c":1,"a":1})"}});
  check_schema_case({R"({"anyOf": [{"properties": {"x": {"const": 1}, "a": {}}}],
                         "properties": {"a": {}}})",
                     {R"({"x":1,"a":1})"},
                     {R"({"a":1,"x":1})"}});
}

TEST(JsonSchema, ListedNumbersAreReadByValue) {
  check_schema_case({R"({"enum": [0, 1, 10, 100, 1.5, 10.25, -1, -0.5, 12e3]})",
                     {"0", "-0.0", "1", "1.00", "10", "100.0", "1.5", "1.500", "10.25", "-1",
                      "-1.0", "-0.50", "12000", "12000.0"},
                     {"01", "1.", "1.05", "10.2", "10.250.0", "-10", "1000", "0.5", "-", "1200",
                      "1.000", "0.000", "1.5000"}});
  check_schema_case({R"({"type": "number", "not": {"enum": [0, 1, 1.5]}})",
                     {"2.000", "0.1000"},
                     {"0.000", "1.0000", "1.50000"}});
  std::string many = R"({"enum": [)";
  for (int i = -20'000; i < 20'000; ++i) many += std::to_string(i) + ",";
  many += "0.5]}";
  check_schema_case({many, {"-20000", "19999.0", "0.5"}, {"20000", "-20001", "1.5"}});
}

TEST(JsonSchema, BlanksAreThoseOfUsualPrintersAndBounded) {
  const std::string_view schema = R"({"properties": {"a": {"items": {"type": "integer"}}}})";
  check_schema_case({schema,
                     {R"({"a":[1,2]})", R"({"a": [1, 2]})", "{\n  \"a\": [\n    1,\n    2\n  ]\n}",
                      "{\r\n\t\"a\": []\r\n}"},
                     {R"({"a":  [1]})", R"({"a":[1]} )", "{\n\n\"a\":[]}"}});
}

// The most blanks that may follow, at most `limit`.
size_t longest_blanks(Walker& walker, PlaceId from, size_t limit) {
  std::set<PlaceId> places{from};
  for (size_t length = 0; length < limit; ++length) {
    std::set<PlaceId> next;
    for (const PlaceId place : places) {
      for (const char blank : {' ', '\t', '\r', '\n'}) {
        next.insert(walker.step(place, static_cast<uint8_t>(blank)));
      }
    }
    next.erase(Walker::kDead);
    if (next.empty()) return length;
    places = std::move(next);
  }
  return limit;
}

TEST(JsonSchema, BlanksNeverFollowEachOtherForEver) {
  constexpr size_t kMost = 131;  // a blank, \r\n and the indentation
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  const auto trie = std::make_shared<const TokenTrie>(bytes);
  const std::string text = R"({"a":[[],{},[[1,-2.5e3]]],"b":"x","c":{"d":null},"e":{"f":[]}})";
  for (const std::string_view schema :
       {R"({"type": "object"})", R"({"properties": {"a": {"items": {"$ref": "#/$defs/x"}},
        "b": {"pattern": "^x"}, "c": {"minProperties": 1},
        "e": {"additionalProperties": {"maxItems": 9}}},
        "$defs": {"x": {"type": ["array", "object", "number"], "items": {"$ref": "#/$defs/x"}}}})"}) {
    SCOPED_TRACE(schema);
    Walker walker(compile_json_schema(schema), trie);
    PlaceId place = Walker::kStart;
    bool is_in_string = false;
    for (const char c : text) {
      const size_t longest = is_in_string ? 0 : longest_blanks(walker, place, 2 * kMost);
      EXPECT_LE(longest, kMost);
      place = walker.step(place, static_cast<uint8_t>(c));
      ASSERT_NE(place, Walker::kDead);
      is_in_string ^= c == '"';
    }
    EXPECT_EQ(longest_blanks(walker, place, 2 * kMost), 0U);
    EXPECT_EQ(longest_blanks(walker, Walker::kStart, 2 * kMost), kMost);
  }
}

TEST(JsonSchema, CountsNeverLeadIntoADeadEnd) {
  check_schema_case({R"({"type": "object", "properties": {"a": {}, "b": {}, "c": {}},
                         "required": ["c"], "minProperties": 2, "maxProperties": 2,
                         "additionalProperties": false})",
                     {R"({"a":1,"c":1})", R"({"b":1,"c":1})"},
                     {R"({"c":1})", R"({"a":1,"b":1,"c":1})", R"({"a":1,"b":1})"}});
  check_schema_case({R"({"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2},
                         "minItems": 2, "maxItems": 3})",
                     {"[1,2]", "[1,2,2]"},
                     {"[1]", "[2,2]", "[1,2,2,2]"}});
  check_schema_case({R"({"type": "array", "contains": {"const": 1}, "minContains": 2})",
                     {"[1,1]", "[0,1,0,1]", "[1,1,1]"},
                     {"[]", "[1]", "[0,1,0]"}});
}

TEST(JsonSchema, NamesAreReadByPattern) {
  check_schema_case({R"({"type": "object", "properties": {"ab": {"type": "integer"}},
                         "patternProperties": {"^a": {"minimum": 3}, "b$": {"maximum": 5}},
                         "additionalProperties": {"type": "null"}})",
                     {R"({"ab":4})", R"({"a":3.5,"xb":5,"q":null})", R"({"a1b":4})"},
                     {R"({"ab":6})", R"({"ab":4.5})", R"({"a1b":6})", R"({"q":1})"}});
  check_schema_case({R"({"type": "object", "propertyNames": {"maxLength": 1}, "required": ["b"]})",
                     {R"({"b":1,"a":1})"},
                     {R"({"a":1})", R"({"b":1,"ab":1})"}});
}

TEST(JsonSchema, NegationsAndChoicesAreExact) {
  check_schema_case({R"({"not": {"properties": {"a": {"type": "integer"}}}})",
                     {R"({"a":"x"})", R"({"a":1.5})"},
                     {R"({"a":1})", R"({"b":1})", "1", "{}"}});
  check_schema_case({R"({"type": "object", "not": {"additionalProperties": {"type": "integer"}}})",
                     {R"({"a":"x"})", R"({"a":1,"b":"x"})"},
                     {"{}", R"({"a":1})"}});
  check_schema_case({R"({"oneOf": [{"type": "integer"}, {"minimum": 2}]})",
                     {"1", "2.5", "\"x\""},
                     {"2", "1.5", "3.0"}});
  check_schema_case({R"({"type": "object", "properties": {"k": {"enum": ["a", "b"]}, "v": {}},
                         "required": ["k", "v"], "if": {"properties": {"k": {"const": "a"}}},
                         "then": {"properties": {"v": {"type": "null"}}},
                         "else": {"properties": {"v": {"type": "boolean"}}}})",
                     {R"({"k":"a","v":null})", R"({"k":"b","v":true})"},
                     {R"({"k":"a","v":true})", R"({"k":"b","v":null})"}});
  check_schema_case({R"({"properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}})",
                     {"{}", R"({"b":1})", R"({"a":1,"b":1})"},
                     {R"({"a":1})"}});
  check_schema_case({R"({"enum": [1, "x", [1, {"a": 2}]], "not": {"const": "x"}})",
                     {"1", "1.0", R"([1, {"a": 2}])"},
                     {"\"x\"", R"([1,{"a":3}])", "[1]"}});
}

TEST(JsonSchema, ReferencesStayInTheDocument) {
  check_schema_case({R"({"properties": {"next": {"$ref": "#"}}, "additionalProperties": false,
                         "type": "object"})",
                     {R"({"next":{"next":{}}})"},
                     {R"({"next":1})", R"({"next":{"next":{"x":1}}})"}});
  check_schema_case({R"({"$id": "http://x.test/a", "$ref": "b#top",
                         "$defs": {"b": {"$id": "b", "$defs": {"c": {"$anchor": "top",
                                                                     "const": 1}}}}})",
                     {"1"},
                     {"2"}});
  expect_error(ErrorCode::unsupported, {"$ref", "outside of the document"},
               [] { compile_json_schema(R"({"$ref": "http://x.test/other"})"); });
  expect_error(ErrorCode::invalid, {"$ref", "leads back"},
               [] { compile_json_schema(R"({"allOf": [{"$ref": "#"}]})"); });
}

TEST(JsonSchema, DraftsDiffer) {
  const std::string draft4 = R"({"$schema": "http://json-schema.org/draft-04/schema#", )";
  const std::string draft7 = R"({"$schema": "http://json-schema.org/draft-07/schema#", )";
  const std::string last = R"({"$schema": "https://json-schema.org/draft/2020-12/schema", )";
  check_schema_case({draft4 + R"("type": "integer", "minimum": 1, "exclusiveMinimum": true})",
                     {"2"},
                     {"1", "2.0"}});
  check_schema_case({draft7 + R"("type": "integer", "exclusiveMinimum": 1})", {"2.0"}, {"1"}});
  check_schema_case({draft4 + R"("const": 1})", {"2"}, {}});
  const std::string siblings = R"("properties": {"a": {"$ref": "#/definitions/n", "maximum": 1}},
                                  "definitions": {"n": {"type": "integer"}}})";
  check_schema_case({draft7 + siblings, {R"({"a":2})"}, {R"({"a":"x"})"}});
  check_schema_case({last + siblings, {R"({"a":1})"}, {R"({"a":2})"}});
}

TEST(JsonSchema, WhatCantBeEnforcedIsRefusedByName) {
  expect_error(ErrorCode::unsupported, {"#/properties/a", "uniqueItems"},
               [] { compile_json_schema(R"({"properties": {"a": {"uniqueItems": true}}})"); });
  check_schema_case(
      {R"({"type": "array", "uniqueItems": true, "maxItems": 1})", {"[1]"}, {"[1,1]"}});
  check_schema_case({R"({"type": "array", "items": {"enum": ["b", 1, "é", null]}, "minItems": 1,
                         "maxItems": 3, "uniqueItems": true})",
                     {"[null]", R"(["b",1.0,"é"])", R"([1, "\u00e9", null])"},
                     {"[]", R"(["b",1,"é",null])", "[1,1.0]", R"(["é",1,"\u00e9"])"}});
  check_schema_case({R"({"type": "string", "format": "made-up"})", {"\"x\""}, {"1"}});
  expect_error(ErrorCode::unsupported, {"format", "made-up"}, [] {
    compile_json_schema(R"({"type": "string", "format": "made-up"})", {.strict = true});
  });
  expect_error(ErrorCode::invalid, {"#/items", "\"type\"", "\"text\""},
               [] { compile_json_schema(R"({"items": {"type": "text"}})"); });
  expect_error(ErrorCode::invalid, {"no value"},
               [] { compile_json_schema(R"({"type": "string", "enum": [1]})"); });
}

TEST(JsonSchema, BombsEndSoon) {
  std::string doubling = R"({"$ref": "#/$defs/x0", "$defs": {)";
  std::string choices = R"({"oneOf": [)";
  std::string chain = R"({"$ref": "#/$defs/x0", "$defs": {)";
  for (int i = 0; i < 60; ++i) {
    const std::string next = R"({"$ref": "#/$defs/x)" + std::to_string(i + 1) + "\"}";
    doubling += "\"x" + std::to_string(i) + "\": {\"allOf\": [" + next + ", " + next + "]}, ";
  }
  for (int i = 0; i < 3000; ++i) {
    choices += R"({"required": ["a"], "properties": {"a": {"const": )" + std::to_string(i) + "}}},";
    chain +=
        "\"x" + std::to_string(i) + R"(": {"$ref": "#/$defs/x)" + std::to_string(i + 1) + "\"}, ";
  }
  const auto begin = std::chrono::steady_clock::now();
  check_schema_case({doubling + R"("x60": {"const": 1}}})", {"1"}, {"2"}});
  expect_error(ErrorCode::exhausted, {"too complex"},
               [&] { compile_json_schema(choices + "{}]}"); });
  expect_error(ErrorCode::exhausted, {"refer to each other"},
               [&] { compile_json_schema(chain + R"("x3000": {}}})"); });
  check_schema_case({R"({"type": "string", "maxLength": 1000000000})", {"\"x\""}, {"1"}});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(seconds.count(), 20);
}

TEST(AnyJsonObject, AcceptsObjectsOnly) {
  Grammar grammar = any_json_object();
  for (const std::string_view text : {"{}", R"({"a":[1,{"b":null}],"c":"\u00e9"})"}) {
    EXPECT_TRUE(naively_accepts(grammar, text)) << text;
  }
  for (const std::string_view text : {"[]", "1", R"({"a"})", R"({"a":1,})"}) {
    EXPECT_FALSE(naively_accepts(grammar, text)) << text;
  }
}

}  // namespace
}  // namespace paceline
