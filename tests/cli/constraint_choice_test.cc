#include "cli/constraint_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/usage_error.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using ConstraintKind = ConstraintSpec::Kind;

std::optional<NamedConstraint> of_line(std::string_view json, bool strict = false) {
  return read_constraint(parse_json(json, "line"), strict);
}

template <class Failure, class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no error";
}

TEST(ChosenConstraint, IsTheOneThatWasGiven) {
  EXPECT_FALSE(chosen_constraint({}).has_value());
  EXPECT_FALSE(chosen_constraint({.strict = true}).has_value());
  const auto regex = chosen_constraint({.regex = "a+"});
  EXPECT_EQ(regex->spec, (ConstraintSpec{.kind = ConstraintKind::regex, .text = "a+"}));
  EXPECT_EQ(regex->name, "--regex");
  EXPECT_TRUE(regex->is_argument);
  EXPECT_THAT(chosen_constraint({.choices = {"a,b"}})->spec.choices, ElementsAre("a", "b"));
  EXPECT_THAT(chosen_constraint({.choices = {"a,b", "c"}})->spec.choices, ElementsAre("a,b", "c"));
  EXPECT_THAT(message_of<UsageError>([] { chosen_constraint({.regex = "a", .choices = {"b"}}); }),
              HasSubstr("--regex and --choice"));
}

TEST(ReadConstraint, ReadsEveryKind) {
  EXPECT_FALSE(of_line(R"({"prompt": "a", "regex": null, "json_object": false})").has_value());
  const auto schema = of_line(R"({"json_schema": {"type": "integer"}, "strict": true})");
  EXPECT_EQ(schema->spec.text, R"({"type":"integer"})");
  EXPECT_TRUE(schema->spec.strict);
  EXPECT_FALSE(schema->is_argument);
  EXPECT_EQ(of_line(R"({"json_schema": "true"})")->spec.text, "true");
  EXPECT_EQ(of_line(R"({"grammar": "root ::= \"a\""})")->name, "grammar");
  EXPECT_THAT(of_line(R"({"choice": ["a,b"]})")->spec.choices, ElementsAre("a,b"));
  EXPECT_EQ(of_line(R"({"json_object": true})")->spec.kind, ConstraintKind::json_object);
}

TEST(ReadConstraint, IsAsStrictAsTheOptionsUnlessTheLineSays) {
  EXPECT_TRUE(of_line(R"({"json_schema": {}})", true)->spec.strict);
  EXPECT_FALSE(of_line(R"({"json_schema": {}, "strict": false})", true)->spec.strict);
  EXPECT_THAT(message_of<Error>([] { of_line(R"({"strict": true})"); }), HasSubstr("strict: "));
}

TEST(ReadConstraint, RefusesTwo) {
  EXPECT_THAT(message_of<Error>([] { of_line(R"({"grammar": "a", "json_object": true})"); }),
              HasSubstr("grammar and json_object"));
}

TEST(WithConstraint, NamesWhatIsWrong) {
  Settings settings;
  settings.constraint.regex = "a(";
  EXPECT_THAT(message_of<UsageError>([&] { with_constraint(settings); }),
              HasSubstr("--regex: the pattern 'a(', character 2"));
  settings.constraint.regex = "a";
  const Settings complete = with_constraint(settings);
  EXPECT_EQ(complete.generate.constraint->text, "a");
  EXPECT_EQ(complete.generate.constraint_name, "--regex");
}

TEST(ApplyConstraintFields, OverrideTheOption) {
  Settings settings;
  settings.constraint.regex = "a";
  settings = with_constraint(settings);
  apply_constraint_fields(parse_json(R"({"prompt": "x"})", "line"), settings);
  EXPECT_EQ(settings.generate.constraint_name, "--regex");
  apply_constraint_fields(parse_json(R"({"choice": ["x"]})", "line"), settings);
  EXPECT_EQ(settings.generate.constraint->kind, ConstraintKind::choice);
  EXPECT_EQ(settings.generate.constraint_name, "choice");
}

}  // namespace
}  // namespace paceline
