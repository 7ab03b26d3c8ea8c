#include "protocol/request_fields.h"

#include <gmock/gmock.h>

#include "grammar/constraint_cache.h"
#include "protocol/api_error.h"
#include "protocol/llama_request.h"
#include "tests/protocol/requests.h"

namespace paceline {
namespace {

using Kind = ConstraintSpec::Kind;

std::optional<ConstraintSpec> of_chat(std::string_view members) {
  return chat(chat_body(members)).options.constraint;
}

TEST(ConstraintFields, EachNameSaysTheSame) {
  const ConstraintSpec schema{.kind = Kind::json_schema, .text = R"({"type":"integer"})"};
  for (const char* members :
       {R"("response_format": {"type": "json_object", "schema": {"type": "integer"}})",
        R"("structured_outputs": {"json": {"type": "integer"}})",
        R"("structured_outputs": {"json": "{\"type\":\"integer\"}", "disable_fallback": true})",
        R"("guided_json": {"type": "integer"})", R"("json_schema": {"type": "integer"})"}) {
    EXPECT_EQ(of_chat(members), schema) << members;
    EXPECT_EQ(completion(completion_body(members)).options.constraint, schema) << members;
  }
  ConstraintSpec best_effort = schema;
  best_effort.best_effort = true;
  EXPECT_EQ(of_chat(R"("response_format": {"type": "json_schema", "json_schema":
                        {"name": "n", "description": "d", "schema": {"type": "integer"}}})"),
            best_effort);
  const ConstraintSpec choice{.kind = Kind::choice, .choices = {"a", "b"}};
  EXPECT_EQ(of_chat(R"("guided_choice": ["a", "b"])"), choice);
  EXPECT_EQ(of_chat(R"("structured_outputs": {"choice": ["a", "b"]})"), choice);
  const ConstraintSpec regex{.kind = Kind::regex, .text = "a+"};
  EXPECT_EQ(of_chat(R"("guided_regex": "a+")"), regex);
  EXPECT_EQ(of_chat(R"("structured_outputs": {"regex": "a+"})"), regex);
  const ConstraintSpec grammar{.kind = Kind::grammar, .text = "root ::= \"a\""};
  for (const char* name : {"guided_grammar", "grammar"}) {
    EXPECT_EQ(of_chat("\"" + std::string(name) + R"(": "root ::= \"a\"")"), grammar);
  }
  const ConstraintSpec object{.kind = Kind::json_object};
  EXPECT_EQ(of_chat(R"("response_format": {"type": "json_object"})"), object);
  EXPECT_EQ(of_chat(R"("structured_outputs": {"json_object": true})"), object);
  EXPECT_EQ(of_chat(R"("response_format": {"type": "json_schema", "json_schema": {"name": "n"}})"),
            object);
}

TEST(ConstraintFields, TheSameUnderTwoNamesIsOneConstraint) {
  const ConstraintSpec grammar{.kind = Kind::grammar, .text = "root ::= \"a\""};
  EXPECT_EQ(of_chat(R"("guided_grammar": "root ::= \"a\"",
                       "structured_outputs": {"grammar": "root ::= \"a\""})"),
            grammar);
  const ConstraintSpec schema{.kind = Kind::json_schema, .text = R"({"type":"integer"})"};
  EXPECT_EQ(of_chat(R"("guided_json": {"type": "integer"}, "json_schema": {"type": "integer"})"),
            schema);
}

TEST(ConstraintFields, NothingIsNoConstraint) {
  for (const char* members :
       {R"("response_format": {"type": "text"})", R"("grammar": "")", R"("structured_outputs": {})",
        R"("response_format": null)", R"("structured_outputs": {"json_object": false})",
        R"("guided_decoding_backend": "xgrammar")"}) {
    EXPECT_FALSE(of_chat(members)) << members;
  }
}

TEST(ConstraintFields, StrictIsKept) {
  const auto spec = of_chat(R"("response_format": {"type": "json_schema", "json_schema":
                                {"name": "n", "strict": true, "schema": true}})");
  ASSERT_TRUE(spec);
  EXPECT_TRUE(spec->strict);
  EXPECT_FALSE(spec->best_effort);
  EXPECT_EQ(spec->text, "true");
}

TEST(ConstraintFields, MistakesAreNamed) {
  const struct {
    const char* members;
    const char* param;
    const char* code;
  } kCases[] = {
      {R"("guided_regex": "a", "guided_choice": ["b"])", "guided_choice", "invalid_value"},
      {R"("guided_regex": "a", "structured_outputs": {"regex": "b"})", "guided_regex",
       "invalid_value"},
      {R"("grammar": "root ::= x", "response_format": {"type": "json_object"})", "grammar",
       "invalid_value"},
      {R"("structured_outputs": {"regex": "a", "json": {}})", "structured_outputs.regex",
       "invalid_value"},
      {R"("structured_outputs": {"json": 5})", "structured_outputs.json", "invalid_value"},
      {R"("structured_outputs": {"jsno": {}})", "structured_outputs.jsno", "unknown_parameter"},
      {R"("response_format": {"type": "json_schema"})", "response_format.json_schema",
       "missing_required_parameter"},
      {R"("response_format": {"type": "xml"})", "response_format.type", "unsupported_parameter"},
      {R"("response_format": {"type": "json_schema", "schema": {}, "json_schema": {"schema": {}}})",
       "response_format.schema", "invalid_value"},
      {R"("guided_choice": [])", "guided_choice", "invalid_value"},
      {R"("guided_whitespace_pattern": " ?")", "guided_whitespace_pattern",
       "unsupported_parameter"},
  };
  for (const auto& [members, param, code] : kCases) {
    const ApiError error = refusal(chat, chat_body(members));
    EXPECT_EQ(error.field, param) << members << error.message;
    EXPECT_EQ(code_of(error), code) << members;
  }
}

TEST(ConstraintFields, WhatCannotBeEnforcedIsRefusedUnderItsName) {
  ConstraintCache cache([] {
    const std::vector<std::string> tokens{"a", "b"};
    return ConstraintVocabulary{.trie = std::make_shared<const TokenTrie>(tokens), .tokenise = {}};
  });
  const struct {
    const char* members;
    const char* param;
    const char* code;
    const char* message;
  } kCases[] = {
      {R"("guided_regex": "a(")", "guided_regex", "invalid_value", "group"},
      {R"("guided_regex": "(a)\\1")", "guided_regex", "unsupported_parameter", "guided_regex: "},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 5}}})",
       "response_format.json_schema.schema", "invalid_value", "type"},
      {R"("structured_outputs": {"json": {"unevaluatedItems": false, "contains": {}}})",
       "structured_outputs.json", "unsupported_parameter", "structured_outputs.json: "},
  };
  for (const auto& [members, param, code, message] : kCases) {
    const ChatRequest request = chat(chat_body(members));
    try {
      check_constraint(request.generation.constraint, &cache);
      ADD_FAILURE() << "accepted: " << members;
    } catch (const RequestError& error) {
      EXPECT_EQ(error.field(), param) << members;
      EXPECT_EQ(openai_kind(error.reason()).code, code) << members;
      EXPECT_THAT(error.what(), ::testing::HasSubstr(message)) << members;
    }
  }
}

}  // namespace
}  // namespace paceline
