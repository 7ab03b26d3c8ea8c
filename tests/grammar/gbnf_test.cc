#include "grammar/gbnf.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "grammar/text_grammar.h"
#include "tests/expect_error.h"
#include "tests/grammar/naive_language.h"

namespace paceline {
namespace {

void expect_gbnf(std::string_view text, std::initializer_list<std::string_view> accepted,
                 std::initializer_list<std::string_view> rejected) {
  Grammar grammar = compile_grammar_text(text);
  for (const std::string_view one : accepted) {
    EXPECT_TRUE(naively_accepts(grammar, one)) << text << "\nhas to accept: " << one;
  }
  for (const std::string_view one : rejected) {
    EXPECT_FALSE(naively_accepts(grammar, one)) << text << "\nhas to reject: " << one;
  }
}

void expect_gbnf_error(std::string_view text, std::string_view message,
                       ErrorCode code = ErrorCode::invalid) {
  expect_error(code, {std::string(message)}, [&] { compile_grammar_text(text); });
}

TEST(Gbnf, LiteralsHaveEscapes) {
  expect_gbnf(R"(root ::= "a\n\t\r\\\"\x41\u00e9\U0001F600")", {"a\n\t\r\\\"A\u00e9\U0001F600"},
              {"", "a", "a\n\t\r\\\"A\u00e9"});
  expect_gbnf(R"(root ::= "")", {""}, {"a"});
  // An escape is a character, not a byte.
  expect_gbnf(R"(root ::= "\xe9")", {"\u00e9"}, {"\xe9"});
}

TEST(Gbnf, ClassesHaveRangesAndNegation) {
  expect_gbnf("root ::= [a-cx]", {"a", "b", "c", "x"}, {"", "d", "w", "-", "ab"});
  expect_gbnf("root ::= [^a-c\\n]", {"d", "-", "\u00e9", "\U0001F600"}, {"a", "\n", "\xc3", ""});
  expect_gbnf("root ::= [a-]", {"a", "-"}, {"b"});
  expect_gbnf("root ::= [\\]\\\\\"]+", {"]", "\\", "\"", "]\\\""}, {"["});
  expect_gbnf("root ::= [\\u0430-\\u044f]+", {"\u0430\u0431\u0432", "\u044f"}, {"\u0410", "\xd0"});
  expect_gbnf("root ::= .", {"a", "\n", "\U0010FFFF"}, {"", "ab", "\xff"});
}

TEST(Gbnf, RepetitionsAppliesToTheLastItem) {
  expect_gbnf("root ::= \"ab\"* \"c\"+ \"d\"?", {"c", "ababcc", "cd"}, {"", "ab", "abbc", "cdd"});
  expect_gbnf("root ::= \"ab\"{2} [0-9]{1,3} \"x\"{2,}", {"abab1xx", "abab123xxxx"},
              {"ab1xx", "abab1234xx", "abab1x", "abab"});
  expect_gbnf("root ::= (\"a\" | \"b\"){0,2}", {"", "a", "ba"}, {"aba"});
  expect_gbnf("root ::= \"a\"{0}", {""}, {"a"});
  expect_gbnf("root ::= (\"a\"?){3} \"b\"", {"b", "ab", "aaab"}, {"aaaab"});
}

TEST(Gbnf, LinesEndRulesExceptInGroupsAndBehindBars) {
  expect_gbnf(
      "# a comment\n\nroot ::= one |\n  two # another\n | three\r\n\n"
      "one ::=\n  \"1\"\ntwo ::= ( # begins\n \"2\"\n\n  \"b\"\n)\nthree ::= (\"3\" |\n\"c\")",
      {"1", "2b", "3", "c"}, {"2", "12b"});
  expect_gbnf("root ::= a |\na ::= \"x\" |\n  \"y\" |", {"", "x", "y"}, {"z", "xy"});
}

constexpr std::string_view kArithmetic = R"grammar(
root ::= expr "\n"
expr ::= term (("+" | "-") term)*
term ::= factor (("*" | "/") factor)*
factor ::= number | "(" expr ")" | "-" factor
number ::= [0-9]+ ("." [0-9]+)?
)grammar";

TEST(Gbnf, Arithmetic) {
  expect_gbnf(kArithmetic, {"1\n", "1+2*3\n", "-(1.5-2)/--3\n", "((((7))))\n"},
              {"", "1", "1+\n", "(1\n", "1)\n", "1.\n", "+1\n"});
}

constexpr std::string_view kJson = R"grammar(
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws     ::= | " " | "\n" [ \t]{0,20}
)grammar";

TEST(Gbnf, Json) {
  expect_gbnf(
      kJson,
      {"{}", R"({"a": [1, -2.5e3, {"b\u00e9": null}], "c": "\\\""})", "{ }\n  ", R"({"é":true})"},
      {"", "[]", "{,}", R"({"a" 1})", R"({"a": 01})", R"({"a": "\x"})", R"({"a": [1,]})", "{}}",
       "{  }"});
}

TEST(Gbnf, ChessMoves) {
  expect_gbnf(
      R"grammar(
root    ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move    ::= (pawn | nonpawn | castle) [+#]?
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn    ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle  ::= "O-O" "-O"?
)grammar",
      {"1. e4 e5\n2. Nf3 Nc6\n", "1. e4 d5\n2. exd5 Qxd5\n13. O-O-O Rad8+\n"},
      {"1. e4 e5\n", "1. e4 e9\n2. a3 a6\n", "1. e4 e5\n100. a3 a6\n", "1. e4 e5\n2. a3\n"});
}

constexpr std::string_view kLikeC = R"grammar(
root       ::= ws function+
function   ::= type space name "(" ws parameters? ")" ws block
type       ::= "int" | "float" | "char" | type ws "*"
parameters ::= type space name ("," ws type space name)*
block      ::= "{" ws statement* "}" ws
statement  ::= type space name ws "=" ws expression ";" ws | name ws "=" ws expression ";" ws
             | "return" space expression ";" ws | block
             | "while" ws "(" ws expression ")" ws statement
             | "if" ws "(" ws expression ")" ws statement ("else" space statement)?
expression ::= expression operator ws expression | atom
atom       ::= name ws | number ws | "(" ws expression ")" ws
             | name ws "(" ws (expression ("," ws expression)*)? ")" ws
operator   ::= "+" | "-" | "*" | "/" | "<" | "==" | "&&"
name       ::= [a-zA-Z_] [a-zA-Z_0-9]* ws
number     ::= [0-9]+
ws         ::= [ \t\n]*
space      ::= [ \t\n]+
)grammar";

TEST(Gbnf, LikeC) {
  expect_gbnf(
      kLikeC,
      {"int f(){}", "int f(int a, char * b) { return a + b * (c - 1); }\nfloat g() {}",
       "int f() { if (a < b) { while (a) a = g(a, 1); } else return 0; }"},
      {"", "int f({}", "int f() { return a + ; }", "int f() { else return 0; }", "bool f() {}"});
}

TEST(Gbnf, RecursionOfAnyKind) {
  expect_gbnf("root ::= root \"a\" | \"b\"", {"b", "baaa"}, {"", "ab", "a"});
  expect_gbnf("root ::= \"a\" root | \"b\"", {"b", "aaab"}, {"", "ba"});
  expect_gbnf("root ::= \"a\" root \"b\" |", {"", "ab", "aaabbb"}, {"a", "ba", "aab"});
  expect_gbnf("root ::= root root | \"a\" | root \"c\" | \"d\" root", {"a", "aaa", "dadaccac"},
              {"", "c", "d", "ca", "acd"});
  expect_gbnf("root ::= x\nx ::= y | \"a\"\ny ::= x | x \"b\"", {"a", "ab", "abb"}, {"", "b"});
  expect_gbnf("root ::= (root?) \"a\"", {"a", "aaa"}, {"", "b"});
  expect_gbnf("root ::= root | \"a\"", {"a"}, {"", "aa"});
  // As many b as a, in any order.
  expect_gbnf("root ::= | \"a\" root \"b\" root | \"b\" root \"a\" root",
              {"", "ab", "ba", "abbaba"}, {"a", "aab", "bbaab"});
}

TEST(Gbnf, RulesThatAreRecursiveAreCounted) {
  constexpr std::string_view kPairs = "root ::= pair{2,3}\npair ::= \"(\" pair? \")\"";
  expect_gbnf(kPairs, {"()()", "(())()((()))"}, {"", "()", "()()()()", "(()()"});
  expect_gbnf("root ::= (pair \",\"){2,} pair\npair ::= \"(\" pair? \")\"",
              {"(),(),()", "(),(()),(),()"}, {"()", "(),()"});
  expect_gbnf("root ::= (pair?){2} \"x\"\npair ::= \"(\" pair? \")\"", {"x", "()x", "()(())x"},
              {"()()()x"});
}

TEST(Gbnf, ErrorsSayWhere) {
  expect_gbnf_error("root ::= \"a\"\nb ::= ]", "line 2, column 7: found \"]\", expected a text");
  expect_gbnf_error("root ::= \"\u00e9\" )", "line 1, column 14: found \")\", expected");
  expect_gbnf_error("root ::= (\"a\"",
                    "expected `)` for the group that begins at line 1, column 10");
  expect_gbnf_error("root ::= \"a",
                    "found the end of the text, expected the end of what begins at");
  expect_gbnf_error("root ::= \"\\q\"", "line 1, column 12: found \"q\", expected an escape");
  expect_gbnf_error("root ::= \"\\ud800\"", "U+D800 isn't a character");
  expect_gbnf_error("root ::= \"\\x4\"", "expected 2 hexadecimal digits");
  expect_gbnf_error("root ::= []", "line 1, column 10: an empty class");
  expect_gbnf_error("root ::= [z-a]", "the range z-a ends before it begins");
  expect_gbnf_error("root ::= * \"a\"", "found \"*\", expected something to repeat");
  expect_gbnf_error("root ::= \"a\"{3,2}", "from 3 to 2 repetitions");
  expect_gbnf_error("root ::= \"a\"{x}", "found \"x\", expected a number of repetitions");
  expect_gbnf_error("root ::= a b ::= \"c\"", "found \"::=\"");
  expect_gbnf_error("root ::= itme\nitem ::= \"a\"",
                    "line 1, column 10: the rule itme is not defined; did you mean item?");
  expect_gbnf_error("root ::= \"a\"\nroot ::= \"b\"",
                    "line 2, column 1: the rule root is already defined at line 1, column 1");
  expect_gbnf_error("rot ::= \"a\"", "no rule root");
  expect_gbnf_error("root ::= <think> \"a\"", "line 1, column 10: tokens of the vocabulary",
                    ErrorCode::unsupported);
  expect_gbnf_error("root ::= root", "allows no text");
}

TEST(Gbnf, OtherTextsAreNoGrammar) {
  expect_gbnf_error("", "expected a rule: GBNF's `root ::= ...` or Lark's `start: ...`");
  expect_gbnf_error("# only this\n", "line 2, column 1: found the end of the text");
  expect_gbnf_error("{\"type\": \"object\"}", "line 1, column 1: found \"{\"");
  expect_gbnf_error("root = \"a\"", "line 1, column 6: found \"=\", expected `::=` (GBNF)");
  expect_gbnf_error("root ::= \"\xff\"", "not UTF-8");
}

TEST(Gbnf, HostileTextsAreRefusedOrCheap) {
  const std::string deep =
      "root ::= " + std::string(60'000, '(') + "\"a\"" + std::string(60'000, ')');
  expect_gbnf_error(deep, "nested deeper than 64 levels", ErrorCode::exhausted);
  expect_gbnf_error("root ::= \"a\"" + std::string(60'000, '+'), "nested deeper than",
                    ErrorCode::exhausted);
  expect_gbnf_error("root ::= \"a\"{99999999999}", "more than 1000000 repetitions",
                    ErrorCode::exhausted);
  expect_gbnf_error(std::string((256 << 10) + 1, ' '), "more than the limit of 256 KiB",
                    ErrorCode::exhausted);
  // A million million million repetitions.
  expect_gbnf("root ::= ((\"a\"{1000000}){1000000}){1000000} | \"b\"", {"b"}, {"a"});
  // Each rule is twice the next.
  std::string doubling = "root ::= r0 \"x\" | \"y\"\n";
  for (int i = 0; i < 60; ++i) doubling += fmt::format("r{} ::= r{} r{}\n", i, i + 1, i + 1);
  expect_gbnf(doubling + "r60 ::= \"a\"", {"y"}, {"x", "ax"});
  // A long chain, forwards and backwards.
  std::string chain = "root ::= c0\n";
  for (int i = 0; i < 8'000; ++i) chain += fmt::format("c{} ::= \"a\" c{}\n", i, i + 1);
  expect_gbnf(chain + "c8000 ::= \"b\"", {}, {"b", "ab"});
}

}  // namespace
}  // namespace paceline
