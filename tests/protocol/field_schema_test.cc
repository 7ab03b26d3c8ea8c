#include "protocol/schemas.h"

#include <gmock/gmock.h>

#include "tests/protocol/endpoints.h"

namespace paceline {
namespace {

std::string schema_of(const FieldList& fields, const RequestTerms& terms = {}) {
  std::string json;
  JsonWriter writer(json);
  write_fields_schema(writer, fields, terms);
  return json;
}

std::string property(const Json& schema, std::string_view name) {
  const Json* found = schema.find("properties")->find(name);
  return found == nullptr ? "" : to_json(*found);
}

TEST(FieldSchema, SaysWhatTheTableSays) {
  const Json schema =
      parse_json(schema_of(completion_request_fields(), {.max_choices = 16}), "schema");
  EXPECT_EQ(to_json(*schema.find("required")), R"(["prompt"])");
  EXPECT_EQ(to_json(*schema.find("additionalProperties")), "false");
  EXPECT_EQ(property(schema, "n"),
            R"({"type":["integer","null"],"minimum":1,"maximum":16,"description":"Answers to each )"
            R"(prompt; the k-th has the seed plus k.","default":1,"x-use":"implemented"})");
  EXPECT_THAT(property(schema, "top_p"), testing::HasSubstr(R"("minimum":0,"maximum":1)"));
  EXPECT_THAT(property(schema, "typical_p"),
              testing::HasSubstr(R"("exclusiveMinimum":0,"maximum":1)"));
  EXPECT_THAT(property(schema, "repeat_penalty"),
              testing::HasSubstr(R"("x-alias-of":"repetition_penalty")"));
  EXPECT_THAT(property(schema, "user"), testing::HasSubstr(R"("x-use":"ignored")"));
  EXPECT_THAT(property(schema, "length_penalty"),
              testing::HasSubstr(R"({"type":"null","x-use":"refused"})"));
  EXPECT_THAT(property(schema, "stream_options"), testing::HasSubstr("include_usage"));
}

// The schema of a property without its description and what follows that.
std::string type_of(const Json& schema, std::string_view name) {
  const std::string json = property(schema, name);
  return json.substr(0, json.find(R"(,"description":)"));
}

TEST(FieldSchema, EveryKindOfTypeHasItsSchema) {
  const Json completions = parse_json(schema_of(completion_request_fields()), "schema");
  const Json chats = parse_json(schema_of(chat_request_fields()), "schema");
  const Json llama = parse_json(schema_of(llama_request_fields()), "schema");
  EXPECT_EQ(type_of(completions, "echo"), R"({"type":["boolean","null"])");
  EXPECT_EQ(type_of(completions, "use_beam_search"),
            R"({"type":["boolean","null"],"enum":[false,null])");
  EXPECT_EQ(type_of(completions, "stop_token_ids"),
            R"({"type":["array","null"],"maxItems":128,"items":{"type":"integer","minimum":0,)"
            R"("maximum":2147483647})");
  const std::string bias =
      R"({"anyOf":[{"type":"number","minimum":-100,"maximum":100},{"type":"boolean",)"
      R"("enum":[false]}]})";
  EXPECT_EQ(type_of(completions, "logit_bias"),
            R"({"anyOf":[{"type":"object","maxProperties":1024,"propertyNames":{"pattern":)"
            R"("^[0-9]{1,9}$"},"additionalProperties":)" +
                bias +
                R"(},{"type":"array","maxItems":1024,"items":{"type":"array","minItems":2,)"
                R"("maxItems":2,"prefixItems":[{"type":"integer","minimum":0,)"
                R"("maximum":2147483647},)" +
                bias + R"(]}},{"type":"boolean","enum":[false]},{"type":"null"}])");
  EXPECT_EQ(type_of(completions, "cache_salt"),
            R"({"type":["string","null"],"maxLength":1024,"x-max-bytes":1024)");
  EXPECT_EQ(
      type_of(completions, "stream_options"),
      R"({"type":["object","null"],"properties":{"include_usage":{"type":["boolean","null"])");
  EXPECT_EQ(type_of(chats, "modalities"),
            R"({"type":["array","null"],"items":{"type":"string","enum":["text"]})");
  EXPECT_EQ(type_of(llama, "lora"), R"({"type":["array","null"],"maxItems":0)");
  EXPECT_THAT(property(completions, "use_beam_search"), testing::HasSubstr(R"("x-use":"partly")"));
}

TEST(FieldSchema, UnknownFieldsAreAllowedWhereTheTermsSaySo) {
  const RequestTerms terms{.on_unknown_field = [](const std::string&) {}};
  const Json schema = parse_json(schema_of(chat_request_fields(), terms), "schema");
  EXPECT_EQ(to_json(*schema.find("additionalProperties")), "true");
}

// Every "$ref" leads to a component.
void check_references(const Json& json, const Json& components) {
  if (json.is_array()) {
    for (const Json& item : json.as_array("")) check_references(item, components);
  }
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.as_object("")) {
    if (key != "$ref") {
      check_references(value, components);
      continue;
    }
    const std::string path = value.as_string("");
    const std::string prefix = "#/components/schemas/";
    ASSERT_TRUE(path.starts_with(prefix)) << path;
    EXPECT_NE(components.find(path.substr(prefix.size())), nullptr) << path;
  }
}

TEST(ResponseSchemas, ReferToOneAnother) {
  const Json components = parse_json(response_schemas_json(), "schemas");
  EXPECT_GT(components.as_object("").size(), 20u);
  check_references(components, components);
}

}  // namespace
}  // namespace paceline
