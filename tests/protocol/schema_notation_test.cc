// The notation of schemas: each form that its header lists, as the JSON Schema it stands for.
#include "protocol/schemas.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

std::string schema_of(const std::string& type) {
  const std::string json = schemas_json("Name = " + type);
  const std::string_view before = R"({"Name":)";
  EXPECT_TRUE(json.starts_with(before) && json.ends_with('}')) << json;
  return json.substr(before.size(), json.size() - before.size() - 1);
}

TEST(SchemaNotation, Types) {
  const std::pair<std::string, std::string> cases[] = {
      {"string", R"({"type":"string"})"},
      {"text", R"({"type":"string","minLength":1})"},
      {"count", R"({"type":"integer","minimum":0})"},
      {"any", "{}"},
      {"integer 1..9", R"({"type":"integer","minimum":1,"maximum":9})"},
      {"number -2..", R"({"type":"number","minimum":-2})"},
      {"integer ..5", R"({"type":"integer","maximum":5})"},
      {"/^a/b$/", R"({"type":"string","pattern":"^a/b$"})"},
      {"'word'", R"({"const":"word"})"},
      {"-7", R"({"const":-7})"},
      {"true", R"({"const":true})"},
      {"Other", R"({"$ref":"#/components/schemas/Other"})"},
  };
  for (const auto& [type, schema] : cases) EXPECT_EQ(schema_of(type), schema) << type;
}

TEST(SchemaNotation, Unions) {
  EXPECT_EQ(schema_of("'a' | 'b' | null"), R"({"enum":["a","b",null]})");
  EXPECT_EQ(schema_of("string | count | null"),
            R"({"type":["string","integer","null"],"minimum":0})");
  EXPECT_EQ(schema_of("Other | null"),
            R"({"anyOf":[{"$ref":"#/components/schemas/Other"},{"type":"null"}]})");
}

TEST(SchemaNotation, ArraysAndObjects) {
  EXPECT_EQ(schema_of("[string]"), R"({"type":"array","items":{"type":"string"}})");
  EXPECT_EQ(schema_of("[string]+"), R"({"type":"array","minItems":1,"items":{"type":"string"}})");
  EXPECT_EQ(schema_of("[]"), R"({"type":"array","maxItems":0})");
  EXPECT_EQ(
      schema_of("{a: string, b?: null}"),
      R"({"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"null"}}})");
  EXPECT_EQ(schema_of("{a: any, ...}"), R"({"type":"object","required":["a"]})");
  EXPECT_EQ(schema_of("{*: count}"),
            R"({"type":"object","additionalProperties":{"type":"integer","minimum":0}})");
  EXPECT_EQ(schema_of("{/^[a-z]$/: any}"),
            R"({"type":"object","propertyNames":{"pattern":"^[a-z]$"},"additionalProperties":{}})");
}

TEST(SchemaNotation, DescriptionsAndGroups) {
  EXPECT_EQ(schema_of("string \"Two\n  lines.\""),
            R"({"type":"string","description":"Two lines."})");
  EXPECT_EQ(
      schemas_json("base = {a: null}\nAll = {...base, b: null}\nSome = {...base?}"),
      R"({"All":{"type":"object","required":["a","b"],"properties":{"a":{"type":"null"},)"
      R"("b":{"type":"null"}}},"Some":{"type":"object","properties":{"a":{"type":"null"}}}})");
}

TEST(SchemaNotationDeathTest, RefusesWhatWouldBeLost) {
  EXPECT_DEATH(schemas_json("Name = {a: string, ...}"), "a type that would be lost");
  EXPECT_DEATH(schemas_json("Name = 'a' | string"), "beside a type other than null");
  EXPECT_DEATH(schemas_json("Name = [string"), "the notation of a schema is wrong");
  EXPECT_DEATH(schemas_json("Name = /^a$"), "the notation of a schema is wrong");
}

}  // namespace
}  // namespace paceline
