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

// Returns the warnings.
std::vector<std::string> check_schema_case(const SchemaCase& one,
                                           JsonTexts texts = JsonTexts::accepted,
                                           SchemaRigor rigor = SchemaRigor::exact) {
  SCOPED_TRACE(one.schema);
  Grammar grammar = compile_json_schema(one.schema, {.rigor = rigor, .texts = texts});
  for (const std::string_view text : one.accepted) {
    EXPECT_TRUE(naively_accepts(grammar, text)) << text;
  }
  for (const std::string_view text : one.rejected) {
    EXPECT_FALSE(naively_accepts(grammar, text)) << text;
  }
  return grammar.warnings;
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
                      "-1.0", "-0.50", "12000", "12000.0", "1.000", "0.000", "1.5000"},
                     {"01", "1.", "1.05", "10.2", "10.250.0", "-10", "1000", "0.5", "-", "1200"}});
  check_schema_case({R"({"type": "number", "not": {"enum": [0, 1, 1.5]}})",
                     {"2.000", "0.1000"},
                     {"0.000", "1.0000", "1.50000"}});
  std::string many = R"({"enum": [)";
  for (int i = -20'000; i < 20'000; ++i) many += std::to_string(i) + ",";
  many += "0.5]}";
  check_schema_case({many, {"-20000", "19999.0", "0.5"}, {"20000", "-20001", "1.5"}});
}

TEST(JsonSchema, IntegersAreWrittenWithDigitsOnly) {
  const std::string draft4 = R"({"$schema": "http://json-schema.org/draft-04/schema#", )";
  const std::vector<std::string_view> others = {"18.0", "18.00", "1.8e1", "18e0", "18.5"};
  for (const std::string& schema : std::vector<std::string>{
           R"({"type": "integer"})", R"({"type": ["integer", "string"], "minimum": 1})",
           R"({"type": "integer", "exclusiveMaximum": 100.5})",
           R"({"type": "number", "multipleOf": 3})",
           R"({"type": "number", "multipleOf": 1, "not": {"multipleOf": 5}})",
           R"({"enum": [17, 18.0, 1.5]})", R"({"const": 18})", R"({"const": 18.0})",
           R"({"anyOf": [{"const": 18}, {"type": "integer", "multipleOf": 9}]})",
           R"({"type": "integer", "not": {"enum": [7]}})", draft4 + R"("type": "integer"})"}) {
    check_schema_case({schema, {"18"}, others}, JsonTexts::written);
  }
  check_schema_case({R"({"enum": [0, -1, 1.5, 12e3]})",
                     {"0", "-1", "1.5", "12000"},
                     {"-0", "0.0", "-1.0", "1.50", "12e3"}},
                    JsonTexts::written);
  check_schema_case({R"({"type": "number"})", {"18", "18.0", "1.8e1"}, {}}, JsonTexts::written);
  check_schema_case(
      {R"({"type": "number", "not": {"type": "integer"}})", {"1.5"}, {"1", "1.0", "1.00"}},
      JsonTexts::written);
  check_schema_case({draft4 + R"("type": "number", "not": {"type": "integer"}})", {"1.0"}, {"1"}},
                    JsonTexts::written);
  check_schema_case({draft4 + R"("enum": [1], "not": {"type": "integer"}})", {"1.0"}, {"1"}},
                    JsonTexts::written);
}

TEST(JsonSchema, WhatIsWrittenIsNoMultipleWithMoreZeros) {
  check_schema_case({R"({"type": "number", "not": {"multipleOf": 3}})",
                     {"4", "4.5", "-1"},
                     {"3", "3.0", "3.00", "6.000", "4.0"}},
                    JsonTexts::written);
}

TEST(JsonSchema, ValuesOfIntegersAreAcceptedInEveryText) {
  check_schema_case({R"({"type": "integer"})", {"18", "18.0", "18.000"}, {"18.5", "18."}});
  check_schema_case({R"({"not": {"type": "integer"}})", {"1.5"}, {"1", "1.0", "1.00"}});
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

// The texts of a grammar, and their longest run of blanks.
class JsonSchemaBlanks : public testing::TestWithParam<std::pair<JsonTexts, size_t>> {};

TEST_P(JsonSchemaBlanks, NeverFollowEachOtherForEver) {
  const auto [texts, most] = GetParam();
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
    Walker walker(compile_json_schema(schema, {.texts = texts}), trie);
    PlaceId place = Walker::kStart;
    bool is_in_string = false;
    for (const char c : text) {
      const size_t longest = is_in_string ? 0 : longest_blanks(walker, place, 2 * most);
      EXPECT_LE(longest, most);
      place = walker.step(place, static_cast<uint8_t>(c));
      ASSERT_NE(place, Walker::kDead);
      is_in_string ^= c == '"';
    }
    EXPECT_EQ(longest_blanks(walker, place, 2 * most), 0U);
    EXPECT_EQ(longest_blanks(walker, Walker::kStart, 2 * most), most);
  }
}

INSTANTIATE_TEST_SUITE_P(JsonSchema, JsonSchemaBlanks,
                         // A blank, \r\n and the indentation.
                         testing::Values(std::pair{JsonTexts::written, 43},
                                         std::pair{JsonTexts::accepted, 131}));

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
    compile_json_schema(R"({"type": "string", "format": "made-up"})",
                        {.rigor = SchemaRigor::strict});
  });
  expect_error(ErrorCode::invalid, {"#/items", "\"type\"", "\"text\""},
               [] { compile_json_schema(R"({"items": {"type": "text"}})"); });
  expect_error(ErrorCode::invalid, {"#/items", "\"type\"", "\"OBJECT\"", "\"object\""},
               [] { compile_json_schema(R"({"items": {"type": ["null", "OBJECT"]}})"); });
  expect_error(ErrorCode::invalid, {"no value"},
               [] { compile_json_schema(R"({"type": "string", "enum": [1]})"); });
}

struct LeftOut {
  SchemaCase schema;
  std::vector<std::string_view> keywords;  // of the warnings, each with its path
};

TEST(JsonSchema, WithBestEffortWhatCantBeEnforcedIsLeftOutAndTheRestHolds) {
  const LeftOut cases[] = {
      {{R"({"type": "array", "uniqueItems": true, "items": {"type": "integer"}, "maxItems": 2})",
        {"[1,1]"},
        {"[1,2,3]", "[null]"}},
       {"#: \"uniqueItems\""}},
      {{R"({"properties": {"a": {"type": "string", "pattern": "\\bx", "maxLength": 2}}})",
        {R"({"a":"y"})"},
        {R"({"a":"yyy"})", R"({"a":1})"}},
       {"#/properties/a: \"pattern\""}},
      {{R"({"pattern": "(?<=a)b", "type": "string"})", {R"("c")"}, {"1"}}, {"\"pattern\""}},
      {{R"~({"pattern": "a(*ACCEPT)", "type": "string"})~", {R"("c")"}, {"1"}}, {"\"pattern\""}},
      {{R"({"pattern": "\\p{Script=Greek}", "type": "string"})", {R"("c")"}, {"1"}},
       {"\"pattern\""}},
      {{R"({"properties": {"a": {"$ref": "http://x.test/other", "type": "integer"}},
            "additionalProperties": false})",
        {R"({"a":1})"},
        {R"({"a":"x"})", R"({"b":1})"}},
       {"#/properties/a: \"$ref\""}},
      {{R"({"$ref": "other.json#/x"})", {"1", R"("x")"}, {"x"}}, {"#: \"$ref\""}},
      {{R"({"patternProperties": {"\\bx": {"type": "integer"}, "^y": {"type": "null"}},
            "properties": {"a": {"type": "string"}}, "additionalProperties": false})",
        {R"({"a":"","x":1})", R"({"q":1})", R"({"y":null})"},
        {R"({"x":"no"})", R"({"a":1})", R"({"y":1})"}},
       {"\"patternProperties\""}},
      {{R"({"type": "array", "contains": {"type": "null"}, "maxContains": 1})",
        {"[null,1,null]"},
        {"[]", "[1]"}},
       {"\"maxContains\""}},
      {{R"({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": false,
            "required": ["a"]})",
        {R"({"a":1,"b":1})"},
        {R"({"b":1})"}},
       {"\"unevaluatedProperties\""}},
      {{R"({"type": "number", "multipleOf": 99999999999})", {"1"}, {R"("x")"}}, {"\"multipleOf\""}},
      {{R"({"type": "string", "format": "regex"})", {R"("[")"}, {"1"}}, {"\"format\""}},
      {{R"({"$schema": "http://json-schema.org/draft-03/schema#", "type": "null"})",
        {"null"},
        {"1"}},
       {"\"$schema\""}},
  };
  for (const LeftOut& one : cases) {
    const std::vector<std::string> warnings =
        check_schema_case(one.schema, JsonTexts::accepted, SchemaRigor::best_effort);
    ASSERT_EQ(warnings.size(), one.keywords.size()) << one.schema.schema;
    for (size_t i = 0; i < warnings.size(); ++i) {
      EXPECT_NE(warnings[i].find(one.keywords[i]), std::string::npos) << warnings[i];
    }
    EXPECT_THROW(compile_json_schema(one.schema.schema, {.rigor = SchemaRigor::strict}), Error);
  }
}

// Without the keyword these would accept less: "not" and its like turn around what a part says.
TEST(JsonSchema, WithBestEffortNoValidValueIsRefused) {
  const SchemaCase cases[] = {
      {R"({"type": "string", "not": {"pattern": "\\bx"}})", {R"("x")", R"("y")"}, {"1"}},
      {R"({"not": {"type": "string", "pattern": "\\bx"}})", {R"("x")", R"("y")", "1"}, {}},
      {R"({"not": {"type": "array", "uniqueItems": true}})", {"[1,1]", "1"}, {"[1]"}},
      {R"({"not": {"required": ["a"], "properties": {"a": {"$ref": "http://x.test/"}}}})",
       {R"({"a":1})", "{}"},
       {"1"}},
      {R"({"oneOf": [{"type": "string", "pattern": "\\bx"}, {"type": "string", "maxLength": 1}]})",
       {R"("xx")", R"("y")", R"("x")", R"("yyy")"},
       {"1"}},
      {R"({"if": {"properties": {"a": {"pattern": "\\bx"}}}, "then": {"required": ["b"]},
           "else": {"required": ["c"]}})",
       {R"({"a":"x","b":1})", R"({"a":"y","c":1})", R"({"a":"x","c":1})"},
       {R"({"a":"x"})"}},
      {R"({"dependentSchemas": {"a": {"required": ["b"], "properties": {"b": {"pattern": "\\bx"}}}}})",
       {R"({"b":"y","a":1})", "{}"},
       {R"({"a":1})"}},
      {R"({"not": {"patternProperties": {"\\bx": {"type": "integer"}},
                   "additionalProperties": false}})",
       {R"({"x":"no"})", R"({"q":1})", "{}"},
       {}},
      {R"({"type": "string", "enum": [1]})", {"{}"}, {"1"}},  // which nothing obeys
  };
  for (const SchemaCase& one : cases) {
    EXPECT_FALSE(check_schema_case(one, JsonTexts::accepted, SchemaRigor::best_effort).empty())
        << one.schema;
  }
  for (const char* malformed : {R"({"items": {"type": "text"}})", R"({"minLength": -1})",
                                R"({"$ref": "#/$defs/x"})", R"({"properties": []})", "[]"}) {
    expect_error(ErrorCode::invalid, {},
                 [&] { compile_json_schema(malformed, {.rigor = SchemaRigor::best_effort}); });
  }
}

TEST(JsonSchema, OptionsOfGuidanceAreObeyedOrNamed) {
  const std::string compact = R"({"x-guidance": {"whitespace_flexible": false)";
  const std::string rest = R"(}, "properties": {"a": {"items": {}}}, "type": "object"})";
  check_schema_case({compact + rest,
                     {R"({"a":[1,{"x":[]}],"b":1})"},
                     {R"({"a": [1]})", R"({"a":[1, 2]})", R"( {})", R"({"b":{"c": 1}})"}});
  check_schema_case({compact + R"(, "item_separator": ", ", "key_separator": ": ")" + rest,
                     {R"({"a": [1, 2], "b": {"c": 1}})"},
                     {R"({"a":[1, 2]})", R"({"a": [1,2]})", "{\n}"}});
  check_schema_case(
      {R"({"x-guidance": {"whitespace_flexible": true, "coerce_one_of": true}})", {"[ 1]"}, {}});
  const std::string lenient =
      R"({"x-guidance": {"lenient": true}, "type": "array", "uniqueItems": true})";
  EXPECT_EQ(check_schema_case({lenient, {"[1,1]"}, {"1"}}).size(), 1U);
  for (const char* guidance : {R"({"whitespace_pattern": " *"})", R"({"whitespace_flexible": 1})",
                               R"({"item_separator": ";"})", R"({"misspelt": true})", "true"}) {
    const std::string schema = R"({"x-guidance": )" + std::string(guidance) + "}";
    expect_error(ErrorCode::unsupported, {"x-guidance"}, [&] { compile_json_schema(schema); });
    EXPECT_EQ(check_schema_case({schema, {"1"}, {}}, JsonTexts::accepted, SchemaRigor::best_effort)
                  .size(),
              1U);
  }
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
