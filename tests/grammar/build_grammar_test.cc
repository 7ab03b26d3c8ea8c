// How much of a grammar becomes terminals and rules: what they match is tested with the notations.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "grammar/text_grammar.h"
#include "tests/grammar/naive_language.h"

namespace paceline {
namespace {

size_t num_rules(const Grammar& grammar) {
  return grammar.rules.size() - 1;  // but the goal
}

void expect_one_terminal(std::string_view text) {
  const Grammar grammar = compile_grammar_text(text);
  EXPECT_EQ(grammar.terminals.size(), 1U) << text;
  EXPECT_EQ(num_rules(grammar), 1U) << text;
}

TEST(BuildGrammar, WhatIsNotRecursiveIsOneTerminal) {
  expect_one_terminal(
      "root ::= a b{2,5} | (c | d)*\na ::= \"x\" b\nb ::= [0-9]+\nc ::= a\nd ::= \"\"");
  expect_one_terminal("start: A b ~ 3\nb: A | \"y\"\nA: \"x\"+\n%ignore \" \"");
}

TEST(BuildGrammar, RecursionAtTheEndsIsALoop) {
  expect_one_terminal("root ::= root \"a\" | \"b\"");
  expect_one_terminal("root ::= \"a\" root | \"b\"");
  expect_one_terminal("root ::= ([ \\t] root)?");
  expect_one_terminal("root ::= root \"+\" root | \"-\" root | root \"!\" | [0-9]+ | root");
  expect_one_terminal(
      "root ::= \"[\" list \"]\"\nlist ::= list \",\" item | item\nitem ::= [a-z]+");
}

TEST(BuildGrammar, RecursionInsideIsARule) {
  const Grammar grammar = compile_grammar_text(
      "root ::= expr\nexpr ::= expr [-+] term | term\n"
      "term ::= [0-9]+ | \"(\" expr \")\"\n");
  EXPECT_EQ(num_rules(grammar), 3U);
  EXPECT_EQ(grammar.terminals.size(), 4U);
}

// Rules that are used twice each would be 2^20 copies.
TEST(BuildGrammar, LargeRulesAreCalled) {
  std::string text = "root ::= r0\n";
  for (int i = 0; i < 20; ++i) text += fmt::format("r{} ::= r{} r{}\n", i, i + 1, i + 1);
  Grammar grammar = compile_grammar_text(text + "r20 ::= \"ab\"");
  EXPECT_LT(grammar.terminals.size(), 5U);
  EXPECT_GT(num_rules(grammar), 5U);
  EXPECT_LT(grammar.states.size(), 100U);
  EXPECT_LT(grammar.regexes.num_nodes(), 5'000U);
  EXPECT_FALSE(naively_accepts(grammar, "abab"));
}

TEST(BuildGrammar, CountsAreNoCopies) {
  const Grammar grammar =
      compile_grammar_text("root ::= pair{7,100000}\npair ::= \"(\" pair? \")\"");
  EXPECT_LT(grammar.states.size(), 20U);
  const auto highest = std::max_element(
      grammar.rules.begin(), grammar.rules.end(),
      [](const GrammarRule& a, const GrammarRule& b) { return a.highest_count < b.highest_count; });
  EXPECT_GE(highest->highest_count, 99'999U);
}

}  // namespace
}  // namespace paceline
