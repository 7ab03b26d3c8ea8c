#include "grammar/constraint.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/expect_error.h"
#include "tests/grammar/naive_language.h"

namespace paceline {
namespace {

TEST(CompileConstraint, ChoiceHasItsTextsOnly) {
  Grammar grammar = compile_constraint({.kind = ConstraintSpec::Kind::choice,
                                        .choices = {"yes", "no", "yes, but", "n\u00e9", "", "no"}});
  for (const std::string_view text : {"yes", "no", "yes, but", "n\u00e9", ""}) {
    EXPECT_TRUE(naively_accepts(grammar, text)) << text;
  }
  for (const std::string_view text : {"y", "yesno", "n", "yes, ", "noo", "n\xc3"}) {
    EXPECT_FALSE(naively_accepts(grammar, text)) << text;
  }
}

TEST(CompileConstraint, ManyChoicesAreCheap) {
  std::vector<std::string> choices;
  for (int i = 0; i < 20'000; ++i) choices.push_back("item " + std::to_string(i * 7919 % 20'000));
  Grammar grammar =
      compile_constraint({.kind = ConstraintSpec::Kind::choice, .choices = std::move(choices)});
  EXPECT_TRUE(naively_accepts(grammar, "item 19999"));
  EXPECT_FALSE(naively_accepts(grammar, "item 20000"));
  EXPECT_LT(grammar.regexes.num_nodes(), 5'000);
}

TEST(CompileConstraint, RefusesChoicesWithoutTexts) {
  expect_error(ErrorCode::invalid, {"an empty list, expected at least one text"},
               [] { compile_constraint({.kind = ConstraintSpec::Kind::choice}); });
  expect_error(ErrorCode::invalid, {"choice 1: the text is not UTF-8"}, [] {
    compile_constraint({.kind = ConstraintSpec::Kind::choice, .choices = {"a", "\xff"}});
  });
}

TEST(CompileConstraint, RegexMatchesTheWholeText) {
  Grammar grammar = compile_constraint(
      {.kind = ConstraintSpec::Kind::regex, .text = "[a-z]+@[a-z]+\\.(com|org)"});
  EXPECT_TRUE(naively_accepts(grammar, "me@example.org"));
  EXPECT_FALSE(naively_accepts(grammar, "me@example.org "));
  EXPECT_FALSE(naively_accepts(grammar, "to me@example.org"));
}

TEST(CompileConstraint, GrammarsAreOfEitherNotation) {
  for (const std::string text : {"root ::= \"a\"+", "start: \"a\"+"}) {
    Grammar grammar = compile_constraint({.kind = ConstraintSpec::Kind::grammar, .text = text});
    EXPECT_TRUE(naively_accepts(grammar, "aa"));
    EXPECT_FALSE(naively_accepts(grammar, ""));
  }
}

}  // namespace
}  // namespace paceline
